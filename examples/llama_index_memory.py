"""An agent of LlamaIndex that remembers the conversation; run it twice. Its model is scripted: no key."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from alma import ALMA
from alma.integration.llama_index import ALMAMemory


class Scripted(CustomLLM):
    """Says what the user asked before."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        raise NotImplementedError

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        asked = [message.content for message in messages if message.role == "user"]
        said = f"You asked before: {asked[-2]}" if asked[1:] else "(nothing)"
        text = f"Thought: I can answer without using any more tools.\nAnswer: {said}"

        async def one() -> Any:
            yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

        return one()


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        agent = ReActAgent(llm=Scripted(), tools=[])
        answer = await agent.run("Where is my order?", memory=ALMAMemory(memory, "customer-7"))
        print("assistant:", answer.response.content)
        print("found in ALMA:", memory.journal.search("orders", memory.scope(), limit=1).memories[0].content)


asyncio.run(main())
