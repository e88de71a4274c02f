"""An agent of AutoGen that remembers what it was told; run it twice. Its model is scripted: no key."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, ModelInfo, RequestUsage

from alma import ALMA
from alma.integration.autogen import ALMAMemory


class Scripted(ChatCompletionClient):
    """Says whether its context names the customer's allergy."""

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        knows = any("peanuts" in str(message.content) for message in messages if message.type == "SystemMessage")
        said = "You are allergic to peanuts." if knows else "I know of no allergy."
        return CreateResult(finish_reason="stop", content=said, usage=RequestUsage(0, 0), cached=False)

    def create_stream(self, messages: Sequence[LLMMessage], **options: Any) -> AsyncGenerator[str | CreateResult, None]:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, messages: Sequence[LLMMessage], **options: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Sequence[LLMMessage], **options: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=False, json_output=False, family="scripted", structured_output=False
        )


async def main() -> None:
    with ALMA.quickstart(project_id="shop") as memory:
        notes = ALMAMemory(memory)
        agent = AssistantAgent("support", model_client=Scripted(), memory=[notes])
        result = await agent.run(task="Which food am I allergic to?")
        print("assistant:", result.messages[-1].content)
        told = MemoryContent(content="The customer is allergic to peanuts.", mime_type=MemoryMimeType.TEXT)
        await notes.add(told)
        print("found in ALMA:", memory.journal.search("allergies", memory.scope(), limit=1).memories[0].content)


asyncio.run(main())
