"""Provenance: where a text comes from, and whether that source is trusted."""

from __future__ import annotations

from typing import Literal

from alma.model.query import EVERYTHING, And, Compare, In, Missing, Or, Predicate
from alma.model.record import Record

Trust = Literal["trusted", "untrusted", "unknown"]

TRUSTED_SOURCES = frozenset({"user", "agent", "system"})
"""The sources whose text is not screened for prompt injection."""

STATED_SOURCES = {
    "explicit_instruction": "user",
    "user_stated": "user",
    "user_correction": "user",
    "inferred": "agent",
}
"""The provenance of the documented sources of facts and preferences."""

_TRUSTED = sorted(TRUSTED_SOURCES | STATED_SOURCES.keys())


def provenance_of(record: Record) -> str | None:
    """Where a record comes from; None if that is not known."""
    name = _field_of(type(record))
    return None if name is None else getattr(record, name) or None


def trust_in(source: str | None) -> Trust:
    """The trust level of a source."""
    if not source:
        return "unknown"
    return "trusted" if source in _TRUSTED else "untrusted"


def of_trust(cls: type[Record], trust: Trust) -> Predicate:
    """The condition that records of a kind have this trust level; it is unknown for kinds without a source."""
    name = _field_of(cls)
    if name is None:
        return EVERYTHING if trust == "unknown" else In(cls.spec.key, ())
    if trust == "trusted":
        return In(name, _TRUSTED)
    if trust == "untrusted":
        return And(*(Compare(name, "ne", each) for each in ("", *_TRUSTED)))
    return Or(Missing(name), Compare(name, "eq", ""))


def _field_of(cls: type[Record]) -> str | None:
    return next((name for name in ("provenance", "source") if name in cls.spec.by_name), None)
