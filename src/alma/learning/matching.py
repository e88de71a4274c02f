"""Matching: which of the strategies that are asked about is meant by one that was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from alma.learning.strategies import strategy_key

Same = Callable[[str, str], bool]

_ANSWERS_REMEMBERED = 100_000


class Matching:
    """Finds the strategy that another text says, too; what was found out is remembered for each list of strategies."""

    def __init__(self, same: Same, most: int = _ANSWERS_REMEMBERED) -> None:
        self._same = same
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
        for text in texts:
            number = exact.get(strategy_key(text))
            found[text] = self._similar(text, strategies) if number is None else number

    def _similar(self, text: str, strategies: Sequence[str]) -> int:
        return next((i for i, strategy in enumerate(strategies) if self._same(text, strategy)), -1)
