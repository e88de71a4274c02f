"""Secrets in structured data: in JSON values, markup, tables and rows of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alma.lazy import lazy_regex
from alma.redaction.names import Sort, is_secret_name, key_name
from alma.redaction.rules import Span
from alma.redaction.values import is_slug, is_unlike_any_name, may_be_secret
from alma.text.scanning import matches


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
_TELLS_ABOUT = lazy_regex(
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
_FLAG = lazy_regex(r"--?(?=[A-Za-z])([\w-]{2,60})\Z")
_SMALLEST_NUMBER = 999


def redacted_value(value: Any, path: str, name: str, redact: Redact, found: list[Masked]) -> Any:
    """The value with every text in it redacted; `path` locates each text in the report.

    `name` is the key of the value; the name of a secret also applies to nested values that have no more specific one.
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


_ELEMENT = lazy_regex(
    r"<(?:\w{1,40}:)?(?P<name>[\w.-]{2,80})(?:\s[^<>]{0,200})?>\s{0,4}(?P<secret>[^<>\s]{3,}+)(?:\s{0,4}</|\Z)"
)
_PAIR = lazy_regex(
    r"""(?:key|name|id|property|variable)["']?\s?[:=]\s?["']?(?P<name>[\w. -]{2,80}?)["']?\s{0,80}+(?:,\s{0,80}+)?"""
    r"""["']?\bvalue["']?\s?[:=]\s?(?:"(?P<double>[^"\n]{3,}+)(?:"|\Z)|'(?P<single>[^'\n]{3,}+)(?:'|\Z)|(?P<bare>[^\s"',;}<>]{3,}+))""",
    re.IGNORECASE,
)
# The indented lines below a name.
_BLOCK = lazy_regex(
    r"^(?P<indent>[ \t]*)(?:- )?[\"']?(?P<name>[\w.-]{2,80})[\"']?:[ \t]*[|>][+-]?\d?[ \t]*\n"
    r"(?P<inside>(?P=indent)[ \t]+)(?P<secret>\S[^\n]{2,}+(?:\n(?P=inside)[^\n]++)*+)",
    re.MULTILINE,
)


def structured_spans(text: str) -> Iterator[Span]:
    """Values of elements, attributes, entries and blocks that have the name of a secret."""
    if "</" in text:
        yield from _named(matches(_ELEMENT, text))
    if "value" in text or "Value" in text or "VALUE" in text:
        yield from _named(matches(_PAIR, text))
    if ":" in text and "\n" in text:
        yield from _blocks(text)


def _named(found: Iterator[re.Match[str]]) -> Iterator[Span]:
    for match in found:
        group = next(name for name in ("secret", "double", "single", "bare") if match.groupdict().get(name))
        if is_secret_name(match["name"].strip()) and may_be_secret(match[group]):
            yield Span(match.start(group), match.end(group), "secret")


def _blocks(text: str) -> Iterator[Span]:
    for match in matches(_BLOCK, text):
        tells = key_name(match["name"])
        if tells is not None and tells.is_secret(match["secret"].split("\n")[0].rstrip()):
            yield Span(match.start("secret"), match.start("secret") + len(match["secret"].rstrip()), "secret")


_HEAD = lazy_regex(r"[\w .*`\"'()/-]{1,40}")
_RULE = lazy_regex(r"[\s|:+=-]*")
_AROUND = " \t*`\"'|"
_INSERT = lazy_regex(
    r"\binsert\s+into\s+[\w.\"`\[\]]{1,80}\s*\((?P<names>[^()\n]{1,500})\)\s*values\s*(?P<rows>\([^;]++)",
    re.IGNORECASE,
)
_ROW = lazy_regex(r"\((?P<row>(?:'(?:[^'\n]|'')*+'|[^()'\n])*+)\)")
_CELL = lazy_regex(r"\s*+(?:'(?P<quoted>(?:[^'\n]|'')*+)'|[^,']*+)\s*+(?:,|\Z)")
# Rows further down are far from the head of the table.
_MAX_ROWS = 500


def column_spans(text: str) -> Iterator[Span]:
    """Values of tables, CSV and SQL in a column that has the name of a secret."""
    if "\n" in text:
        for sign in ("|", ",", ";", "\t"):
            if sign in text:
                yield from _of_table(text, sign)
    if "(" in text:
        yield from _of_insert(text)


def _of_table(text: str, sign: str) -> Iterator[Span]:
    secret: Sequence[int] = ()
    width, rows, start = 0, 0, 0
    for line in text.split("\n"):
        cells = line.split(sign) if sign in line else []
        if secret and len(cells) == width and rows < _MAX_ROWS:
            rows += 1
            yield from _secret_cells(cells, secret, start, sign)
        elif not (secret and _RULE.fullmatch(line)):
            secret = _secret_columns(cells)
            width, rows = len(cells), 0
        start += len(line) + 1


def _secret_columns(cells: Sequence[str]) -> list[int]:
    if not 2 <= len(cells) <= 40 or not all(not cell.strip() or _HEAD.fullmatch(cell.strip()) for cell in cells):
        return []
    return [place for place, cell in enumerate(cells) if is_secret_name(cell.strip(_AROUND))]


def _secret_cells(cells: Sequence[str], columns: Sequence[int], start: int, sign: str) -> Iterator[Span]:
    for column in columns:
        cell = cells[column]
        value = cell.strip(_AROUND)
        if (
            len(value) >= 4
            and may_be_secret(value)
            and (is_unlike_any_name(value) or not is_slug(value) or sign == "|")
        ):
            at = start + sum(len(other) + 1 for other in cells[:column]) + cell.index(value)
            yield Span(at, at + len(value), "secret")


def _of_insert(text: str) -> Iterator[Span]:
    for match in matches(_INSERT, text):
        names = [name.strip(' \t"`[]') for name in match["names"].split(",")]
        columns = [place for place, name in enumerate(names) if is_secret_name(name)]
        for row in _ROW.finditer(text, match.start("rows"), match.end("rows")) if columns else ():
            cells = [cell for cell in _CELL.finditer(text, row.start("row"), row.end("row")) if cell[0]]
            for cell in (cells[place] for place in columns if place < len(cells)):
                if cell["quoted"] and len(cell["quoted"]) >= 3 and may_be_secret(cell["quoted"]):
                    yield Span(cell.start("quoted"), cell.end("quoted"), "secret")
