"""The memory of AutoGen, beside the list that it ships."""

import asyncio

import pytest
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import UserMessage

from alma import ALMA
from alma.errors import ValidationError
from alma.integration.autogen import ALMAMemory


def text(content: str, **metadata: str) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata)


async def told(memory) -> list[str]:
    context = BufferedChatCompletionContext(buffer_size=5)
    await context.add_message(UserMessage(content="Which food am I allergic to?", source="user"))
    result = await memory.update_context(context)
    added = [message.content for message in await context.get_messages() if message.type == "SystemMessage"]
    assert len(result.memories.results) == sum(part.count("peanuts") for part in added)
    return [line.partition(". ")[2] for part in added for line in part.splitlines() if ". " in line]


def test_the_context_gets_what_is_relevant_as_from_the_list(alma: ALMA) -> None:
    async def used(memory) -> list:
        answers = [await told(memory)]
        await memory.add(text("The customer is allergic to peanuts", source="form"))
        answers.append(await told(memory))
        await memory.clear()
        return [*answers, await told(memory)]

    assert asyncio.run(used(ALMAMemory(alma))) == asyncio.run(used(ListMemory()))


def test_contents_are_found_masked_in_the_next_process_and_images_are_refused(alma: ALMA, open_memory) -> None:
    async def use() -> None:
        await ALMAMemory(alma).add(text("my password: hunter2horse!"))
        await ALMAMemory(alma).add(MemoryContent(content={"city": "Lisbon"}, mime_type=MemoryMimeType.JSON))
        other = ALMAMemory(open_memory())
        found = (await other.query("what is my password?")).results
        assert found[0].content == "my password: [redacted:password]"
        assert (await other.query(text("which city, Lisbon?"))).results[0].content == {"city": "Lisbon"}
        assert (await ALMAMemory(alma, name="other").query("password")).results == []
        with pytest.raises(ValidationError, match="must be a text or JSON"):
            await other.add(MemoryContent(content=b"x", mime_type=MemoryMimeType.BINARY))

    asyncio.run(use())
