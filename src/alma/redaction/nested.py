"""Secrets in JSON: values below a key name, after an argument, or next to their name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from alma.redaction.names import Sort, key_name
from alma.redaction.values import is_unlike_any_name


@dataclass(frozen=True, slots=True)
class Masked:
    """The kind and field of a masked secret; never its value."""

    kind: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A redacted text, and what was masked."""

    text: str
    findings: tuple[Masked, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was masked."""
        return bool(self.findings)


Redact = Callable[[str, str], Redacted]

# Keys of public properties of a secret: its type, owner, place and validity.
_TELLS_ABOUT = re.compile(
    r"(?:.*[_.-])?(?:type|kind|format|encoding|alg|algorithm|user|username|login|account|owner|name|id|label|title|role"
    r"|description|desc|comment|notes?|hint|host|hostname|port|url|uri|endpoint|domain|path|file|email|database|schema"
    r"|scopes?|region|issuer|source|provider|service|vault|env|environment|ref|version|status|state|method|prefix"
    r"|header|required|enabled|length|count|limit|used|total|remaining|budget|max\w*|min\w*|expir\w*|ttl|rotation|policy"
    r"|at|date|created|updated|issued|seconds|minutes|days|age|required\w*|samesite|secure|httponly)",
    re.IGNORECASE,
)
_NAMES_IN_PAIRS = frozenset(
    ("name", "key", "id", "property", "variable", "field", "header", "setting", "option", "param", "parameter", "k")
)
_VALUES_IN_PAIRS = frozenset(("value", "val", "v", "content", "data", "default", "string", "string_value", "text"))
_FLAG = re.compile(r"--?(?=[A-Za-z])([\w-]{2,60})\Z")
_SMALLEST_NUMBER = 999


def redacted_value(value: Any, path: str, name: str, redact: Redact, found: list[Masked]) -> Any:
    """The value with every text in it redacted; `path` says in the report where a text stood.

    `name` is what the value stands under; below the name of a secret it holds for everything that has no better one.
    """
    if isinstance(value, str):
        return _masked(value, path, name, redact, found)
    if isinstance(value, dict):
        return _redacted_object(value, path, name, redact, found)
    if isinstance(value, list | tuple):
        return type(value)(_redacted_items(value, path, name, redact, found))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _SMALLEST_NUMBER and key_name(name):
        masked = _masked(str(value), path, name, redact, found)
        return value if masked == str(value) else masked
    return value


def _masked(text: str, path: str, name: str, redact: Redact, found: list[Masked]) -> str:
    redacted = redact(text, name)
    found.extend(Masked(each.kind, path) for each in redacted.findings)
    return redacted.text


def _redacted_object(
    given: dict[str, Any], path: str, above: str, redact: Redact, found: list[Masked]
) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    named = _name_of_pair(given)
    holds = above if key_name(above) else ""
    for key, item in given.items():
        shown = _masked(key, path, "", redact, found)
        # Keys that were different secrets must stay apart.
        while shown in clean:
            shown += "'"
        if named and key.lower() in _VALUES_IN_PAIRS:
            name = named
        else:
            name = holds if holds and not key_name(key) and _TELLS_ABOUT.fullmatch(key) is None else key
        clean[shown] = redacted_value(item, f"{path}.{_key(key)}", name, redact, found)
    return clean


def _name_of_pair(given: dict[str, Any]) -> str:
    """The key name in an object of a name and a value: {"name": "DB_PASSWORD", "value": …}."""
    if not 2 <= len(given) <= 8:
        return ""
    for key, item in given.items():
        if isinstance(item, str) and key.lower() in _NAMES_IN_PAIRS and key_name(item):
            return item
    return ""


def _redacted_items(given: Sequence[Any], path: str, name: str, redact: Redact, found: list[Masked]) -> list[Any]:
    tells = key_name(name)
    if tells is not None and tells.sort is Sort.PASS:
        # A list of what passes.
        name = ""
    for item in given:
        if isinstance(item, str) and item.startswith("-"):
            given = _without_arguments(given, path, redact, found)
            break
    if len(given) == 2 and _is_pair(given[0], given[1]):
        return [given[0], redacted_value(given[1], path, given[0], redact, found)]
    return [
        _redacted_pair(item, path, redact, found)
        if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str) and key_name(item[0])
        else redacted_value(item, path, name, redact, found)
        for item in given
    ]


def _is_pair(first: Any, second: Any) -> bool:
    """Whether two texts are a key name and a secret."""
    return isinstance(first, str) and isinstance(second, str) and is_unlike_any_name(second) and bool(key_name(first))


def _redacted_pair(pair: Any, path: str, redact: Redact, found: list[Masked]) -> Any:
    """A pair in a list, such as a header."""
    return type(pair)((pair[0], redacted_value(pair[1], path, pair[0], redact, found)))


def _without_arguments(given: Sequence[Any], path: str, redact: Redact, found: list[Masked]) -> list[Any]:
    """Command-line arguments without the secrets that follow a flag or belong to the command."""
    clean = list(given)
    for i in range(1, len(clean)):
        flag = _FLAG.match(clean[i - 1]) if isinstance(clean[i - 1], str) else None
        if flag is not None and isinstance(clean[i], str) and not clean[i].startswith("-") and key_name(flag[1]):
            clean[i] = _masked(clean[i], path, flag[1], redact, found)
    if not isinstance(clean[0], str) or clean[0].startswith("-"):
        return clean
    words = [item if isinstance(item, str) and item and not re.search(r"\s", item) else "_" for item in clean]
    said = redact(" ".join(words), "")
    if said and len(after := said.text.split(" ")) == len(clean):
        found.extend(Masked(each.kind, path) for each in said.findings)
        clean = [then if then != word else item for item, word, then in zip(clean, words, after, strict=True)]
    return clean


def _key(key: str) -> str:
    """A JSON key for the report, unless it is long enough to be a secret."""
    return key if len(key) <= 40 else "…"
