"""Strategies: what two of them are to each other, as the judge says, and what was judged already."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from alma.errors import ProviderError
from alma.judge.base import Judge, Judgement
from alma.judge.default import default_judge
from alma.judge.strict import OTHER, SAME, normalised
from alma.text.tokens import terms

_log = logging.getLogger("alma.learning")

_KEYS_REMEMBERED = 10_000
# Of 2,860 clusters of sentences this leaves out 1 % of the texts, of shell commands 97 %, of Python snippets 94 %.
_WORDS_OF_PROSE = 0.8
_AROUND_WORDS = ".,;:!?\"'()“”‘’„«»…"
_INSIDE_WORDS = "-'’/%."
_VERDICTS_REMEMBERED = 16_384


@dataclass(frozen=True, slots=True)
class Tuning:
    """From which probability on a judgement decides; measured on held-out clusters of strategies, see decision 0019.

    From `same` on, two strategies are one lesson; from `opposite` on, a success of one weakens the rule of the other.
    From `linked` on, a rule names another one that says more, less or the opposite. `pairs` is how many are judged for
    one outcome at most.
    """

    same: float = 0.7
    opposite: float = 0.85
    linked: float = 0.7
    pairs: int = 16


TUNING = Tuning()


@lru_cache(maxsize=_KEYS_REMEMBERED)
def strategy_key(text: str) -> str:
    """What two spellings of a strategy have in common: everything but case, spaces and punctuation at the end."""
    return normalised(text)


@lru_cache(maxsize=_KEYS_REMEMBERED)
def strategy_words(text: str) -> frozenset[str]:
    """The words of a strategy without inflection; they only preselect what is judged."""
    return frozenset(terms(text))


@lru_cache(maxsize=_KEYS_REMEMBERED)
def is_prose(text: str) -> bool:
    """Whether a text consists of words; the judge knows sentences, and nothing of code, commands and JSON."""
    words = text.split()
    return sum(map(_is_word, words)) >= _WORDS_OF_PROSE * len(words)


def _is_word(token: str) -> bool:
    bare = token.strip(_AROUND_WORDS)
    return bare[:1].isalnum() and all(each.isalnum() or each in _INSIDE_WORDS for each in bare)


def shared_words(one: str, other: str) -> float:
    """The share of all the words of two strategies that both have."""
    mine, theirs = strategy_words(one), strategy_words(other)
    return len(mine & theirs) / max(1, len(mine | theirs))


class Strategies:
    """Compares strategies by the judge; what was judged once is known without it."""

    def __init__(self, judge: Judge | None = None, tuning: Tuning = TUNING) -> None:
        self._judge = judge
        self.tuning = tuning
        self._verdicts: OrderedDict[tuple[str, str], Judgement] = OrderedDict()
        self._lock = Lock()

    @property
    def judge(self) -> Judge:
        """The judge; the default one is loaded when it is first needed."""
        if self._judge is None:
            self._judge = default_judge()
        return self._judge

    @judge.setter
    def judge(self, judge: Judge) -> None:
        self._judge = judge
        self._verdicts.clear()

    def known(self, one: str, other: str) -> Judgement | None:
        """What one strategy is to the other, if that is known without asking the judge."""
        key = (strategy_key(one), strategy_key(other))
        return SAME if key[0] == key[1] else self._verdicts.get(key)

    def consider(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Judge those of these pairs that are not known yet, all in one call; code is only compared strictly."""
        new = {(strategy_key(one), strategy_key(other)): (one, other) for one, other in pairs}
        new = {key: pair for key, pair in new.items() if key[0] != key[1] and key not in self._verdicts}
        if not new:
            return
        asked = {key: pair for key, pair in new.items() if is_prose(pair[0]) and is_prose(pair[1])}
        found = dict(zip(asked, self._compared(list(asked.values())), strict=True))
        with self._lock:
            self._verdicts.update((key, found.get(key, OTHER)) for key in new)
            while len(self._verdicts) > _VERDICTS_REMEMBERED:
                self._verdicts.popitem(last=False)

    def _compared(self, pairs: list[tuple[str, str]]) -> list[Judgement]:
        try:
            return self.judge.compare(pairs) if pairs else []
        except ProviderError as exc:
            # What happened must not be lost because a language model cannot be reached.
            _log.warning("strategies are compared by their words alone", extra={"error": str(exc)})
            return [OTHER] * len(pairs)

    def judged(self, one: str, other: str) -> Judgement:
        """What one strategy is to the other."""
        found = self.known(one, other)
        if found is None:
            self.consider([(one, other)])
            found = self.known(one, other)
        return found if found is not None else self.judge.compare([(one, other)])[0]

    def same(self, one: str, other: str) -> bool:
        """Whether both say to do the same."""
        return self.judged(one, other)["same"] >= self.tuning.same

    def opposite(self, one: str, other: str) -> bool:
        """Whether one says to do what the other says not to do."""
        return self.judged(one, other)["opposite"] >= self.tuning.opposite


_ANSWERS_REMEMBERED = 100_000
# So many pairs are judged for one list at most, those that share most of their words.
_JUDGED = 32
_LEAST_SHARED = 0.15


class Matching:
    """Finds the strategy that another text says, too; what was found out is remembered for each list of strategies."""

    def __init__(self, strategies: Strategies, most: int = _ANSWERS_REMEMBERED) -> None:
        self._judged = strategies
        self._most = most
        self._found: dict[tuple[str, ...], dict[str, int]] = {}
        self._remembered = 0

    def numbers(self, texts: Iterable[str], strategies: Sequence[str]) -> list[int]:
        """Which of the strategies each text is, by its number, or -1; the same words go before similar ones."""
        asked = list(texts)
        found = self._about(tuple(strategies))
        new = [text for text in dict.fromkeys(asked) if text not in found]
        if new:
            self._remembered += len(new)
            self._find(new, strategies, found)
        return [found[text] for text in asked]

    def _about(self, strategies: tuple[str, ...]) -> dict[str, int]:
        """What was found out about these strategies; all is found out anew once it has become too much."""
        if self._remembered > self._most:
            self._found.clear()
            self._remembered = 0
        if strategies not in self._found:
            self._remembered += len(strategies)
            self._found[strategies] = {}
        return self._found[strategies]

    def _find(self, texts: Iterable[str], strategies: Sequence[str], found: dict[str, int]) -> None:
        exact = {strategy_key(strategy): i for i, strategy in reversed(list(enumerate(strategies)))}
        found.update((text, exact.get(strategy_key(text), -1)) for text in texts)
        left = [text for text in texts if found[text] < 0]
        shared = ((shared_words(text, each), text, i) for text in left for i, each in enumerate(strategies))
        likely = sorted((each for each in shared if each[0] >= _LEAST_SHARED), key=lambda each: -each[0])[:_JUDGED]
        self._judged.consider((text, strategies[i]) for _, text, i in likely)
        for _, text, i in likely:
            if found[text] < 0 and self._judged.same(text, strategies[i]):
                found[text] = i
