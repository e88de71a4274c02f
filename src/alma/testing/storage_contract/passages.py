"""Passages: several vectors of one record, of which the best counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from alma.errors import NotFoundError, UnsupportedOperation, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import Compare
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, SHOP

EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]


def found(storage: StorageBackend, vector: Sequence[float], model: str | None = None) -> list[tuple[str, float]]:
    """The ids and rounded cosines of heuristics near a vector."""
    hits = storage.nearest_ids(Heuristic, vector, SHOP, model=model)
    return [(key, round(score, 5)) for key, score in hits]


class PassageContract:
    """A long text is embedded in passages; its record is found by the best of them."""

    def test_a_record_counts_once_with_the_best_of_its_passages(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id="long", embedding=EAST), make.a_heuristic(id="short", embedding=NORTH)])
        storage.put_passages(Heuristic, {"long": [UP, [0, 3, 4, 0]]})
        assert found(storage, UP) == [("long", 1.0), ("short", 0.0)]
        assert found(storage, NORTH) == [("short", 1.0), ("long", 0.6)]
        assert found(storage, EAST) == [("long", 1.0), ("short", 0.0)]

    def test_many_passages_of_one_record_do_not_crowd_out_others(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=key, embedding=NORTH) for key in ("book", "note", "page")])
        storage.put_passages(Heuristic, {"book": [[1, 0, n / 1000, 0] for n in range(200)]})
        assert [hit.record.id for hit in storage.search_vector(Heuristic, EAST, SHOP, limit=3)] == [
            "book",
            "note",
            "page",
        ]

    def test_a_record_is_read_with_its_own_vector(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=EAST)
        storage.save(heuristic)
        storage.put_passages(Heuristic, {heuristic.id: [UP, NORTH]})
        (hit,) = storage.search_vector(Heuristic, UP, SHOP)
        assert hit.record == storage.require(Heuristic, heuristic.id, SHOP) == heuristic

    def test_passages_are_replaced_and_an_empty_list_removes_them(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.put_passages(Heuristic, {"h": [UP, NORTH]})
        storage.put_passages(Heuristic, {"h": [NORTH]})
        assert found(storage, UP) == [("h", 0.0)]
        assert found(storage, NORTH) == [("h", 1.0)]
        storage.put_passages(Heuristic, {"h": []})
        assert found(storage, NORTH) == [("h", 0.0)]
        assert found(storage, EAST) == [("h", 1.0)]

    def test_a_record_may_have_passages_only(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h"))
        storage.put_passages(Heuristic, {"h": [UP]})
        assert found(storage, UP) == [("h", 1.0)]
        assert storage.require(Heuristic, "h", SHOP).embedding is None

    def test_passages_live_as_long_as_the_embedding_they_were_made_with(self, storage: StorageBackend) -> None:
        kept = make.a_heuristic(id="kept", embedding=EAST)
        storage.save_many([kept, make.a_heuristic(id="new", embedding=EAST), make.a_heuristic(id="no", embedding=EAST)])
        storage.put_passages(Heuristic, {"kept": [UP], "new": [UP], "no": [UP]})
        storage.save_many([kept.replace(confidence=0.9), make.a_heuristic(id="new", embedding=NORTH)])
        storage.save(make.a_heuristic(id="no"))
        assert found(storage, UP) == [("kept", 1.0), ("new", 0.0)]
        storage.update(Heuristic, "kept", {"embedding": NORTH}, SHOP)
        assert found(storage, UP) == [("kept", 0.0), ("new", 0.0)]

    def test_passages_of_another_model_stay_with_that_model(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(id="h", embedding=EAST)
        storage.save(heuristic)
        storage.put_vectors(Heuristic, {"h": [1, 0]}, model="other")
        storage.put_passages(Heuristic, {"h": [[0, 1]]}, model="other")
        storage.save(heuristic.replace(embedding=NORTH))
        assert found(storage, [0, 1], "other") == [("h", 1.0)]
        storage.put_vectors(Heuristic, {"h": [1, 1]}, model="other")
        assert found(storage, [0, 1], "other") == [("h", 1.0)]
        with pytest.raises(ValidationError, match="2 dimensions"):
            storage.put_passages(Heuristic, {"h": [[1, 2, 3]]}, model="other")

    def test_what_is_deleted_leaves_no_passage_behind(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.put_passages(Heuristic, {"h": [UP]})
        storage.delete(Heuristic, ["h"], SHOP)
        storage.save(make.a_heuristic(id="h", embedding=NORTH))
        assert found(storage, UP) == [("h", 0.0)]

    def test_ids_are_found_without_reading_records(self, storage: StorageBackend) -> None:
        storage.save_many(
            [make.a_heuristic(id=str(n), confidence=n / 10, embedding=[1, n, 0, 0]) for n in range(4)]
            + [make.a_heuristic(id="elsewhere", project_id="bank", embedding=EAST)]
        )
        hits = storage.search_vector(Heuristic, EAST, SHOP, Compare("confidence", "ge", 0.1), 2)
        ids = storage.nearest_ids(Heuristic, EAST, SHOP, Compare("confidence", "ge", 0.1), 2)
        assert ids == [(hit.record.id, hit.score) for hit in hits]
        assert [key for key, _ in ids] == ["1", "2"]
        assert storage.nearest_ids(Heuristic, EAST, SHOP, limit=0) == []
        with pytest.raises(UnsupportedOperation):
            storage.nearest_ids(Session, EAST, EVERYWHERE)

    @pytest.mark.parametrize("passages", [[EAST], {"h": EAST}, {"h": "abcd"}, {"h": [[1, 2]]}, {"h": None}])
    def test_what_are_no_passages_is_refused(self, storage: StorageBackend, passages: Any) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        with pytest.raises(ValidationError):
            storage.put_passages(Heuristic, passages)
        assert found(storage, EAST) == [("h", 1.0)]

    def test_passages_need_a_record_and_a_kind_with_vectors(self, storage: StorageBackend) -> None:
        with pytest.raises(NotFoundError, match="nobody"):
            storage.put_passages(Memory, {"nobody": [EAST]})
        with pytest.raises(UnsupportedOperation):
            storage.put_passages(Session, {"s": [EAST]})

    def test_new_passages_are_a_change_for_the_indexes(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.register_projection("index", [Heuristic])
        storage.put_passages(Heuristic, {"h": [UP]})
        assert [mark.record_id for mark in storage.pending("index")] == ["h"]
