"""Screening: what a record passes before it is stored, so that no secret is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from alma.model.record import Record
from alma.redaction.redactor import redact_record

T = TypeVar("T", bound=Record)


class Screen(Protocol):
    """Gives back a record as it may be stored: without the secrets in its texts, its owner and ids untouched."""

    def __call__(self, record: T, /) -> T: ...


def without_secrets(record: T, /) -> T:
    """The usual screen: keys, tokens and passwords are masked wherever they stand."""
    return redact_record(record)[0]


def screened(record: Record, changes: Mapping[str, Any], screen: Screen) -> dict[str, Any]:
    """The changes to a record as they may be stored."""
    after = screen(record.replace(**changes))
    names = (field.name for field in record.spec.primary)
    return {name: value for name in names if (value := getattr(after, name)) != getattr(record, name)}
