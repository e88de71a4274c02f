"""A candidate: a memory that a search proposed, and what speaks for it."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter

from alma.retrieval.router import Target


class Candidate:
    """A memory that a search proposed, and what speaks for it."""

    # There are hundreds of them, and few are read. Each has no dictionary of its own, since Python looks through all
    # objects that can hold others whenever there are some hundreds more.
    __slots__ = ("_told", "cosine", "found_by", "id", "lost", "share", "target", "total", "words")

    def __init__(self, target: Target, record_id: str, found_by: tuple[str, ...] = ()) -> None:
        self.target = target
        self.id = record_id
        self.cosine: float | None = None
        self.words: float | None = None
        self.found_by = found_by
        self.total = 0.0
        # What its length left of it, and what it took from it.
        self.share = 1.0
        self.lost = 0.0
        # What spoke for it, one after the other, each by its name and what it is worth.
        self._told: tuple[tuple[str, float], ...] = ()

    @property
    def relevance(self) -> dict[str, float]:
        """What speaks for it, by name."""
        found: dict[str, float] = {}
        for name, value in self._told:
            found[name] = found.get(name, 0.0) + value
        return found

    def has_any(self, names: frozenset[str]) -> bool:
        """Whether anything of one of these names speaks for it."""
        return not names.isdisjoint(map(itemgetter(0), self._told))

    def found_also(self, by: str) -> None:
        """It was found in one more way."""
        self.found_by = _together(self.found_by, by)

    def scale(self, factor: float) -> None:
        """Everything that speaks for it so far, by this much."""
        self.share *= factor
        self.lost += (1.0 - factor) * self.total
        self._told = tuple((name, factor * value) for name, value in self.relevance.items())
        self.total *= factor

    def add(self, name: str, value: float) -> None:
        """One more thing that speaks for it."""
        if value > 0:
            self._told += ((name, value),)
            self.total += value

    def correct_meaning(self, value: float) -> None:
        """What its meaning is worth, where that had only been supposed."""
        known = self.relevance
        supposed = known.pop("meaning", 0.0)
        self._told = tuple(known.items())
        self.total -= supposed
        self.add("meaning", self.share * value)
        self.lost += (1.0 - self.share) * (value - supposed / self.share)


@lru_cache(maxsize=256)
def _together(found_by: tuple[str, ...], by: str) -> tuple[str, ...]:
    """The ways in which a memory was found, and one more: hundreds were found in the same few."""
    return found_by if by in found_by else (*found_by, by)
