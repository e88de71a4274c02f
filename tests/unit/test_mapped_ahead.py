"""A scan that the mapped index begins before it is asked is used for the very same question, and never otherwise."""

from __future__ import annotations

import os
import random
import signal
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from alma.errors import ValidationError
from alma.model.learning import Heuristic
from alma.model.query import EVERYTHING, Compare
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from alma.vectors.base import Foresighted
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning

DIMS = 16
EVERYWHERE = Scope.everywhere()
BY_CODES = Tuning(exact_rows=20, exact_share=0.0, coarse_rows=40, flush_rows=10)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
        store.save_many([make.a_heuristic(id=f"h{n}", agent="helena", embedding=vector(n)) for n in range(200)])
        store.save_many([make.a_heuristic(id=f"v{n}", agent="victor", embedding=vector(-n)) for n in range(100)])
        yield store


@pytest.fixture
def index(store: SQLiteStorage, tmp_path: Path) -> Iterator[MappedIndex]:
    with closing(MappedIndex(store, tmp_path / "vectors", tuning=BY_CODES)) as index:
        assert index.settle(30)
        yield index


def vector(seed: object) -> list[float]:
    source = random.Random(repr(seed))
    return [source.gauss() for _ in range(DIMS)]


def expected(index: MappedIndex, wanted: list[float], scope: Scope = EVERYWHERE) -> None:
    index.expect(Heuristic, wanted, scope, EVERYTHING, 8)


def agrees(store: SQLiteStorage, index: MappedIndex, wanted: list[float], scope: Scope = EVERYWHERE) -> bool:
    return index.search(Heuristic, wanted, scope, limit=8) == store.nearest_ids(Heuristic, wanted, scope, limit=8)


def test_what_was_expected_is_found_as_if_it_had_not_been(store: SQLiteStorage, index: MappedIndex) -> None:
    assert isinstance(index, Foresighted)
    for scope in (EVERYWHERE, Scope(agent="helena"), Scope(agent="victor"), Scope(agent="nobody")):
        wanted = vector("wanted")
        with store.snapshot():
            expected(index, wanted, scope)
            assert agrees(store, index, wanted, scope)


def test_a_snapshot_that_is_held_sees_neither_what_is_stored_nor_deleted_meanwhile(
    store: SQLiteStorage, index: MappedIndex, tmp_path: Path
) -> None:
    wanted = vector(7)
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as another, store.snapshot():
        expected(index, wanted)
        another.save(make.a_heuristic(id="new", agent="helena", embedding=wanted))
        another.delete(Heuristic, ["h7"], EVERYWHERE)
        assert agrees(store, index, wanted)
        assert index.search(Heuristic, wanted, EVERYWHERE, limit=8)[0].record_id == "h7"
    assert index.search(Heuristic, wanted, EVERYWHERE, limit=8)[0].record_id == "new"


def test_what_is_stored_after_a_search_was_expected_is_found(store: SQLiteStorage, index: MappedIndex) -> None:
    expected(index, vector("wanted"))
    store.save(make.a_heuristic(id="new", agent="helena", embedding=vector("wanted")))
    assert index.search(Heuristic, vector("wanted"), EVERYWHERE, limit=8)[0].record_id == "new"


def test_what_is_deleted_after_a_search_was_expected_is_not_found(store: SQLiteStorage, index: MappedIndex) -> None:
    wanted = vector(7)
    expected(index, wanted)
    store.delete(Heuristic, ["h7"], EVERYWHERE)
    assert "h7" not in {each.record_id for each in index.search(Heuristic, wanted, EVERYWHERE, limit=8)}
    # By now it is known to be gone, and as many others are found.
    expected(index, wanted)
    assert agrees(store, index, wanted)


def test_another_question_than_the_expected_one_is_answered(store: SQLiteStorage, index: MappedIndex) -> None:
    with store.snapshot():
        _ask_otherwise(store, index)


def _ask_otherwise(store: SQLiteStorage, index: MappedIndex) -> None:
    expected(index, vector("wanted"), Scope(agent="helena"))
    assert agrees(store, index, vector("wanted"), Scope(agent="victor"))
    expected(index, vector("wanted"))
    assert agrees(store, index, vector("other"))
    index.expect(Heuristic, vector("wanted"), EVERYWHERE, EVERYTHING, 2)
    assert agrees(store, index, vector("wanted"))
    index.expect(Heuristic, vector("wanted"), EVERYWHERE, Compare("agent", "eq", "victor"), 8)
    assert agrees(store, index, vector("wanted"))


def test_threads_that_expect_at_once_get_each_their_own(store: SQLiteStorage, index: MappedIndex) -> None:
    together = threading.Barrier(8)

    def ask(number: int) -> bool:
        together.wait(30)
        found = []
        for turn in range(20):
            wanted = vector((number, turn))
            with store.snapshot():
                expected(index, wanted)
                found.append(agrees(store, index, wanted))
        return all(found)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(8)))


def test_a_forked_process_searches_on(store: SQLiteStorage, index: MappedIndex) -> None:
    for turn in range(3):
        wanted = vector(turn)
        with store.snapshot():
            expected(index, wanted)
            # The last is another one than was expected, so that what was begun is of no use.
            assert agrees(store, index, wanted if turn < 2 else vector("other"))
    with warnings.catch_warnings():
        # Newer Pythons warn of what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        # Whoever waits for a thread that stayed behind is ended.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        found = []
        for turn in range(3):
            wanted = vector(("child", turn))
            with store.snapshot():
                expected(index, wanted)
                found.append(agrees(store, index, wanted))
        os._exit(0 if all(found) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert agrees(store, index, vector("wanted"))


def test_what_is_wrong_with_a_search_is_said_when_it_is_expected(index: MappedIndex) -> None:
    with pytest.raises(ValidationError):
        expected(index, [1.0, 2.0])


def test_a_closed_index_expects_nothing(store: SQLiteStorage, index: MappedIndex) -> None:
    expected(index, vector("wanted"))
    index.close()
    expected(index, vector("wanted"))
    assert not any(thread.name.startswith("alma-vectors-ahead") and thread.is_alive() for thread in _after_a_while())


def _after_a_while() -> list[threading.Thread]:
    for thread in threading.enumerate():
        if thread.name.startswith("alma-vectors-ahead"):
            thread.join(10)
    return threading.enumerate()
