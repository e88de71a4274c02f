"""Shared parts of record updates: masking secrets, merging JSON, expiry times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from alma.clock import now
from alma.errors import ValidationError
from alma.model.fields import JsonObject
from alma.model.record import Record
from alma.redaction.redactor import Redactor, redact_record

T = TypeVar("T", bound=Record)


class Screen(Protocol):
    """Masks the secrets in the texts of a record; its owner and ids stay as they are."""

    def __call__(self, record: T, /) -> T: ...


def without_secrets(record: T, /) -> T:
    """Mask the secrets that the default redactor finds."""
    return redact_record(record)[0]


def as_it_is(record: T, /) -> T:
    """Leave the record unchanged, for callers that have masked it already."""
    return record


def screen_with(redactor: Redactor | None) -> Screen:
    """The screen that uses this redactor; with None, records stay unchanged."""
    if redactor is None:
        return as_it_is

    def screen(record: T, /) -> T:
        return redact_record(record, redactor)[0]

    return screen


def screened(record: Record, changes: Mapping[str, Any], screen: Screen) -> dict[str, Any]:
    """The changes to a record with their secrets masked, without fields that stay the same."""
    after = screen(record.replace(**changes))
    names = (field.name for field in record.spec.primary)
    return {name: value for name in names if (value := getattr(after, name)) != getattr(record, name)}


def merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """Merge a JSON object as RFC 7396 does: objects key by key, None removes a key, other values are replaced."""
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


def expiry(subject: str, ttl_seconds: Any, expires_at: datetime | None) -> datetime | None:
    """When a record expires that is given a time to live or an expiry time, but not both."""
    if ttl_seconds is None:
        return expires_at
    if expires_at is not None:
        raise ValidationError(subject, "ttl_seconds", ttl_seconds, "cannot be given together with expires_at")
    if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, int | float) or not ttl_seconds > 0:
        raise ValidationError(subject, "ttl_seconds", ttl_seconds, "must be a number of seconds above 0")
    try:
        return now() + timedelta(seconds=ttl_seconds)
    except OverflowError:
        reason = "is beyond the last date that can be stored; leave it out"
        raise ValidationError(subject, "ttl_seconds", ttl_seconds, reason) from None
