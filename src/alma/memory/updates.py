"""Screening: what a record passes before it is stored, so that no secret is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from alma.errors import ValidationError
from alma.model.fields import JsonObject
from alma.model.record import Record
from alma.redaction.redactor import Redactor, redact_record

T = TypeVar("T", bound=Record)


class Screen(Protocol):
    """Gives back a record as it may be stored: without the secrets in its texts, its owner and ids untouched."""

    def __call__(self, record: T, /) -> T: ...


def without_secrets(record: T, /) -> T:
    """The screen where nothing else is said: what the redactor knows as a secret is masked."""
    return redact_record(record)[0]


def as_it_is(record: T, /) -> T:
    """The screen that lets everything pass, for callers who have screened already."""
    return record


def screen_with(redactor: Redactor | None) -> Screen:
    """The screen of a redactor of one's own; None lets everything pass."""
    if redactor is None:
        return as_it_is

    def screen(record: T, /) -> T:
        return redact_record(record, redactor)[0]

    return screen


def screened(record: Record, changes: Mapping[str, Any], screen: Screen) -> dict[str, Any]:
    """The changes to a record as they may be stored."""
    after = screen(record.replace(**changes))
    names = (field.name for field in record.spec.primary)
    return {name: value for name in names if (value := getattr(after, name)) != getattr(record, name)}


def merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """What results from the changes: objects are merged key by key, None removes a key, the rest is replaced."""
    if not isinstance(changes, Mapping):
        raise ValidationError("changes", None, changes, "must be a JSON object")
    result = dict(old)
    for key, value in changes.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[key] = value
    return result
