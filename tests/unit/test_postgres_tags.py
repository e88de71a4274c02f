"""Tag filters on PostgreSQL give the same result as a full scan, for rare and frequent tags."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from alma.model.memory import Memory
from alma.model.query import And, Compare, Has, Or, Predicate, matches
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage import ranking
from alma.storage.nearest import nearest
from alma.storage.postgres import words as postgres_tags
from alma.storage.postgres.fulltext import index_everything
from alma.storage.postgres.partitions import partition
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

_RECORDS = ranking.BUDGET + 200
SHOP = Scope(project_id="shop")
WANTED = Vector([1.0, 0.2, 0.0, -0.3])
CONDITIONS: dict[str, Predicate] = {
    "rare": Has("tags", "rare"),
    "common": Has("tags", "common"),
    "both": And(Has("tags", "rare"), Has("tags", "common")),
    "either": Or(Has("tags", "rare"), Has("tags", "other")),
    "rare and more": And(Or(Has("tags", "rare")), And(Compare("memory_type", "eq", "note"), Has("tags", "common"))),
    "tag or type": Or(Has("tags", "rare"), Compare("memory_type", "eq", "note")),
    "nobody's": Has("tags", "nobody's"),
}


@pytest.fixture(scope="module")
def memories() -> list[Memory]:
    source = random.Random(7)
    return [
        make.a_memory(
            id=f"m{i:05}",
            project_id="shop",
            title=f"number{i}",
            content="deploy" if i % 2 else "release",
            memory_type="note" if i % 3 else "fact",
            tags=(
                *(("common",) if i % 5 else ()),
                *(("rare",) if i % 50 == 1 else ()),
                *(("other",) if i % 70 == 2 else ()),
            ),
            embedding=Vector([source.gauss() for _ in range(4)]),
        )
        for i in range(_RECORDS)
    ]


@pytest.fixture(scope="module")
def filled(memories: list[Memory], postgres: PostgresServer) -> Iterator[PostgreSQLStorage]:
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        store.save_many(memories)
        with store.connection() as connection:
            connection.execute("ANALYZE")
        yield store


@pytest.fixture(params=["few", "many"])
def store(
    request: pytest.FixtureRequest, filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch
) -> PostgreSQLStorage:
    """Tags count as rare, or as common, whatever they are."""
    monkeypatch.setattr(postgres_tags, "_FEW", 20_000 if request.param == "few" else 1)
    filled._cache.tagged_records = ranking.CountCache(slack=0)
    return filled


@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("exact", [True, False])
def test_the_nearest_are_those_that_fulfil_it(
    store: PostgreSQLStorage, memories: list[Memory], where: Predicate, exact: bool
) -> None:
    fulfilling = [memory for memory in memories if matches(where, memory)]
    truth = nearest(WANTED, [(m.id, Vector(m.embedding).to_bytes()) for m in fulfilling if m.embedding is not None], 10)
    assert store.nearest_ids(Memory, WANTED, SHOP, where, 10, exact=exact) == truth


@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
def test_the_best_by_words_are_those_that_fulfil_it(store: PostgreSQLStorage, where: Predicate) -> None:
    query = "release number51 number101 number200"
    near = store.matching_ids(Memory, query, SHOP, where, 3, exact=False)
    exact = store.matching_ids(Memory, query, SHOP, where, 3)
    assert [key for key, _ in near][:2] == [key for key, _ in exact][:2]
    fulfilling = {memory.id for memory in store.find(Memory, SHOP, where)}
    assert {key for key, _ in near} <= fulfilling


def test_the_best_are_the_same_where_the_table_is_divided(
    memories: list[Memory], postgres: PostgresServer, filled: PostgreSQLStorage
) -> None:
    """Records of different parts may stand at the same place of their part."""
    months = [datetime(2026, 1 + i % 3, 15, tzinfo=UTC) for i in range(len(memories))]
    dated = [replace(memory, created_at=month) for memory, month in zip(memories, months, strict=True)]
    query = "release number51 number101 number200 deploy"
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        with store.connection() as connection:
            partition(connection, "memories")
        store.save_many(dated)
        with store.connection() as connection:
            connection.execute("ANALYZE")
        for where in CONDITIONS.values():
            divided = store.matching_ids(Memory, query, SHOP, where, 20, exact=False)
            whole = filled.matching_ids(Memory, query, SHOP, where, 20, exact=False)
            assert {key for key, _ in divided[:3]} == {key for key, _ in whole[:3]}
            assert len({key for key, _ in divided}) == len(divided)
            assert store.nearest_ids(Memory, WANTED, SHOP, where, 10) == filled.nearest_ids(
                Memory, WANTED, SHOP, where, 10
            )


def test_common_words_find_what_has_a_rare_tag(filled: PostgreSQLStorage, memories: list[Memory]) -> None:
    """However few of the records with the words have it."""
    fulfilling = {memory.id for memory in memories if "rare" in memory.tags and "release" in memory.content}
    found = filled.matching_ids(Memory, "release number51", SHOP, Has("tags", "rare"), 200, exact=False)
    assert found[0][0] == "m00051"
    assert {key for key, _ in found} == {*fulfilling, "m00051"}


@pytest.fixture
def unlisted(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgreSQLStorage]:
    """A store that takes every scope for too large to look at each record."""
    monkeypatch.setattr(ranking, "BUDGET", 0)
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        yield store


@pytest.mark.parametrize("tag", ["new", "it's", 'a "quoted" \\ tag', "x" * 90, "标签"])
def test_a_changed_tag_is_found_and_the_former_one_is_not(unlisted: PostgreSQLStorage, tag: str) -> None:
    memory = make.a_memory(id="m", project_id="shop", content="deploy on friday", tags=("former",))
    unlisted.save(memory)
    unlisted.save(replace(memory, tags=(tag,)))
    for asked, expected in ((tag, ["m"]), ("former", [])):
        found = unlisted.matching_ids(Memory, "friday", SHOP, Has("tags", asked), exact=False)
        assert [key for key, _ in found] == expected


def test_the_tags_of_an_older_store_are_indexed(unlisted: PostgreSQLStorage) -> None:
    unlisted.save(make.a_memory(id="m", project_id="shop", content="deploy on friday", tags=("rare", "other")))
    with unlisted.connection() as connection, connection.transaction():
        connection.execute("UPDATE memories SET search = 'old'")
        index_everything(connection)
    for where in (Has("tags", "rare"), Has("tags", "other")):
        [(key, _)] = unlisted.matching_ids(Memory, "friday", SHOP, where, exact=False)
        assert key == "m"


def test_a_tag_is_not_a_word(unlisted: PostgreSQLStorage) -> None:
    unlisted.save(make.a_memory(id="m", project_id="shop", content="deploy on friday", tags=("rare",)))
    assert unlisted.matching_ids(Memory, "rare", SHOP, exact=False) == []


def test_any_number_of_tags_is_found(unlisted: PostgreSQLStorage) -> None:
    tags = tuple(f"tag {i}" for i in range(2_000))
    unlisted.save(make.a_memory(id="m", project_id="shop", content="deploy on friday", tags=tags))
    for asked, expected in (("tag 7", ["m"]), ("tag 1999", ["m"]), ("tag 2000", [])):
        found = unlisted.matching_ids(Memory, "friday", SHOP, Has("tags", asked), exact=False)
        assert [key for key, _ in found] == expected
