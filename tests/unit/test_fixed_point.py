"""Vectors in fixed point are read back exactly as they were given."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import Memory, Scope
from alma.embeddings.local import LocalEmbedder
from alma.model.vector import Vector
from alma.storage.nearest import cosines
from alma.storage.sqlite_local import SQLiteStorage

EVERYWHERE = Scope.everywhere()
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
FIXED = st.integers(-32_767, 32_767).map(lambda number: number / 32_768)


@given(st.lists(FLOATS, min_size=1, max_size=5) | st.lists(FIXED, min_size=1, max_size=5))
def test_every_vector_comes_back_as_it_was(numbers: list[float]) -> None:
    vector = Vector(numbers)
    assert Vector.unpacked(vector.packed()) == vector
    assert len(set(cosines(vector, [vector.packed(), vector.to_bytes()]))) == 1


@pytest.mark.parametrize(("numbers", "size"), [([0.5, -0.25], 5), ([1.0, 0.0], 8), ([0.5, 0.1], 8)])
def test_two_bytes_a_component_are_taken_where_that_is_exact(numbers: list[float], size: int) -> None:
    assert len(Vector(numbers).packed()) == size


def test_vectors_of_the_local_model_take_half_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    vector = Vector(LocalEmbedder().encode("The login form needs a token"))
    with SQLiteStorage(path) as store:
        store.save_many([Memory(id="fixed", content="a", embedding=vector), Memory(id="float", content="b")])
        store.update(Memory, "float", {"embedding": Vector([0.1] * 384)}, EVERYWHERE)
        assert store.require(Memory, "fixed", EVERYWHERE).embedding == vector
        nearest = store.search_vector(Memory, vector, EVERYWHERE)
        assert [hit.record.id for hit in nearest] == ["fixed", "float"]
    with closing(sqlite3.connect(path)) as connection:
        sizes = connection.execute("SELECT length(embedding) FROM embeddings ORDER BY memory_id").fetchall()
    assert sizes == [(769,), (1536,)]
