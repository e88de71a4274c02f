"""Meanings: which strategies are the same, in words or by what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice

from alma.embeddings.base import EmbeddingProvider
from alma.learning.strategies import same_by_words, same_strategy
from alma.model.vector import Vector
from alma.storage.nearest import cosines

_PAIRS_REMEMBERED = 8_192
_VECTORS_REMEMBERED = 2_048
# Of so many strategies, each against so many others.
_ANSWERS_REMEMBERED = 256
# So many strategies are embedded at once: the transaction in which they are compared begins anew each time.
_EMBEDDED_AT_ONCE = 16


class MeaningWanted(Exception):
    """Whether strategies are the same depends on what they mean, and of these that is not known yet."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts


class Meanings:
    """Tells whether two strategies are the same, and remembers what it found out."""

    def __init__(self, embedder: EmbeddingProvider) -> None:
        self._embedder = embedder
        self._by_their_words = lru_cache(maxsize=_PAIRS_REMEMBERED)(same_by_words)
        self._by_meaning: dict[tuple[str, str], bool] = {}
        # Of each strategy that was asked about, which others are the same: what was found out stays true.
        self._answers: dict[str, dict[str, bool]] = {}
        self._vectors: dict[str, Vector] = {}

    def same(self, one: str, other: str) -> bool:
        """Whether two strategies are the same, in words or by meaning."""
        while (known := self._known(one, other)) is None:
            self.learn([one, other])
        return known

    def among(self, one: str, others: Iterable[str]) -> Callable[[str], bool]:
        """What says which of these are the same as one; it embeds nothing, but raises `MeaningWanted`.

        The others are gone through only then.
        """
        answers = self._answers_about(one)

        def same(other: str) -> bool:
            found = answers.get(other)
            if found is None:
                found = self._known(one, other)
                if found is None:
                    unsure = (each for each in dict.fromkeys((other, *others)) if self._known(one, each) is None)
                    raise MeaningWanted([one, *islice(unsure, _EMBEDDED_AT_ONCE)])
                answers[other] = found
            return found

        return same

    def _answers_about(self, strategy: str) -> dict[str, bool]:
        known = self._answers.get(strategy)
        if known is None or len(known) > _ANSWERS_REMEMBERED:
            if len(self._answers) >= _ANSWERS_REMEMBERED:
                self._answers.clear()
            known = self._answers[strategy] = {}
        return known

    def learn(self, texts: Sequence[str]) -> None:
        """Find out what these strategies mean."""
        new = [text for text in texts if text not in self._vectors]
        if len(self._vectors) + len(new) > _VECTORS_REMEMBERED:
            self._vectors.clear()
            new = list(texts)
        self._vectors.update(zip(new, self._embedder.encode_batch(new), strict=True))

    def _known(self, one: str, other: str) -> bool | None:
        """Whether two strategies are the same, as far as is known without embedding them."""
        # Which is compared with which does not matter.
        pair = (one, other) if one <= other else (other, one)
        by_words = self._by_their_words(*pair)
        known = self._by_meaning.get(pair) if by_words is None else by_words
        if known is not None:
            return known
        mine, theirs = self._vectors.get(one), self._vectors.get(other)
        if mine is None or theirs is None:
            return None
        if len(self._by_meaning) >= _PAIRS_REMEMBERED:
            self._by_meaning.clear()
        found = self._by_meaning[pair] = same_strategy(one, other, cosines(mine, [theirs.to_bytes()])[0])
        return found
