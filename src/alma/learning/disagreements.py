"""Disagreements: rules that are handed over together and say the opposite of each other say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from alma.learning.strategies import contradicts, same_by_words
from alma.model.learning import Heuristic
from alma.model.slice import MemorySlice


def with_disagreements(found: MemorySlice) -> MemorySlice:
    """The slice, in which each of two rules that say the opposite for the same kind of task names the other.

    Both were learned from successes as good as each other's, or one of them would have been held back: whoever reads
    one must know of the other.
    """
    against = _disagreeing(found.heuristics)
    if not against:
        return found
    explanations = dict(found.explanations)
    for key, each in found.explanations.items():
        if each.kind == Heuristic.spec.kind and each.id in against:
            notes = (*each.notes, *(f"contradicts {other}" for other in against[each.id]))
            explanations[key] = replace(each, notes=notes)
    return replace(found, explanations=explanations)


def _disagreeing(rules: Sequence[Heuristic]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    if len(rules) < 2:
        return found
    words = {rule.id: (_words(rule.condition), _words(rule.strategy)) for rule in rules}
    for one, other in combinations(rules, 2):
        # Most have little in common, which is quickly seen.
        if all(map(_share_some, words[one.id], words[other.id])) and _disagree(one, other):
            found[one.id].append(other.id)
            found[other.id].append(one.id)
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


def _share_some(one: frozenset[str], other: frozenset[str]) -> bool:
    return 3 * len(one & other) >= max(len(one), len(other))


def _disagree(one: Heuristic, other: Heuristic) -> bool:
    """Whether rules say the opposite for the same tasks: what holds for large files need not for small ones."""
    if not contradicts(one.strategy, other.strategy):
        return False
    return same_by_words(one.condition, other.condition) is not False
