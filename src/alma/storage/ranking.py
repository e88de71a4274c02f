"""Full-text ranking: BM25, and the selection of the query terms that are looked up."""

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
# Words are counted up to this number; the counts of more common ones are estimated.
COUNTED = 5_000
# The maximum number of records that are scored for a query, which takes a few milliseconds.
BUDGET = 4_000
OWNERS = ("project_id", "agent", "user_id", "session_id")
_MOST_OWNERS = 50
# The cost of looking up two words together, in units of scored records: a constant for each pair, plus the postings of
# the rarer word, of which this many cost as much as one record.
_PAIR = 15.0
_ENTRIES_FOR_A_RECORD = 32
_MOST_PAIRED = 12
_LEAST_RARITY = 0.1
_SUPPOSED_WITHOUT = 10
_MOST_REMEMBERED = 100_000


def idf(records: float, having: float) -> float:
    """The inverse document frequency of a word, always above zero."""
    return math.log1p(max(0.0, records - having + 0.5) / (having + 0.5))


def rarity(records: float, having: float) -> float:
    """The weight of a word in BM25: close to zero if half of the records have it, but above zero. With few records a
    prior makes words count as rarer, because few records say little about how common a word is.
    """
    odds = (max(0.0, records - having) + _SUPPOSED_WITHOUT + 0.5) / (having + 0.5)
    return max(math.log(odds), _LEAST_RARITY * math.log1p(odds))


def rarity_in_sql(records: str, having: str) -> str:
    """The same as an SQL expression; the casts avoid numeric arithmetic, which is slow."""
    odds = f"((greatest(0, {records} - {having}) + {_SUPPOSED_WITHOUT + 0.5}::float8) / ({having} + 0.5::float8))"
    return f"greatest(ln({odds}), {_LEAST_RARITY}::float8 * ln(1 + {odds}))"


def saturation(frequency: float, length: float, mean: float) -> float:
    """The BM25 term frequency factor: it grows with the occurrences up to K1 + 1, and less in long texts."""
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / max(mean, 1.0)))


Pair = tuple[str, str]
"""Two words of a query, the rarer one first."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The terms of a query that are looked up, rarest first, and those left out because too many records have them. If
    `left_out` is empty the result is exact: every word counts for every record.
    """

    chosen: tuple[str, ...]
    left_out: tuple[str, ...]

    def without_common(self, counts: Mapping[str, int], most: float) -> Selection:
        """The same, without the terms that more than `most` records have."""
        common = tuple(word for word in self.chosen if counts[word] > most)
        return Selection(tuple(word for word in self.chosen if word not in common), common + self.left_out)


def select(
    counts: Mapping[str, int], inside: int, overhead: Mapping[str, float] | None = None, budget: int = BUDGET
) -> Selection:
    """Choose the rarest terms until the budget is used up; `inside` is the number of records in the scope. Common words
    cost the most and say the least: among a million records, a word in every second one takes longer than all rarer
    ones together, and hardly changes the ranking. At most all records are scored, so in a small scope all words are
    chosen; `overhead` is an additional cost per word.
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
    """Pairs of query words, at least one of which was left out: the cheapest until the budget is used up. A relevant
    record probably has several of the words, and searching for two words together is cheap when a search for one of
    them is expensive. In a long query only the rarest words are paired.
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
    """The conjunctions to search for one after another: all words, the rarer half, one of them."""
    half = (len(left_out) + 1) // 2
    yield from dict.fromkeys((tuple(left_out), tuple(left_out[:half]), *((word,) for word in left_out)))


def bm25(texts: Mapping[str, Sequence[str]], words: Sequence[str]) -> list[tuple[str, float]]:
    """The keys of the texts, given as terms, that have any of the words, best first, with the key for tie-breaking."""
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(text) for key, text in texts.items()}
    weights = {word: rarity(len(texts), sum(word in each for each in counts.values())) for word in words}
    scores = {
        key: sum(weights[word] * saturation(each[word], each.total(), mean) for word in words if word in each)
        for key, each in counts.items()
    }
    return sorted(((key, score) for key, score in scores.items() if score > 0), key=lambda pair: (-pair[1], pair[0]))


def owners(where: Predicate) -> dict[str, tuple[str, ...]]:
    """The owners in a predicate; each record must have one of each list."""
    # Called for every predicate; twice as fast as structural pattern matching.
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
    """The predicate without the condition on expiry, which differs in every query."""
    match where:
        case Compare("expires_at", _, _):
            return EVERYTHING
        case And(parts):
            return And(*map(without_expiry, parts))
        case Or(parts):
            return Or(*map(without_expiry, parts))
    return where


class CountCache(Generic[V]):
    """A cache of word counts, which are valid while a mark (the time or the size of the table) hardly changes. Counts
    decide which words are looked up and their weights, so a stale count only affects speed and order slightly.
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
    """The current minute, the mark on a server, which does not know the size of a table without counting."""
    return int(time.monotonic() // 60)
