"""Matching: which of the strategies that are asked about is meant by one that was tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alma.learning.strategies import Strategies, shared_words, strategy_key

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
