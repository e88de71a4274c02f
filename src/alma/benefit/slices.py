"""The records of a slice that may be withheld, and slices without them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from alma.learning.policy import is_pinned
from alma.model.learning import DomainKnowledge, Heuristic, demotion_of
from alma.model.record import Record
from alma.model.slice import Dropped, Explanation, MemorySlice, is_evidence

SAFETY_DOMAINS = frozenset(("safety", "security"))
"""Facts and lessons of these domains are never withheld."""

_WITHHELD = Dropped("benefit", "it was withheld at random, to measure what it changes")


def is_eligible(record: Record) -> bool:
    """Whether a memory may be withheld: a lesson or a fact in use that is neither pinned nor about safety."""
    if not isinstance(record, Heuristic | DomainKnowledge) or is_pinned(record) or demotion_of(record) is not None:
        return False
    domain = record.domain if isinstance(record, DomainKnowledge) else record.metadata.get("task_type")
    is_safety = isinstance(domain, str) and domain.strip().lower() in SAFETY_DOMAINS
    return not is_safety and not record.metadata.get("safety")


def eligible_in(found: MemorySlice) -> Iterator[Record]:
    """The lessons that prompts would include, and that may be withheld."""
    for record in (*found.heuristics, *found.domain_knowledge):
        if is_eligible(record) and (found.weak or found.strength_of(record) == "strong"):
            yield record


def without(found: MemorySlice, withheld: Collection[str]) -> MemorySlice:
    """The slice without these memories, and without the outcomes that would tell the same."""
    if not withheld:
        return found
    rules = [each for each in found.heuristics if each.id in withheld]
    shown = [each for each in found.heuristics if each.id not in withheld]
    told = {
        each.id
        for each in found.outcomes
        if any(is_evidence(each, rule) for rule in rules) and not any(is_evidence(each, rule) for rule in shown)
    }
    gone, before = {*withheld, *told}, found._why_not

    def why_not(record_id: str) -> Dropped:
        return _WITHHELD if record_id in gone else before(record_id)

    return replace(
        found,
        heuristics=shown,
        domain_knowledge=[each for each in found.domain_knowledge if each.id not in withheld],
        outcomes=[each for each in found.outcomes if each.id not in told],
        explanations={key: each for key, each in found.explanations.items() if each.id not in gone},
        _why_not=why_not,
    )


def with_demoted(found: MemorySlice) -> MemorySlice:
    lessons: tuple[Heuristic | DomainKnowledge, ...] = (*found.heuristics, *found.domain_knowledge)
    known = {each.id: numbers for each in lessons if (numbers := demotion_of(each)) is not None}
    notes = {key: f"demoted: {numbers.get('said')}" for key, numbers in known.items()}
    if not notes:
        return found

    def weaker(each: Explanation) -> Explanation:
        if each.id not in notes:
            return each
        return replace(each, strength="weak", notes=(*each.notes, notes[each.id]))

    return replace(found, explanations={key: weaker(each) for key, each in found.explanations.items()})
