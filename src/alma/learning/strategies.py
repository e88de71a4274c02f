"""Strategies: whether two of them are the same or opposite, as the judge says."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from hashlib import blake2b
from threading import Lock

from alma.errors import ProviderError
from alma.judge.base import OTHER, SAME, Judge, Judgement, normalised
from alma.judge.default import default_judge
from alma.learning.tuning import LESSONS, LessonTuning
from alma.text.prose import is_prose
from alma.text.tokens import short_text_cache, terms

_log = logging.getLogger("alma.learning")

_CACHED_TEXTS = 10_000
_CACHED_VERDICTS = 16_384
_CACHED_LISTS = 64
_LONGEST_KEY = 1_000
# Limits for one list of strategies: the number of pairs judged (those that share most words), and the share they need.
_MATCHED_PAIRS = 32
_LEAST_SHARED = 0.15


@short_text_cache(_CACHED_TEXTS)
def strategy_key(text: str) -> str:
    """The strategy without differences in case, spaces and punctuation at its end."""
    return normalised(text)


@short_text_cache(_CACHED_TEXTS)
def strategy_words(text: str) -> frozenset[str]:
    """The stemmed words of a strategy; they only preselect what is judged."""
    return frozenset(terms(text))


def _short_key(text: str) -> str:
    """The key of a strategy, or a digest of a long one, so that the cache of judgements has bounded memory."""
    key = strategy_key(text)
    return key if len(key) <= _LONGEST_KEY else blake2b(key.encode(errors="surrogatepass")).hexdigest()


def shared_words(one: str, other: str) -> float:
    """The Jaccard similarity of the words of two strategies."""
    return word_overlap(strategy_words(one), strategy_words(other))


def word_overlap(words: Set[str], others: Set[str]) -> float:
    """The Jaccard similarity of two sets of words."""
    return len(words & others) / len(words | others) if words | others else 0.0


class StrategyComparer:
    """Compares strategies with the judge, and caches its judgements."""

    def __init__(self, judge: Judge | None = None, tuning: LessonTuning = LESSONS) -> None:
        self._judge = judge
        self.tuning = tuning
        self._judgements: OrderedDict[tuple[str, str], Judgement] = OrderedDict()
        self._lock = Lock()
        # For each list of strategies, which of them other texts mean.
        self._matches: OrderedDict[tuple[str, ...], dict[str, int]] = OrderedDict()

    @property
    def judge(self) -> Judge:
        """The judge; the default one is loaded when it is first needed."""
        if self._judge is None:
            self._judge = default_judge()
        return self._judge

    @judge.setter
    def judge(self, judge: Judge) -> None:
        self._judge = judge
        self._judgements.clear()
        self._matches.clear()

    def cached(self, one: str, other: str) -> Judgement | None:
        """The judgement of two strategies if that needs no call of the judge."""
        key = (_short_key(one), _short_key(other))
        return SAME if key[0] == key[1] else self._judgements.get(key)

    def judge_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Judge those pairs that are not cached, in one call; code is never compared by the judge."""
        new = {(_short_key(one), _short_key(other)): (one, other) for one, other in pairs}
        new = {key: pair for key, pair in new.items() if key[0] != key[1] and key not in self._judgements}
        if not new:
            return
        prose = {key: pair for key, pair in new.items() if is_prose(pair[0]) and is_prose(pair[1])}
        found = dict(zip(prose, self._compare(list(prose.values())), strict=True))
        with self._lock:
            self._judgements.update((key, found.get(key, OTHER)) for key in new)
            while len(self._judgements) > _CACHED_VERDICTS:
                self._judgements.popitem(last=False)

    def _compare(self, pairs: list[tuple[str, str]]) -> list[Judgement]:
        try:
            return self.judge.compare(pairs) if pairs else []
        except ProviderError as exc:
            # An outcome must not be lost because a language model cannot be reached.
            _log.warning("strategies are compared by their words alone", extra={"error": str(exc)})
            return [OTHER] * len(pairs)

    def judgement(self, one: str, other: str) -> Judgement:
        """The relation of one strategy to the other."""
        found = self.cached(one, other)
        if found is None:
            self.judge_all([(one, other)])
            found = self.cached(one, other)
        return found if found is not None else self.judge.compare([(one, other)])[0]

    def same(self, one: str, other: str) -> bool:
        """Whether both say the same."""
        return self.judgement(one, other)["same"] >= self.tuning.same

    def opposite(self, one: str, other: str) -> bool:
        """Whether one says the opposite of the other."""
        return self.judgement(one, other)["opposite"] >= self.tuning.opposite

    def matches(self, texts: Iterable[str], strategies: Sequence[str]) -> list[int]:
        """For each text the number of the strategy that it means, or -1; equal words go before similar meanings."""
        wanted, key = list(texts), tuple(strategies)
        found = self._matches[key] = self._matches.pop(key, {})
        if len(self._matches) > _CACHED_LISTS:
            self._matches.popitem(last=False)
        new = list(dict.fromkeys(text for text in wanted if text not in found))
        if new:
            self._match(new, strategies, found)
        return [found[text] for text in wanted]

    def _match(self, texts: Sequence[str], strategies: Sequence[str], found: dict[str, int]) -> None:
        exact = {strategy_key(strategy): i for i, strategy in reversed(list(enumerate(strategies)))}
        found.update((text, exact.get(strategy_key(text), -1)) for text in texts)
        left = [text for text in texts if found[text] < 0]
        shared = ((shared_words(text, each), text, i) for text in left for i, each in enumerate(strategies))
        likely = sorted((each for each in shared if each[0] >= _LEAST_SHARED), key=lambda each: -each[0])
        likely = likely[:_MATCHED_PAIRS]
        self.judge_all((text, strategies[i]) for _, text, i in likely)
        for _, text, i in likely:
            if found[text] < 0 and self.same(text, strategies[i]):
                found[text] = i
