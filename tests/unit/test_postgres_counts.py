"""How many records have a word on PostgreSQL: counted in a small scope, from the server's statistics in a large one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.ranking import BUDGET
from alma.testing import builders as make

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
