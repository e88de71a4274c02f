"""The contract of vector indexes as tests: subclass the suite and add two fixtures.

class TestMyIndex(VectorContract):
    @pytest.fixture
    def storage(self, tmp_path):
        with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
            yield store

    @pytest.fixture
    def index(self, storage):
        with closing(MyIndex(storage)) as index:
            yield index
"""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from alma.errors import ScopeViolationError, StorageError, UnsupportedOperation, ValidationError
from alma.model.learning import Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.query import And, Compare, Has
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.vectors.base import Nearest, VectorIndex

DIMS = 4
SHOP = Scope(project_id="shop")
EVERYWHERE = Scope.everywhere()
EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]


def ids(found: list[Nearest]) -> list[str]:
    return [each.record_id for each in found]


class VectorContract:
    """The contract of vector indexes."""

    def test_nothing_is_found_where_nothing_is(self, index: VectorIndex) -> None:
        assert index.search(Heuristic, EAST, EVERYWHERE) == []

    def test_the_nearest_by_cosine_come_first_whatever_their_length(
        self, storage: StorageBackend, index: VectorIndex
    ) -> None:
        vectors = {
            "same": [2, 0, 0, 0],
            "near": [30, 3, 0, 0],
            "right": [0, 5, 0, 0],
            "opposite": [-0.1, 0, 0, 0],
            "zero": [0, 0, 0, 0],
            "huge": [3e38, 3e38, 0, 0],
        }
        storage.save_many([make.a_heuristic(id=key, embedding=vector) for key, vector in vectors.items()])
        found = index.search(Heuristic, [0.001, 0, 0, 0], SHOP)
        assert ids(found) == ["same", "near", "huge", "right", "zero", "opposite"]
        assert [each.cosine for each in found] == pytest.approx([1, 0.99504, 0.70711, 0, 0, -1], abs=1e-5)

    def test_ids_break_ties(self, storage: StorageBackend, index: VectorIndex) -> None:
        storage.save_many([make.a_heuristic(id=f"{n:03}", embedding=EAST) for n in reversed(range(100))])
        assert ids(index.search(Heuristic, EAST, SHOP, limit=3)) == ["000", "001", "002"]

    def test_it_finds_what_the_store_finds(self, storage: StorageBackend, index: VectorIndex) -> None:
        source = random.Random(7)
        storage.save_many(
            make.a_heuristic(
                id=f"{n:03}",
                agent=f"agent {n % 5}",
                confidence=n % 10 / 10,
                embedding=[source.gauss() for _ in range(DIMS)],
            )
            for n in range(300)
        )
        for scope in (EVERYWHERE, SHOP, Scope(agent="agent 3"), Scope(project_id="shop", agent=("agent 1", "nobody"))):
            for where in (And(), Compare("confidence", "ge", 0.8), Compare("id", "eq", "042")):
                for limit in (1, 7, 500):
                    wanted = [source.gauss() for _ in range(DIMS)]
                    exact = storage.nearest_ids(Heuristic, wanted, scope, where, limit)
                    assert index.search(Heuristic, wanted, scope, where, limit) == [Nearest(*pair) for pair in exact]

    # ------------------------------------------------------------------ scope

    def test_an_agent_with_few_records_finds_all_of_them_beside_one_with_many(
        self, storage: StorageBackend, index: VectorIndex
    ) -> None:
        crowd = [make.a_heuristic(agent="big", embedding=[1, 0, 0, n / 1000]) for n in range(500)]
        own = [make.a_heuristic(id=f"own {n}", agent="small", embedding=[0, 1, n, 0]) for n in range(5)]
        storage.save_many([*crowd, *own])
        found = index.search(Heuristic, EAST, Scope(project_id="shop", agent="small"), limit=5)
        assert sorted(ids(found)) == [f"own {n}" for n in range(5)]

    def test_kinds_and_owners_are_kept_apart(self, storage: StorageBackend, index: VectorIndex) -> None:
        storage.save_many(
            [
                make.a_heuristic(id="heuristic", embedding=EAST),
                make.an_outcome(id="outcome", embedding=EAST),
                make.a_memory(id="ana", session_id="s", embedding=EAST),
                make.a_memory(id="bob", user_id="bob", project_id=None, embedding=EAST),
            ]
        )
        assert ids(index.search(Heuristic, EAST, EVERYWHERE)) == ["heuristic"]
        assert ids(index.search(Outcome, EAST, SHOP)) == ["outcome"]
        assert ids(index.search(Memory, EAST, EVERYWHERE)) == ["ana", "bob"]
        assert ids(index.search(Memory, EAST, Scope(user_id="bob"))) == ["bob"]
        assert ids(index.search(Memory, EAST, Scope(session_id="s", user_id="ana"))) == ["ana"]
        assert index.search(Heuristic, EAST, Scope(agent=())) == []

    def test_a_search_can_be_narrowed_by_any_predicate(self, storage: StorageBackend, index: VectorIndex) -> None:
        storage.save_many([make.a_memory(id=f"{n:03}", embedding=[1, n / 1000, 0, 0]) for n in range(200)])
        storage.save(make.a_memory(id="tagged", tags=["x"], embedding=NORTH))
        assert ids(index.search(Memory, EAST, SHOP, Has("tags", "x"))) == ["tagged"]

    # ------------------------------------------------------------------ consistency with the store

    def test_every_commit_is_seen_at_once(self, storage: StorageBackend, index: VectorIndex) -> None:
        heuristic = make.a_heuristic(id="h", confidence=0.5, embedding=EAST)
        storage.save(heuristic)
        assert index.search(Heuristic, EAST, SHOP) == [("h", 1.0)]
        storage.save(heuristic.replace(embedding=NORTH))
        assert index.search(Heuristic, EAST, SHOP) == [("h", 0.0)]
        storage.update(Heuristic, "h", {"confidence": 0.9}, SHOP)
        assert ids(index.search(Heuristic, EAST, SHOP, Compare("confidence", "eq", 0.9))) == ["h"]
        assert index.search(Heuristic, EAST, SHOP, Compare("confidence", "eq", 0.5)) == []
        storage.save(heuristic.replace(embedding=None))
        assert index.search(Heuristic, EAST, SHOP) == []

    def test_what_is_deleted_is_found_no_more(self, storage: StorageBackend, index: VectorIndex) -> None:
        storage.save_many([make.a_heuristic(id=f"{n:03}", embedding=[1, n / 1000, 0, 0]) for n in range(100)])
        assert ids(index.search(Heuristic, EAST, SHOP, limit=2)) == ["000", "001"]
        storage.delete(Heuristic, [f"{n:03}" for n in range(98)], SHOP)
        assert ids(index.search(Heuristic, EAST, SHOP, limit=2)) == ["098", "099"]
        storage.save(make.a_heuristic(id="000", embedding=EAST))
        assert ids(index.search(Heuristic, EAST, SHOP, limit=2)) == ["000", "098"]

    def test_a_record_that_moves_is_found_where_it_is(self, storage: StorageBackend, index: VectorIndex) -> None:
        storage.save_many([make.a_session(id="s"), make.a_memory(id="m", session_id="s", embedding=EAST)])
        assert ids(index.search(Memory, EAST, Scope(session_id="s"))) == ["m"]
        storage.update(Memory, "m", {"session_id": "t"}, EVERYWHERE)
        assert ids(index.search(Memory, EAST, Scope(session_id="t"))) == ["m"]
        storage.update(Memory, "m", {"session_id": "s"}, EVERYWHERE)
        storage.delete(Session, ["s"], EVERYWHERE)
        assert index.search(Memory, EAST, Scope(session_id="s")) == []
        assert ids(index.search(Memory, EAST, SHOP)) == ["m"]

    def test_a_transaction_sees_its_own_writes_and_no_one_else_does(
        self, storage: StorageBackend, index: VectorIndex
    ) -> None:
        storage.save(make.a_heuristic(id="before", embedding=EAST))
        assert ids(index.search(Heuristic, EAST, SHOP)) == ["before"]
        with pytest.raises(RuntimeError), storage.transaction() as tx:
            tx.save(make.a_heuristic(id="inside", embedding=EAST))
            tx.delete(Heuristic, ["before"], SHOP)
            assert ids(index.search(Heuristic, EAST, SHOP)) == ["inside"]
            raise RuntimeError
        assert ids(index.search(Heuristic, EAST, SHOP)) == ["before"]
        storage.save(make.a_heuristic(id="later", embedding=EAST))
        assert ids(index.search(Heuristic, EAST, SHOP)) == ["before", "later"]

    # ------------------------------------------------------------------ passages

    def test_a_record_is_found_once_by_the_best_of_its_passages(
        self, storage: StorageBackend, index: VectorIndex
    ) -> None:
        storage.save_many([make.a_heuristic(id=key, embedding=NORTH) for key in ("book", "note", "page")])
        storage.put_passages(Heuristic, {"book": [[1, 0, n / 1000, 0] for n in range(200)]})
        found = index.search(Heuristic, EAST, SHOP, limit=2)
        assert found == [("book", 1.0), ("note", 0.0)]
        storage.put_passages(Heuristic, {"book": [UP]})
        assert index.search(Heuristic, EAST, SHOP, limit=1) == [("book", 0.0)]

    # ------------------------------------------------------------------ queries, threads, close

    @pytest.mark.parametrize("vector", ["abcd", [1, 2, 3], [float("nan")] * 4, [], None])
    def test_an_invalid_vector_of_the_model_is_refused(self, index: VectorIndex, vector: Any) -> None:
        with pytest.raises(ValidationError):
            index.search(Heuristic, vector, SHOP)

    def test_a_question_that_makes_no_sense_is_refused(self, index: VectorIndex) -> None:
        with pytest.raises(ScopeViolationError, match="everywhere"):
            index.search(Heuristic, EAST, None)  # type: ignore[arg-type]
        with pytest.raises(ScopeViolationError, match="session_id"):
            index.search(Heuristic, EAST, Scope(session_id="s"))
        with pytest.raises(ValidationError):
            index.search(Heuristic, EAST, SHOP, Compare("nope", "eq", 1))
        with pytest.raises(ValidationError):
            index.search(Heuristic, EAST, SHOP, limit=-1)
        with pytest.raises(UnsupportedOperation):
            index.search(Session, EAST, EVERYWHERE)
        assert index.search(Heuristic, EAST, SHOP, limit=0) == []

    def test_threads_search_while_others_write(self, storage: StorageBackend, index: VectorIndex) -> None:
        missed: list[str] = []

        def write_and_look(name: str) -> None:
            for n in range(15):
                key = f"{name} {n}"
                storage.save(make.a_heuristic(id=key, agent=name, embedding=[1, n, 0, 0]))
                if key not in ids(index.search(Heuristic, [1, n, 0, 0], Scope(agent=name), limit=20)):
                    missed.append(key)
                if n % 3 == 0:
                    storage.delete(Heuristic, [key], SHOP)
                    if key in ids(index.search(Heuristic, [1, n, 0, 0], SHOP, limit=100)):
                        missed.append(f"no deletion of {key}")

        threads = [threading.Thread(target=write_and_look, args=(f"writer {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert missed == []

    def test_after_closing_it_says_so(self, storage: StorageBackend, index: VectorIndex) -> None:
        index.close()
        index.close()
        with pytest.raises(StorageError, match="closed"):
            index.search(Heuristic, EAST, SHOP)
        assert storage.count(Heuristic, EVERYWHERE) == 0
