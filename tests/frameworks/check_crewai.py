"""The storage of CrewAI's memory, beside the one that it ships."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord

from alma import ALMA
from alma.integration.crewai import ALMAStorage

START = datetime(2026, 11, 1)  # noqa: DTZ001 - CrewAI writes naive times


def records(embed) -> list[MemoryRecord]:
    said = [
        ("r1", "The customer is allergic to peanuts", "/customers/7", ["health"], {"form": "a"}),
        ("r2", "The customer lives in Lisbon", "/customers/7/address", ["place"], {"form": "b"}),
        ("r3", "The shop opens at nine", "/shop", ["hours", "place"], {}),
    ]
    return [
        MemoryRecord(
            id=key,
            content=content,
            scope=scope,
            categories=categories,
            metadata=metadata,
            created_at=START + timedelta(days=number),
            embedding=embed([content])[0],
        )
        for number, (key, content, scope, categories, metadata) in enumerate(said)
    ]


def ids(found) -> list[str]:
    return [each.id for each in found]


def test_it_answers_as_the_storage_of_crewai(alma: ALMA, tmp_path: Path) -> None:
    ours, theirs = ALMAStorage(alma), LanceDBStorage(tmp_path / "lance")
    assert isinstance(ours, StorageBackend)
    query = ours.embed(["Which food is the customer allergic to?"])[0]
    answers = []
    for storage in (ours, theirs):
        storage.save(records(ours.embed))
        shown = [
            ids(record for record, _ in storage.search(query, limit=1)),
            ids(record for record, _ in storage.search(query, "/customers", limit=5)),
            ids(record for record, _ in storage.search(query, categories=["hours"])),
            ids(record for record, _ in storage.search(query, metadata_filter={"form": "b"})),
            ids(record for record, _ in storage.search(query, min_score=0.99)),
            ids(storage.list_records()),
            ids(storage.list_records("/customers", limit=1, offset=1)),
            storage.list_scopes("/"),
            storage.list_scopes("/customers"),
            storage.list_categories(),
            storage.list_categories("/customers"),
            (storage.count(), storage.count("/customers"), storage.count("/none")),
            storage.get_record("r2").content,
            storage.get_record("none"),
        ]
        changed = storage.get_record("r2").model_copy(
            update={
                "content": "The customer lives in Porto",
                "embedding": ours.embed(["The customer lives in Porto"])[0],
            }
        )
        storage.update(changed)
        info = storage.get_scope_info("/customers")
        shown += [storage.get_record("r2").content, storage.count(), info.record_count, info.categories]
        shown += [info.child_scopes, storage.delete(record_ids=["r2"]), storage.count()]
        shown += [storage.delete(older_than=START + timedelta(hours=1)), ids(storage.list_records())]
        storage.reset("/shop")
        answers.append([*shown, storage.count()])
    assert answers[0] == answers[1]


def test_another_embedding_model_is_an_error_that_says_so(alma: ALMA) -> None:
    with pytest.raises(EmbeddingDimensionMismatchError):
        ALMAStorage(alma).search([0.1] * 3)


def test_records_are_found_masked_by_the_next_process(alma: ALMA, open_memory) -> None:
    storage = ALMAStorage(alma, agent="helena")
    asyncio.run(storage.asave([MemoryRecord(id="r1", content="my password: hunter2horse!", scope="/a")]))
    assert ALMAStorage(open_memory()).get_record("r1").content == "my password: [redacted:password]"
    (found,) = alma.journal.search("what is the password?", alma.scope()).memories
    assert (found.source_tool, found.source_agent) == ("crewai", "helena")
    assert asyncio.run(storage.adelete(scope_prefix="/a")) == 1
