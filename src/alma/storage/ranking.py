"""Ranking by words: which terms of a question are worth looking up, and what a match is worth (BM25)."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, product
from typing import Generic, TypeVar

from alma.model.query import EVERYTHING, And, Compare, In, Or, Predicate

V = TypeVar("V")

K1, B = 1.2, 0.75
# A word is not counted further than this; what is more common is estimated.
COUNTED = 5_000
# So many records may be scored for one question, which takes a few milliseconds.
BUDGET = 4_000
OWNERS = ("project_id", "agent", "user_id", "session_id")
_MOST_OWNERS = 50
# What it takes to look two words up together, counted in records that are read and scored: something for each pair, and
# the entries of the rarer word, many of which take as long as one record.
_PAIR = 15.0
_ENTRIES_FOR_A_RECORD = 32
_MOST_PAIRED = 12
_LEAST_RARITY = 0.1
_SUPPOSED_WITHOUT = 10
_MOST_REMEMBERED = 100_000


def idf(records: float, having: float) -> float:
    """What a word weighs that so many of the records have: the rarer, the more; always above zero."""
    return math.log1p(max(0.0, records - having + 0.5) / (having + 0.5))


def rarity(records: float, having: float) -> float:
    """What a word weighs in BM25: nearly nothing where half of the records have it, and still more than nothing.

    A few records say little about how common a word is: it is taken for rarer than it is among them.
    """
    odds = (max(0.0, records - having) + _SUPPOSED_WITHOUT + 0.5) / (having + 0.5)
    return max(math.log(odds), _LEAST_RARITY * math.log1p(odds))


def rarity_in_sql(records: str, having: str) -> str:
    """The same as an expression of two others; the server counts in fractions of its own unless it is told not to."""
    odds = f"((greatest(0, {records} - {having}) + {_SUPPOSED_WITHOUT + 0.5}::float8) / ({having} + 0.5::float8))"
    return f"greatest(ln({odds}), {_LEAST_RARITY}::float8 * ln(1 + {odds}))"


def saturation(frequency: float, length: float, mean: float) -> float:
    """What it counts that a word occurs so often in a text of that length: less and less, up to K1 + 1."""
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / max(mean, 1.0)))


Pair = tuple[str, str]
"""Two words of a question, the rarer one first."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The terms of a question that are looked up, rarest first, and those left out because too many records have them.

    While `left_out` is empty the answer is exact: every word of the question counts for every record.
    """

    chosen: tuple[str, ...]
    left_out: tuple[str, ...]

    def without_common(self, counts: Mapping[str, int], most: float) -> Selection:
        """The same, with those left out that more records have than `most`."""
        common = tuple(word for word in self.chosen if counts[word] > most)
        return Selection(tuple(word for word in self.chosen if word not in common), common + self.left_out)


def select(
    counts: Mapping[str, int], inside: int, overhead: Mapping[str, float] | None = None, budget: int = BUDGET
) -> Selection:
    """Choose the rarest terms until the budget is used up; `inside` is how many records the scope has.

    Common words cost the most and say the least: at a million records a word that every second one has takes longer
    than all rarer ones together, and hardly moves the ranking. No more records are scored than there are, so that in a
    small scope all words are chosen; `overhead` is what a word costs a store besides.
    """
    rarest_first = sorted(counts, key=lambda word: (counts[word], word))
    chosen = 0
    entries, besides = 0, 0.0
    for word in rarest_first:
        entries += counts[word]
        besides += overhead[word] if overhead else 0.0
        if min(entries, inside) + besides > budget:
            break
        chosen += 1
    return Selection(tuple(rarest_first[:chosen]), tuple(rarest_first[chosen:]))


def pairs(selection: Selection, counts: Mapping[str, int], inside: int, budget: float) -> tuple[Pair, ...]:
    """Pairs of a question's words, at least one of which was left out: the cheapest until the budget is used up.

    What is wanted most likely has several of the words. To look for records that have two of them costs little where to
    look at all that have one would cost much. In a long question only the rarest words are paired.
    """
    chosen, left_out = selection.chosen[:_MOST_PAIRED], selection.left_out[:_MOST_PAIRED]
    costs = {
        (rarer, other): _PAIR + counts[rarer] / _ENTRIES_FOR_A_RECORD + 2 * counts[rarer] * counts[other] / inside
        for rarer, other in (*product(chosen, left_out), *combinations(left_out, 2))
    }
    cheapest_first = sorted(costs, key=lambda pair: (costs[pair], pair))
    spent = accumulate(costs[pair] for pair in cheapest_first)
    return tuple(pair for pair, cost in zip(cheapest_first, spent, strict=True) if cost <= budget)


def conjunctions(left_out: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What records are looked for that must do: those with all of the words, with the rarer half, with one of them."""
    half = (len(left_out) + 1) // 2
    yield from dict.fromkeys((tuple(left_out), tuple(left_out[:half]), *((word,) for word in left_out)))


def bm25(texts: Mapping[str, Sequence[str]], words: Sequence[str]) -> list[tuple[str, float]]:
    """The keys of the texts, given as terms, that have any of the words, best first, keys breaking ties."""
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(text) for key, text in texts.items()}
    weights = {word: rarity(len(texts), sum(word in each for each in counts.values())) for word in words}
    scores = {
        key: sum(weights[word] * saturation(each[word], each.total(), mean) for word in words if word in each)
        for key, each in counts.items()
    }
    return sorted(((key, score) for key, score in scores.items() if score > 0), key=lambda pair: (-pair[1], pair[0]))


def owners(where: Predicate) -> dict[str, tuple[str, ...]]:
    """Whose records a predicate asks for: the owners that each of them must have one of."""
    # Asked of every predicate, and twice as fast as patterns would be.
    if isinstance(where, And):
        found: dict[str, tuple[str, ...]] = {}
        for part in where.parts:
            found.update(owners(part))
        return found
    if isinstance(where, Compare):
        is_owner = where.field in OWNERS and where.op == "eq" and isinstance(where.value, str)
        return {where.field: (where.value,)} if is_owner else {}
    if isinstance(where, In) and where.field in OWNERS and 0 < len(where.values) <= _MOST_OWNERS:
        return {where.field: tuple(where.values)}
    return {}


def without_expiry(where: Predicate) -> Predicate:
    """The predicate without what it says about expiry, which is another moment in every question."""
    match where:
        case Compare("expires_at", _, _):
            return EVERYTHING
        case And(parts):
            return And(*map(without_expiry, parts))
        case Or(parts):
            return Or(*map(without_expiry, parts))
    return where


class CountCache(Generic[V]):
    """Counts of words, for as long as a mark of the time or the size they were counted at hardly moves.

    They decide which words are looked up and how much they weigh, so that an outdated one costs a little time or order.
    """

    def __init__(self, slack: float, most: int = _MOST_REMEMBERED) -> None:
        self._slack = slack
        self._most = most
        self._counts: dict[Hashable, tuple[int, V]] = {}

    def get(self, key: Hashable, mark: int) -> V | None:
        counted = self._counts.get(key)
        if counted is None or abs(counted[0] - mark) > self._slack * counted[0]:
            return None
        return counted[1]

    def put(self, key: Hashable, mark: int, count: V) -> V:
        if len(self._counts) >= self._most:
            self._counts.clear()
        self._counts[key] = (mark, count)
        return count

    def forget(self) -> None:
        self._counts.clear()


def minute() -> int:
    """The minute: a table's size is not known on a server without counting, so that counts last as long as that."""
    return int(time.monotonic() // 60)
