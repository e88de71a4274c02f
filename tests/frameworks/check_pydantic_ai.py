"""The conversation store of Pydantic AI, beside the one in memory that it ships."""

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from alma import ALMA
from alma.integration.pydantic_ai import ALMAConversationStore
from alma.model.governance import BenefitTrial

AGENT = Agent(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(f"answer {len(messages)}")])))


def said(conversation) -> list[str]:
    return [] if conversation is None else [str(p.content) for m in conversation.messages for p in m.parts]


async def used(store) -> list:
    """Everything that a store does, and what it answers."""
    shown = []
    for prompt in ("Where is my order?", "Really?"):
        known = await store.load("c1", scope="ana") or Conversation(conversation_id="c1")
        await store.save(await AGENT.run(prompt, conversation=known), scope="ana")
    shown.append(said(await store.load("c1")))
    shown.append(said(await store.load("c1", limit=1)))
    shown.append(said(await store.load("c1", scope="bob")))
    entries = await store.load_entries("c1")
    await store.fork("c1", new_conversation_id="c2", from_entry=entries[1].id)
    shown.append(said(await store.load("c2")))
    known = await store.load("c2")
    await store.save(await AGENT.run("Another way?", conversation=known))
    shown.append(said(await store.load("c2")))
    late = await AGENT.run("Too late?", conversation=known)
    with pytest.raises(ConversationConflict):
        await store.save(late)
    shown.append([(each.conversation_id, each.scope) for each in await store.read_records()])
    shown.append([each.conversation_id for each in await store.read_records(scope="ana", limit=1)])
    await store.delete("c1")
    shown.append([said(await store.load(each)) for each in ("c1", "c2")])
    return shown


def test_it_answers_as_the_store_in_memory(alma: ALMA) -> None:
    assert asyncio.run(used(ALMAConversationStore(alma))) == asyncio.run(used(InMemoryConversationStore()))


def test_conversations_go_on_in_the_next_process_found_and_masked(alma: ALMA, open_memory) -> None:
    async def use() -> list[str]:
        asked = "I live in Lisbon, my password: hunter2horse!"
        known = Conversation(conversation_id="c1")
        await ALMAConversationStore(alma, agent="helena").save(await AGENT.run(asked, conversation=known))
        return said(await ALMAConversationStore(open_memory()).load("c1"))

    assert asyncio.run(use())[0] == "I live in Lisbon, my password: [redacted:password]"
    (found, *_) = alma.journal.search("Where do you live?", alma.scope()).memories
    assert (found.title, found.source_tool, found.source_agent) == ("user", "pydantic-ai", "helena")


def test_tools_and_the_next_prompt_say_how_a_task_went(measured: ALMA) -> None:
    async def use() -> None:
        store, task = ALMAConversationStore(measured, agent="helena"), "Deploy the billing service to the cluster"
        measured.retrieve(task, "helena")
        failed = ToolReturnPart("deploy", "exit code 1", tool_call_id="c1", outcome="failed")
        asked, called = UserPromptPart(task), ToolCallPart("deploy", {}, tool_call_id="c1")
        history = [
            ModelRequest([asked]),
            ModelResponse([called]),
            ModelRequest([failed]),
            ModelResponse([TextPart("No")]),
        ]
        known = Conversation(conversation_id="c1", messages=history)
        await store.save(await AGENT.run("That is wrong, it does not work.", conversation=known))

    asyncio.run(use())
    (trial,) = measured.storage.find(BenefitTrial, measured.scope())
    assert {name: each["success"] for name, each in trial.signals.items()} == {
        "exit-status": False,
        "correction": False,
    }
