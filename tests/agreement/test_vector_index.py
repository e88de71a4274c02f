"""Random writes from two sides, random searches: a mapped index and the store give the same answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from alma.model.memory import Memory
from alma.model.query import And, Compare
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.strategies import vectors
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning
from tests.support.examples import examples

DIMS = 3
EVERYWHERE = Scope.everywhere()
KEYS = [f"m{n}" for n in range(12)]
# So small that codes, files, sweeps and compaction all take part; the codes look at more rows than there are.
EAGER = Tuning(
    exact_rows=3, exact_share=0, coarse_rows=6, flush_rows=3, inline_rows=15, page_rows=4, sweep_after=2, dead_share=0.1
)

Step = Callable[[StorageBackend], object]

few_vectors = vectors(DIMS) | st.sampled_from([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]])
keys = st.sampled_from(KEYS)
sessions = st.sampled_from([None, "s1", "s2"])


def a_memory(key: str, session: str | None, importance: float, vector: Any) -> Memory:
    return Memory(id=key, content="x", session_id=session, importance_score=importance, embedding=vector)


memories = st.builds(a_memory, keys, sessions, st.sampled_from([0.1, 0.9]), st.none() | few_vectors)
steps: st.SearchStrategy[Step] = st.one_of(
    st.lists(memories, min_size=1, max_size=8).map(lambda batch: lambda store: store.save_many(batch)),
    st.lists(keys, max_size=6).map(lambda gone: lambda store: store.delete(Memory, gone, EVERYWHERE)),
    st.tuples(keys, sessions).map(
        lambda move: lambda store: store.update(Memory, move[0], {"session_id": move[1]}, EVERYWHERE)
    ),
    st.tuples(keys, st.lists(few_vectors, max_size=4)).map(
        lambda put: (
            lambda store: (
                store.put_passages(Memory, {put[0]: put[1]}) if store.get(Memory, put[0], EVERYWHERE) else None
            )
        )
    ),
)
questions = st.tuples(
    few_vectors,
    st.sampled_from([EVERYWHERE, Scope(session_id="s1"), Scope(session_id="s2")]),
    st.sampled_from([And(), Compare("importance_score", "gt", 0.5)]),
    st.integers(1, 15),
)


@examples(40)
@given(
    script=st.lists(st.tuples(st.integers(0, 1), steps, questions, st.booleans()), max_size=12),
)
def test_a_mapped_index_answers_as_its_store_does(
    tmp_path: Path, script: list[tuple[int, Step, tuple[object, Scope, And | Compare, int], bool]]
) -> None:
    path = tmp_path / "alma.db"
    folder = tmp_path / "alma.db.vectors"
    with ExitStack() as stack:
        # Two stores on one file are to each other what two processes are.
        stores = [stack.enter_context(SQLiteStorage(path, embedding_dim=DIMS)) for _ in range(2)]
        indexes = [stack.enter_context(closing(MappedIndex(store, folder, tuning=EAGER))) for store in stores]
        for side, step, (vector, scope, where, limit), settle in script:
            step(stores[side])
            for store, index in zip(stores, indexes, strict=True):
                expected = store.nearest_ids(Memory, vector, scope, where, limit)
                assert index.search(Memory, vector, scope, where, limit) == expected
                if settle:
                    assert index.settle(30)
                    assert index.search(Memory, vector, scope, where, limit) == expected
    for leftover in tmp_path.iterdir():
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
