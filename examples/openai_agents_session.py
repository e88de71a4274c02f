"""An agent of the OpenAI Agents SDK that remembers the conversation; run it twice. Its model is scripted: no key."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from alma import ALMA
from alma.integration.openai_agents import ALMASession


class Scripted(Model):
    """Says what the user asked before."""

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        asked = [item["content"] for item in options["input"] if item.get("role") == "user"]
        earlier = f"You asked before: {asked[-2]}" if len(asked) > 1 else "(no earlier question)"
        text = ResponseOutputText(text=earlier, type="output_text", annotations=[])
        said = ResponseOutputMessage(id="msg_1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        session = ALMASession("customer-7", memory)
        agent = Agent(name="support", model=Scripted())
        config = RunConfig(tracing_disabled=True)
        await Runner.run(agent, "Where is my order?", session=session, run_config=config)
        for item in itertools.islice(await session.get_items(), 0, 2):
            print(f"{item['role']}: {item['content']!r:.70}")
        found = memory.journal.search("questions about orders", memory.scope(), limit=1)
        print("found in ALMA:", found.memories[0].content)
        items = await session.get_items()
        print("assistant:", items[-1]["content"][0]["text"])


asyncio.run(main())
