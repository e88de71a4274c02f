"""The best hit of each source is among the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from alma.embeddings.base import EmbeddingProvider, Passage
from alma.model.learning import Heuristic
from alma.model.slice import MemorySlice
from alma.model.vector import Vector
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import DEFAULT_MODEL, StorageBackend
from alma.testing import builders as make

ASKED = "granite harbor lantern"
MEANT, NEAR, FAR = (1.0, 0.0, 0.0, 0.0), (0.8, 0.6, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)


class Pointing(EmbeddingProvider):
    """Whatever is asked, it points one way."""

    @property
    def model(self) -> str:
        return DEFAULT_MODEL

    @property
    def dimension(self) -> int:
        return len(MEANT)

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        return [[Passage(Vector(MEANT), 1)] for _ in texts]


@pytest.fixture
def dims() -> int:
    return len(MEANT)


@pytest.fixture
def embedder() -> EmbeddingProvider:
    return Pointing()


def lesson(name: str, words: str, vector: Sequence[float], successes: int = 10) -> Heuristic:
    values: dict[str, Any] = {"condition": words, "strategy": f"do {name}", "embedding": Vector(vector)}
    return make.a_heuristic(id=name, occurrence_count=10, success_count=successes, confidence=0.9, **values)


def asked(engine: RetrievalEngine, top_k: int = 5) -> MemorySlice:
    found = engine.retrieve(ASKED, "helena", "shop", top_k=top_k, kinds=[Heuristic], weak=True)
    for each in found.explanations.values():
        assert each.score == pytest.approx(sum(each.terms.values()))
    scores = [found.explanation_of(record.key).score for record in found]
    assert scores == sorted(scores, reverse=True)
    return found


def ids(found: MemorySlice) -> list[str]:
    return [str(record.key) for record in found]


def many_alike(count: int, words: str, vector: Sequence[float]) -> list[Heuristic]:
    return [lesson(f"alike{n:02}", f"{words} number{n}", vector) for n in range(count)]


def test_the_nearest_is_handed_over_among_many_that_are_better_otherwise(
    engine: RetrievalEngine, store: StorageBackend
) -> None:
    store.save_many([*many_alike(40, ASKED, NEAR), lesson("meant", "granite", MEANT, successes=0)])
    found = asked(engine)
    assert "meant" in ids(found)
    assert found.explanation_of("meant").terms["top_match"] > 0


def test_what_has_the_most_words_is_handed_over_among_many_that_are_nearer(
    engine: RetrievalEngine, store: StorageBackend
) -> None:
    store.save_many([*many_alike(40, "granite harbor", MEANT), lesson("worded", ASKED, FAR, successes=0)])
    assert "worded" in ids(asked(engine))


def test_both_are_handed_over(engine: RetrievalEngine, store: StorageBackend) -> None:
    meant, worded = lesson("meant", "granite", MEANT, successes=0), lesson("worded", ASKED, FAR, successes=0)
    store.save_many([*many_alike(40, "granite harbor", NEAR), meant, worded])
    assert {"meant", "worded"} < set(ids(asked(engine)))


def test_who_wants_one_memory_gets_the_one_with_the_best_score(engine: RetrievalEngine, store: StorageBackend) -> None:
    store.save_many([*many_alike(40, ASKED, NEAR), lesson("meant", "granite", MEANT, successes=0)])
    assert ids(asked(engine, top_k=1)) != ["meant"]


def test_why_something_made_room_is_told(engine: RetrievalEngine, store: StorageBackend) -> None:
    store.save_many([*many_alike(40, ASKED, NEAR), lesson("meant", "granite", MEANT, successes=0)])
    found = asked(engine)
    left_out = next(f"alike{n:02}" for n in range(40) if f"alike{n:02}" not in ids(found))
    dropped = found.why_not(left_out)
    assert dropped is not None
    assert dropped.stage == "rank"


def test_the_nearest_memory_is_read_although_whole_conversations_score_higher(
    engine: RetrievalEngine, store: StorageBackend
) -> None:
    shared: dict[str, Any] = {"layer_project": True, "event_time": make.NOON}
    turns = [
        make.a_memory(content=f"{ASKED} number{n}", session_id="long", embedding=Vector(NEAR), **shared)
        for n in range(60)
    ]
    meant = make.a_memory(id="meant", content="something else", embedding=Vector(MEANT), **shared)
    store.save_many([make.a_session(id="long"), *turns, meant])
    assert "meant" in ids(engine.retrieve(ASKED, "helena", "shop", top_k=5, weak=True))
