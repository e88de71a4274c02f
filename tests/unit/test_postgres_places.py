"""Cached vector positions of a small scope on PostgreSQL are invalidated by every write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make

SHOP = Scope(project_id="shop", agent=make.a_heuristic().agent)
_WANTED = [1.0, 0.0, 0.0, 0.0]
_RECORDS = 150


@pytest.fixture
def store(postgres_dsn: str) -> Iterator[PostgreSQLStorage]:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_heuristic(id=f"h{i:03}", embedding=[1.0, 0.01 * (i + 1), 0.0, 0.0]) for i in range(_RECORDS)
        )
        yield store


@pytest.fixture
def elsewhere(postgres_dsn: str) -> Iterator[PostgreSQLStorage]:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        yield store


def nearest(store: PostgreSQLStorage, limit: int) -> list[str]:
    """The nearest, which are the same however often they are asked for."""
    answers = [store.nearest_ids(Heuristic, _WANTED, SHOP, limit=limit, exact=False) for _ in range(4)]
    assert all(dict(answer) == pytest.approx(dict(answers[0])) for answer in answers)
    return [key for key, _ in answers[0]]


@pytest.mark.parametrize("limit", [3, 60, _RECORDS + 5])
def test_the_nearest_stay_the_same_when_their_places_are_known(store: PostgreSQLStorage, limit: int) -> None:
    assert nearest(store, limit) == [f"h{i:03}" for i in range(min(limit, _RECORDS))]


def test_what_another_process_writes_is_found_at_once(store: PostgreSQLStorage, elsewhere: PostgreSQLStorage) -> None:
    assert nearest(store, 3) == ["h000", "h001", "h002"]
    elsewhere.save(make.a_heuristic(id="new", embedding=_WANTED))
    assert nearest(store, 3) == ["new", "h000", "h001"]
    elsewhere.delete(Heuristic, ["new", "h001"], SHOP)
    assert nearest(store, 3) == ["h000", "h002", "h003"]
    elsewhere.save(make.a_heuristic(id="h149", embedding=_WANTED))
    assert nearest(store, 3) == ["h149", "h000", "h002"]


def test_places_are_those_of_one_owner(store: PostgreSQLStorage, elsewhere: PostgreSQLStorage) -> None:
    elsewhere.save(make.a_heuristic(id="theirs", agent="other", embedding=_WANTED))
    assert nearest(store, 2) == ["h000", "h001"]
    others = Scope(project_id="shop", agent="other")
    for _ in range(4):
        assert [key for key, _ in store.nearest_ids(Heuristic, _WANTED, others, exact=False)] == ["theirs"]


def test_places_change_when_the_table_is_written_anew(store: PostgreSQLStorage) -> None:
    before = nearest(store, 3)
    with store.connection() as connection:
        connection.execute("DELETE FROM alma_embeddings WHERE memory_id = 'h000'")
    with store.connection() as connection:
        connection.execute("VACUUM FULL alma_embeddings")
    assert nearest(store, 2) == before[1:]


def test_known_places_are_gone_to_even_where_the_server_has_counted_nothing_yet(store: PostgreSQLStorage) -> None:
    with store.connection() as connection:
        connection.execute("ALTER TABLE alma_embeddings SET (autovacuum_enabled = off)")
    others = (make.a_heuristic(agent="other", embedding=_WANTED) for _ in range(2_000))
    store.save_many(others)
    assert nearest(store, 3) == ["h000", "h001", "h002"]
    with store.connection() as connection:
        [(asked,)] = connection.execute(
            "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%ctid = ANY($%'"
        ).fetchall()
        plan = [line for (line,) in connection.execute(f"EXPLAIN (GENERIC_PLAN) {asked}").fetchall()]
    assert not [line for line in plan if "idx_embeddings" in line]
    assert [line for line in plan if "Tid Scan on alma_embeddings" in line]
