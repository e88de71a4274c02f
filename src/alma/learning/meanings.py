"""Meanings: which strategies are the same, in words or by what they mean."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.errors import EmbeddingError
from alma.learning.strategies import same_by_words, same_strategy
from alma.model.vector import Vector
from alma.storage.nearest import cosines

_log = logging.getLogger("alma.learning")

_PAIRS_REMEMBERED = 8_192
_VECTORS_REMEMBERED = 2_048
# Of so many strategies, each against so many others.
_ANSWERS_REMEMBERED = 256
# So many strategies are embedded at once: the transaction in which they are compared begins anew each time.
_EMBEDDED_AT_ONCE = 16
# What could not be embedded is asked for again after so long.
_ASKED_AGAIN = timedelta(minutes=1)


class MeaningWanted(Exception):
    """Whether strategies are the same depends on what they mean, and of these that is not known yet."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts


class Meanings:
    """Tells whether two strategies are the same, and remembers what it found out.

    As long as what they mean cannot be found out, words alone tell: what happened must not be lost for that.
    """

    def __init__(self, embedder: EmbeddingProvider) -> None:
        self._embedder = embedder
        self._by_their_words = lru_cache(maxsize=_PAIRS_REMEMBERED)(same_by_words)
        self._by_meaning: dict[tuple[str, str], bool] = {}
        # Of each strategy that was asked about, which others are the same: what was found out stays true.
        self._answers: dict[str, dict[str, bool]] = {}
        self._vectors: dict[str, Vector] = {}
        self._unknown_until: dict[str, datetime] = {}

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
                if not (self._is_unknown(one) or self._is_unknown(other)):
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
        try:
            self._vectors.update(zip(new, self._embedder.encode_batch(new), strict=True))
        except EmbeddingError as exc:
            _log.warning("strategies are compared by their words alone", extra={"error": str(exc)})
            if len(self._unknown_until) >= _VECTORS_REMEMBERED:
                self._unknown_until.clear()
            self._unknown_until.update(dict.fromkeys(new, clock.now() + _ASKED_AGAIN))
        else:
            for text in new:
                self._unknown_until.pop(text, None)

    def _is_unknown(self, text: str) -> bool:
        """Whether there was no way to find out what a strategy means, just now."""
        until = self._unknown_until.get(text)
        return until is not None and clock.now() < until

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
            return False if self._is_unknown(one) or self._is_unknown(other) else None
        if len(self._by_meaning) >= _PAIRS_REMEMBERED:
            self._by_meaning.clear()
        found = self._by_meaning[pair] = same_strategy(one, other, cosines(mine, [theirs.to_bytes()])[0])
        return found
