"""Document frequencies on PostgreSQL: exact in a small scope, estimated from statistics in a large one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.model.learning import Heuristic, Outcome
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.ranking import BUDGET
from alma.testing import builders as make
from alma.text.tokens import query_terms

_RECORDS = BUDGET + 500
SHOP = Scope(project_id="shop")


@pytest.fixture
def store(postgres_dsn: str) -> Iterator[PostgreSQLStorage]:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_heuristic(id=f"h{i:05}", condition="deploy" if i % 2 else "release", strategy=f"number{i}")
            for i in range(_RECORDS)
        )
        yield store


def analysed(store: PostgreSQLStorage) -> PostgreSQLStorage:
    with store.connection() as connection:
        connection.execute("ANALYZE")
    return store


def test_common_words_are_counted_without_statistics(store: PostgreSQLStorage) -> None:
    assert store.word_counts(Heuristic, ["deploy", "nowher"], SHOP)[1] == {"deploy": _RECORDS // 2, "nowher": 0}


def test_common_words_come_from_the_statistics_and_others_are_counted(store: PostgreSQLStorage) -> None:
    records, counts = analysed(store).word_counts(Heuristic, ["deploy", "number7", "nowher"], SHOP)
    assert records == _RECORDS
    assert counts == {"deploy": pytest.approx(_RECORDS / 2, rel=0.05), "number7": 1, "nowher": 0}


def test_a_rare_word_finds_its_record_among_many(store: PostgreSQLStorage) -> None:
    [best, *_] = analysed(store).search_text(Heuristic, "deploy number7", SHOP, limit=3)
    assert best.record.id == "h00007"


def test_a_transaction_counts_what_it_wrote(store: PostgreSQLStorage) -> None:
    with store.transaction() as tx:
        assert tx.word_counts(Heuristic, ["fresh"], SHOP)[1] == {"fresh": 0}
        tx.save(make.a_heuristic(id="new", condition="fresh", strategy="paint"))
        assert tx.word_counts(Heuristic, ["fresh"], SHOP)[1] == {"fresh": 1}


def test_the_best_are_the_same_where_not_all_are_needed(store: PostgreSQLStorage) -> None:
    analysed(store)
    query = "release number8 number10 number999"
    exact = store.matching_ids(Heuristic, query, SHOP, limit=3)
    near = store.matching_ids(Heuristic, query, SHOP, limit=3, exact=False)
    assert [key for key, _ in near] == [key for key, _ in exact] == ["h00008", "h00010", "h00999"]
    assert [score for _, score in near] == pytest.approx([score for _, score in exact], rel=0.01)


def test_common_words_alone_find_records_where_not_all_are_needed(store: PostgreSQLStorage) -> None:
    found = analysed(store).matching_ids(Heuristic, "deploy release", SHOP, limit=20, exact=False)
    assert len(found) == 20


def test_the_words_of_a_small_scope_are_counted_anew_after_another_process_wrote(postgres_dsn: str) -> None:
    with (
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store,
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as elsewhere,
    ):
        store.save(make.a_heuristic(id="h1", condition="fresh", strategy="paint"))
        assert store.word_counts(Heuristic, ["fresh", "paint"], SHOP) == (1, {"fresh": 1, "paint": 1})
        elsewhere.save(make.a_heuristic(id="h2", condition="fresh", strategy="air"))
        assert store.word_counts(Heuristic, ["fresh", "paint"], SHOP) == (2, {"fresh": 2, "paint": 1})
        elsewhere.delete(Heuristic, ["h1"], SHOP)
        assert store.word_counts(Heuristic, ["fresh", "paint"], SHOP) == (1, {"fresh": 1, "paint": 0})


def test_what_is_empty_is_found_once_another_process_wrote_it(postgres_dsn: str) -> None:
    """Records of all kinds are counted at once, so that those of one kind say that there are none of another."""
    with (
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store,
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as elsewhere,
    ):
        agents = Scope(project_id="shop", agent=make.a_heuristic().agent)
        store.save(make.a_heuristic(id="h1"))
        for expected in ([], ["o1"]):
            with store.snapshot() as tx:
                assert [key for key, _ in tx.nearest_ids(Heuristic, [1, 0, 0, 0], agents, exact=False)] == []
                assert [outcome.id for outcome in tx.find(Outcome, agents)] == expected
            if not expected:
                elsewhere.save(make.an_outcome(id="o1"))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 33, 64])
def test_any_number_of_words_is_counted_and_weighed_in_a_small_scope(postgres_dsn: str, count: int) -> None:
    words = [f"word{i}" for i in range(count)]
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save(make.a_heuristic(id="all", condition=" ".join(words), strategy="x"))
        store.save(make.a_heuristic(id="last", condition=words[-1], strategy="x"))
        found = store.matching_ids(Heuristic, " ".join(words), SHOP)
        assert {key for key, _ in found} == {"all", "last"}
        counted = store.word_counts(Heuristic, [*query_terms(" ".join(words)), "nowher"], SHOP)[1]
        assert [*counted.values()] == [*([1] * (count - 1)), 2, 0]


def test_words_weigh_as_much_whether_they_are_counted_first_or_in_the_same_look(postgres_dsn: str) -> None:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_heuristic(id=f"h{i}", condition="deploy " * (1 + i % 3), strategy=f"at night{i % 5}")
            for i in range(30)
        )
        asked = "deploy night1 night2 nowhere"
        with store.snapshot() as tx:
            together = tx.matching_ids(Heuristic, asked, SHOP, limit=30)
            counted = tx.word_counts(Heuristic, query_terms(asked), SHOP)
        with store.snapshot() as tx:
            # What was counted is known by now.
            apart = tx.matching_ids(Heuristic, asked, SHOP, limit=30)
        assert [key for key, _ in together] == [key for key, _ in apart]
        assert [score for _, score in together] == pytest.approx([score for _, score in apart])
        assert counted == (30, {"deploy": 30, "night1": 6, "night2": 6, "nowher": 0})


def test_what_only_fails_the_rest_of_a_predicate_is_counted_and_not_found(postgres_dsn: str) -> None:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save(make.a_heuristic(id="low", condition="deploy", strategy="x", confidence=0.1))
        sure = Compare("confidence", "gt", 0.5)
        assert store.matching_ids(Heuristic, "deploy", SHOP, sure) == []
        assert store.word_counts(Heuristic, ["deploy"], SHOP, sure) == (1, {"deploy": 1})


def test_an_owner_is_counted_anew_after_another_process_wrote(postgres_dsn: str) -> None:
    with (
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store,
        PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as elsewhere,
    ):
        for expected in range(3):
            assert store.size(Heuristic, SHOP) == store.size(Heuristic, SHOP) == expected
            assert (store.size(Heuristic, SHOP) == 0) == (expected == 0)
            elsewhere.save(make.a_heuristic(id=f"h{expected}"))
