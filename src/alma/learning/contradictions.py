"""Contradictions: marks rules that contradict each other, and lessons of other agents, in a slice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from alma.learning.lessons import RELATED, skill_of
from alma.model.learning import AntiPattern, Heuristic
from alma.model.slice import REPORTED_BY, MemorySlice


def with_contradictions(found: MemorySlice) -> MemorySlice:
    """The slice, in which each of two contradicting rules for the same kind of task names the other.

    Both have similar evidence, or one of them would have been held back; a reader of one must know of the other.
    """
    against = _contradicting(found.heuristics)
    said = {key: [f"contradicts {other}" for other in others] for key, others in against.items()}
    return _with_notes(found, said, (Heuristic.spec.kind,))


def with_sources(found: MemorySlice) -> MemorySlice:
    """The slice, in which each rule and warning of another agent names that agent, and an unconfirmed one its skill."""
    lessons: list[Heuristic | AntiPattern] = [*found.heuristics, *found.anti_patterns]
    said = {each.id: [f"{REPORTED_BY} {each.agent} alone"] for each in lessons if each.agent != found.agent}
    for each in found.heuristics:
        if (skill := skill_of(each)) is not None and not each.success_count:
            said[each.id] = [f"{REPORTED_BY} the file {skill.get('name') or 'AGENTS.md'} alone"]
    return _with_notes(found, said, (Heuristic.spec.kind, AntiPattern.spec.kind))


def _with_notes(found: MemorySlice, said: Mapping[str, Sequence[str]], kinds: Collection[str]) -> MemorySlice:
    """The slice with further notes on some memories of these kinds, by their ids."""
    if not said:
        return found
    explanations = {
        key: replace(each, notes=(*each.notes, *said[each.id])) if each.kind in kinds and each.id in said else each
        for key, each in found.explanations.items()
    }
    return replace(found, explanations=explanations)


def _contradicting(rules: Sequence[Heuristic]) -> dict[str, list[str]]:
    """For each of these rules the others that say the opposite, as judged when the later one was made."""
    found: dict[str, list[str]] = defaultdict(list)
    ids = {rule.id for rule in rules}
    for rule in rules:
        related = rule.metadata.get(RELATED)
        for other, link in related.items() if isinstance(related, Mapping) else ():
            if other in ids and isinstance(link, Mapping) and link.get("is") == "opposite":
                found[rule.id].append(other)
                found[other].append(rule.id)
    return found
