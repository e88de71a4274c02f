"""An agent of Pydantic AI that goes on with its conversation; run it twice. Its model is scripted: no key."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from alma import ALMA
from alma.integration.pydantic_ai import ALMAConversationStore


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say what the user asked before."""
    parts = [part for message in messages for part in message.parts if part.part_kind == "user-prompt"]
    return ModelResponse(parts=[TextPart(f"You asked before: {parts[-2].content}" if parts[1:] else "(nothing)")])


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        store = ALMAConversationStore(memory)
        conversation = await store.load("customer-7") or Conversation(conversation_id="customer-7")
        result = await Agent(FunctionModel(scripted)).run("Where is my order?", conversation=conversation)
        await store.save(result)
        print("assistant:", result.output)
        print("found in ALMA:", memory.journal.search("orders", memory.scope(), limit=1).memories[0].content)


asyncio.run(main())
