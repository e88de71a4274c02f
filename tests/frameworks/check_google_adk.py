"""The memory service of Google ADK, beside the one in memory that it ships."""

import asyncio

from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from alma import ALMA
from alma.integration.google_adk import ALMAMemoryService


def event(key: str, text: str, author: str = "user") -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    return Event(id=key, author=author, timestamp=1_763_500_000.0, content=content)


PARCEL, PIZZA = event("e1", "The green parcel went to Lisbon"), event("e2", "I like pizza with anchovies")
ANA = {"app_name": "shop", "user_id": "ana"}


def test_it_finds_and_forgets_as_the_service_in_memory(alma: ALMA) -> None:
    async def used(service) -> list:
        found = []

        async def search(query: str, user: str = "ana") -> None:
            entries = (await service.search_memory(app_name="shop", user_id=user, query=query)).memories
            found.append([(each.id, each.author, each.content.parts[0].text, each.timestamp) for each in entries[:1]])

        await service.add_events_to_memory(**ANA, events=[PARCEL, event("e0", "")], session_id="s1")
        await service.add_events_to_memory(**ANA, events=[PARCEL, PIZZA], session_id="s1")
        await search("Where is the green parcel?")
        await search("pizza anchovies")
        await search("Where is the green parcel?", "bob")
        await service.delete_memory(**ANA, memory_id="e1")
        await search("Where is the green parcel?")
        # What was deleted is not added again with the session.
        await service.add_events_to_memory(**ANA, events=[PARCEL], session_id="s1")
        await search("Where is the green parcel?")
        return found

    ours = asyncio.run(used(ALMAMemoryService(alma)))
    theirs = asyncio.run(used(InMemoryMemoryService()))
    shown = [[(key, author, text) for key, author, text, _ in each] for each in ours]
    assert shown == [[(key, author, text) for key, author, text, _ in each] for each in theirs]
    assert len(ours[0]) == len(ours[1]) == 1


def test_memories_are_added_masked_and_seen_by_the_next_process(alma: ALMA, open_memory) -> None:
    said = types.Content(role="user", parts=[types.Part(text="my password: hunter2horse!")])
    asyncio.run(ALMAMemoryService(alma).add_memory(**ANA, memories=[MemoryEntry(content=said, id="m1")]))
    other = ALMAMemoryService(open_memory())
    (found,) = asyncio.run(other.search_memory(**ANA, query="what is my password?")).memories
    assert found.content.parts[0].text == "my password: [redacted:password]"
