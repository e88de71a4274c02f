"""The memory store of Strands, beside the store for tests that it ships."""

import asyncio

from strands.memory import MemoryManager
from strands.vended_memory_stores.test_memory_store import TestMemoryStore

from alma import ALMA
from alma.integration.strands import ALMAMemoryStore


def test_it_answers_as_the_store_of_strands(alma: ALMA) -> None:
    async def used(store) -> list:
        found = [await store.search("which food is the customer allergic to?")]
        await store.add("The customer is allergic to peanuts", {"source": "form"})
        await store.add("The parcel went to Lisbon")
        found.append(await store.search("which food is the customer allergic to?", {"max_search_results": 1}))
        return [[(each.content, (each.metadata or {}).get("source")) for each in part] for part in found]

    theirs = asyncio.run(used(TestMemoryStore(name="notes", persist=False)))
    assert asyncio.run(used(ALMAMemoryStore(alma, name="notes"))) == theirs


def test_messages_are_kept_masked_for_the_next_process_and_stores_are_apart(alma: ALMA, open_memory) -> None:
    async def use() -> None:
        store = ALMAMemoryStore(alma, name="chat", extraction=True)
        MemoryManager(stores=[store])
        result = {"toolResult": {"content": [{"text": "evil"}], "status": "success", "toolUseId": "t"}}
        await store.add_messages(
            [
                {"role": "user", "content": [{"text": "I live in Lisbon, my password: hunter2horse!"}]},
                {"role": "user", "content": [result]},
            ]
        )
        (found,) = await ALMAMemoryStore(open_memory(), name="chat").search("Where do I live?")
        assert found.content == "I live in Lisbon, my password: [redacted:password]"
        assert await ALMAMemoryStore(alma, name="other").search("Where do I live?") == []
        assert await store.search("  ") == []

    asyncio.run(use())
