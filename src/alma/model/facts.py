"""Facts: the kinds of memories that state something, and what they state."""

from __future__ import annotations

from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record

FACTS: tuple[type[Record], ...] = (DomainKnowledge, UserPreference, Memory)
"""The kinds that state facts, which can be restated, superseded or contradicted."""

LONGEST_FACT = 600
"""Longer text is a document, of which the judge would only read the beginning."""

# Events are not superseded by later events.
_EVENTS = frozenset(("conversation", "message", "progress", "task", "error", "summary", "session"))


def stated(record: Record) -> str:
    """The statement of a memory, without its category."""
    match record:
        case DomainKnowledge():
            return record.fact
        case UserPreference():
            return record.preference
        case Memory():
            return f"{record.title}: {record.content}" if record.title else record.content
    return record.text()


def is_fact(record: Record) -> bool:
    """Whether a record states a fact that is short enough to be judged."""
    if not isinstance(record, FACTS) or not 1 < len(stated(record).strip()) <= LONGEST_FACT:
        return False
    if isinstance(record, Memory):
        return record.session_id is None and record.memory_type not in _EVENTS
    return True
