"""Which strategies mean the same is found out for many at once, and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from alma import ALMA, clock
from alma.bootstrap import open_storage
from alma.embeddings.base import Passage
from alma.embeddings.mock import MockEmbedder
from alma.errors import EmbeddingError
from alma.learning.meanings import Meanings, MeaningWanted
from alma.learning.protocols import LearningProtocol
from alma.retrieval.engine import RetrievalEngine

# Each differs in two words from every other, which words alone do not decide.
CHECKS = ["check the parser thoroughly", "check the queue nightly", "check the form slowly", "check the cache remotely"]


class Counting(MockEmbedder):
    """Notes which texts were encoded together."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        self.asked.append(list(texts))
        return super()._embed(texts)


def test_all_that_words_leave_open_is_asked_for_at_once() -> None:
    embedder = Counting()
    meanings = Meanings(embedder)
    same = meanings.among("check the index weekly", ["restart the server", *CHECKS])
    assert not same("restart the server")
    with pytest.raises(MeaningWanted) as wanted:
        same(CHECKS[1])
    assert set(wanted.value.texts) == {"check the index weekly", *CHECKS}
    assert not embedder.asked
    meanings.learn(wanted.value.texts)
    assert len(embedder.asked) == 1
    same = meanings.among("check the index weekly", CHECKS)
    assert [same(each) for each in CHECKS] == [meanings.same(each, "check the index weekly") for each in CHECKS]
    assert len(embedder.asked) == 1


def test_strategies_whose_meaning_is_known_are_compared_without_asking_again() -> None:
    embedder = Counting()
    meanings = Meanings(embedder)
    meanings.learn(CHECKS)
    found = {(one, other): meanings.among(one, CHECKS)(other) for one in CHECKS for other in CHECKS}
    assert all(found[one, other] is (one == other) for one, other in found)
    assert embedder.asked == [CHECKS]


class Unreliable(MockEmbedder):
    """Can be down."""

    is_down = True

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        if self.is_down:
            raise EmbeddingError("the provider is down")
        return [super(Unreliable, self)._embed(["one meaning"])[0] for _ in texts]


def test_what_cannot_be_embedded_is_compared_by_its_words_and_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, today = Unreliable(), clock.now()
    meanings = Meanings(embedder)
    assert not meanings.same(CHECKS[0], CHECKS[1])
    assert not meanings.among(CHECKS[0], CHECKS)(CHECKS[1])
    assert meanings.same(CHECKS[0], "Checked the parser thoroughly.")
    embedder.is_down = False
    monkeypatch.setattr(clock, "now", lambda: today + timedelta(minutes=2))
    assert meanings.same(CHECKS[0], CHECKS[1])
    assert meanings.among(CHECKS[0], CHECKS)(CHECKS[1])


def test_nothing_that_happened_is_lost_while_the_provider_is_down(place: str) -> None:
    embedder = Unreliable()
    with open_storage(place, embedder.dimension, embedding_model=embedder.model) as store:
        engine = RetrievalEngine(store, embedder)
        alma = ALMA(store, engine, LearningProtocol(store, embedder, engine.index))
        for strategy in CHECKS:
            alma.learn("helena", "Check the shop", "success", strategy)
            alma.learn("helena", "Check the shop", "success", strategy, embedding=[0.5] * embedder.dimension)
        assert store.get_stats("default")["outcomes_count"] == 2 * len(CHECKS)
        assert alma.recommend("Check the shop", "helena", ["check the index weekly"]).strategy is not None
