"""Which strategies mean the same is found out for many at once, and remembered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from alma.embeddings.base import Passage
from alma.embeddings.mock import MockEmbedder
from alma.learning.meanings import Meanings, MeaningWanted

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
