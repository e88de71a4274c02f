"""An agent of Microsoft Agent Framework that remembers its sessions; run it twice. Its model is scripted: no key."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Message

from alma import ALMA
from alma.integration.agent_framework import ALMAContextProvider, ALMAHistoryProvider


class Scripted(BaseChatClient):
    """Says what the user asked before."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool = False, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        async def answer() -> ChatResponse:
            asked = [message.text for message in messages if message.role == "user"]
            said = f"You asked before: {asked[-2]}" if asked[1:] else "(nothing)"
            return ChatResponse(messages=[Message("assistant", [said])])

        return answer()


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        providers = [ALMAHistoryProvider(memory), ALMAContextProvider(memory, agent="support")]
        agent = Agent(Scripted(), context_providers=providers)
        answer = await agent.run("Where is my order?", session=AgentSession(session_id="customer-7"))
        print("assistant:", answer.text)
        print("found in ALMA:", memory.journal.search("orders", memory.scope(), limit=1).memories[0].content)


asyncio.run(main())
