"""Sanitising: what of a request may stand in the audit log, which outlives what it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from alma.model.fields import JsonObject, JsonValue

Mask = Callable[[str], str]

_HIDDEN = "***"
_LONGEST_VALUE = 200
_MOST_ITEMS = 50
_DEEPEST = 6
# Separated words, so that "tokens" as a count or "keyboard" stay readable.
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.\s])(?:password|passwd|pwd|passphrase|secret|token|api_?key|apikey|access_?key|private_?key|"
    r"authorization|auth|cookie|credentials?|dsn|connection_?string)(?:$|[_\-.\s])",
    re.IGNORECASE,
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What memories say belongs to their own records, which can be deleted; of it only the length is noted.
_CONTENT_NAMES = frozenset(("content", "content_json", "text", "summary", "embedding", "vector", "state_data"))
_SECRET_VALUES = re.compile(
    r"-----BEGIN[^-]*PRIVATE KEY-----.*?(?:-----END[^-]*-----|$)"
    r"|\bBearer\s+[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)-[\w-]{16,}"
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abprs]-[\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
    r"|(?:(?<=password)|(?<=passwd)|(?<=secret)|(?<=token)|(?<=api_key)|(?<=apikey)|(?<=api-key))\s*[=:]\s*\S+",
    re.IGNORECASE | re.DOTALL,
)


def mask_secrets(text: str) -> str:
    """The text with what looks like a key, a password or a token replaced."""
    return _SECRET_VALUES.sub(_HIDDEN, text)


def sanitized(request: Mapping[str, Any], mask: Mask = mask_secrets) -> JsonObject:
    """A request as it may be logged: secrets hidden, content by its length alone, long values cut."""
    return {str(name)[:_LONGEST_VALUE]: _named(str(name), value, mask, 0) for name, value in _first(request.items())}


def short(text: str, mask: Mask = mask_secrets, longest: int = _LONGEST_VALUE) -> str:
    """A text without secrets, NULs and lone surrogates, cut where it is long."""
    clean = mask(text.encode("utf-8", "replace").decode().replace("\x00", ""))
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _named(name: str, value: Any, mask: Mask, depth: int) -> JsonValue:
    if value is not None and _SECRET_NAME.search(_WORD_START.sub("_", name)):
        return _HIDDEN
    if name in _CONTENT_NAMES and hasattr(value, "__len__"):
        return f"({len(value):,} {'characters' if isinstance(value, str) else 'items'})"
    return _value(value, mask, depth)


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
        return {str(key): _named(str(key), item, mask, depth + 1) for key, item in _first(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(item, mask, depth + 1) for item in _first(value)]
    return short(str(value), mask)


def _first(items: Any) -> list[Any]:
    return list(items)[:_MOST_ITEMS]
