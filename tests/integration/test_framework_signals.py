"""What frameworks deliver in a conversation says how a task went, where the benefit of memories is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from alma import ALMA
from alma.integration.claude_agent_sdk import ALMASessionStore
from alma.integration.langchain import ALMAChatMessageHistory
from alma.integration.openai_agents import ALMASession
from alma.model.governance import BenefitTrial

TASK = "Deploy the billing service to the cluster"
THANKS = "Thanks, it works now!"

Talk = Callable[[ALMA, bool], None]


@pytest.fixture
def alma(sqlite_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(sqlite_path, "shop", embedding_provider="mock", benefit={"withhold": 1e-9}) as memory:
        memory.add_domain_knowledge("helena", "billing", "The billing service deploys to the cluster")
        memory.retrieve(TASK, "helena")
        yield memory


def langchain(alma: ALMA, failed: bool) -> None:
    history = ALMAChatMessageHistory("chat", alma, agent="helena")
    ended = ToolMessage("exit code 1", tool_call_id="c", status="error" if failed else "success")
    history.add_messages([HumanMessage(TASK), ended, AIMessage("Deployed.")])
    history.add_messages([HumanMessage(THANKS)])


def openai_agents(alma: ALMA, failed: bool) -> None:
    output = [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": int(failed)}}]
    ran: Any = {"type": "shell_call_output", "call_id": "c", "output": output}
    session = ALMASession("chat", alma, agent="helena")
    asyncio.run(session.add_items([{"role": "user", "content": TASK}, ran]))
    asyncio.run(session.add_items([{"role": "user", "content": THANKS}]))


def claude(alma: ALMA, failed: bool) -> None:
    ended = [{"type": "tool_result", "tool_use_id": "t", "content": "exit code 1", "is_error": failed}]
    store, key = ALMASessionStore(alma, agent="helena"), {"project_key": "p", "session_id": "s"}
    for number, content in enumerate((TASK, ended, THANKS)):
        entry = {"type": "user", "uuid": str(number), "message": {"role": "user", "content": content}}
        # An entry that is appended again is passed over.
        for _ in range(2):
            asyncio.run(store.append(key, [entry]))  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize("talk", [langchain, openai_agents, claude])
@pytest.mark.parametrize("failed", [True, False])
def test_tools_and_users_say_how_the_task_went(alma: ALMA, talk: Talk, failed: bool) -> None:
    talk(alma, failed)
    (row,) = alma.storage.find(BenefitTrial, alma.scope())
    assert {name: each["success"] for name, each in row.signals.items()} == {"exit-status": not failed, "thanks": True}


def test_a_conversation_without_an_agent_is_only_stored(alma: ALMA) -> None:
    history = ALMAChatMessageHistory("chat", alma)
    history.add_messages([HumanMessage(TASK), HumanMessage(THANKS)])
    assert len(history.messages) == 2
    (row,) = alma.storage.find(BenefitTrial, alma.scope())
    assert row.signals == {}
