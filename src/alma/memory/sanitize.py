"""Sanitising: what of a request may stand in the audit log, which outlives what it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from alma.model.fields import JsonObject, JsonValue
from alma.redaction.redactor import redact_text
from alma.redaction.telling import is_secret_name

Mask = Callable[[str], str]

_HIDDEN = "***"
_LONGEST_VALUE = 200
_MOST_ITEMS = 50
_DEEPEST = 6
# Names of what carries secrets, beside the names of secrets themselves.
_CARRIER = re.compile(r"(?:^|[_\-.\s])(?:auth|authorization|cookies?|dsn|connection_?string)$", re.IGNORECASE)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What memories say belongs to their own records, which can be deleted; of it only the length is noted.
_CONTENT_NAMES = frozenset(("content", "content_json", "text", "summary", "embedding", "vector", "state_data"))


def mask_secrets(text: str) -> str:
    """The text as the redactor leaves it."""
    return redact_text(text).text


def sanitized(request: Mapping[str, Any], mask: Mask = mask_secrets) -> JsonObject:
    """A request as it may be logged: secrets hidden, content by its length alone, long values cut."""
    return _object(request, mask, 0)


def short(text: str, mask: Mask = mask_secrets, longest: int = _LONGEST_VALUE) -> str:
    """A text without secrets, NULs and lone surrogates, cut where it is long."""
    clean = mask(text.encode("utf-8", "replace").decode().replace("\x00", ""))
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _named(name: str, value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is not None and _hides(_WORD_START.sub("_", name)):
        return _HIDDEN
    if name in _CONTENT_NAMES and hasattr(value, "__len__"):
        return f"({len(value):,} {'characters' if isinstance(value, str) else 'items'})"
    return _value(value, mask, depth)


def _hides(name: str) -> bool:
    """Whether all that stands under this name is hidden, whatever it looks like."""
    return is_secret_name(name) or _CARRIER.search(name) is not None


def _value(value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < 1e300 else str(value)
    if isinstance(value, str):
        return short(value, mask)
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return _object(value, mask, depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(item, mask, depth + 1) for item in _first(value)]
    return short(str(value), mask)


def _object(given: Mapping[Any, Any], mask: Mask, depth: int) -> JsonObject:
    return {short(str(key), mask): _named(str(key), item, mask, depth) for key, item in _first(given.items())}


def _first(items: Any) -> list[Any]:
    return list(items)[:_MOST_ITEMS]
