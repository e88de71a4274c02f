"""Disagreements: rules that say the opposite of each other say so, and lessons of other agents whose they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from alma.learning.strategies import contradicts, same_by_words
from alma.model.learning import AntiPattern, Heuristic
from alma.model.slice import REPORTED_BY, MemorySlice


def with_disagreements(found: MemorySlice) -> MemorySlice:
    """The slice, in which each of two rules that say the opposite for the same kind of task names the other.

    Both were learned from successes as good as each other's, or one of them would have been held back: whoever reads
    one must know of the other.
    """
    against = _disagreeing(found.heuristics)
    said = {key: [f"contradicts {other}" for other in others] for key, others in against.items()}
    return _with_notes(found, said, (Heuristic.spec.kind,))


def with_sources(found: MemorySlice) -> MemorySlice:
    """The slice, in which each rule and warning of another agent than the one that asks says whose it is."""
    lessons: list[Heuristic | AntiPattern] = [*found.heuristics, *found.anti_patterns]
    said = {each.id: [f"{REPORTED_BY} {each.agent} alone"] for each in lessons if each.agent != found.agent}
    return _with_notes(found, said, (Heuristic.spec.kind, AntiPattern.spec.kind))


def _with_notes(found: MemorySlice, said: Mapping[str, Sequence[str]], kinds: Collection[str]) -> MemorySlice:
    """The slice, with what else is said of some memories of these kinds, by their ids."""
    if not said:
        return found
    explanations = {
        key: replace(each, notes=(*each.notes, *said[each.id])) if each.kind in kinds and each.id in said else each
        for key, each in found.explanations.items()
    }
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
