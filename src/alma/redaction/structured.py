"""Secrets in structured text: markup, pairs of name and value, YAML blocks, tables and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from alma.redaction.names import is_secret_name, key_name
from alma.redaction.rules import Span
from alma.redaction.values import is_slug, is_unlike_any_name, may_be_secret
from alma.text.scanning import matches

_ELEMENT = re.compile(
    r"<(?:\w{1,40}:)?(?P<name>[\w.-]{2,80})(?:\s[^<>]{0,200})?>\s{0,4}(?P<secret>[^<>\s]{3,}+)(?:\s{0,4}</|\Z)"
)
_PAIR = re.compile(
    r"""(?:key|name|id|property|variable)["']?\s?[:=]\s?["']?(?P<name>[\w. -]{2,80}?)["']?\s{0,80}+(?:,\s{0,80}+)?"""
    r"""["']?\bvalue["']?\s?[:=]\s?(?:"(?P<double>[^"\n]{3,}+)(?:"|\Z)|'(?P<single>[^'\n]{3,}+)(?:'|\Z)|(?P<bare>[^\s"',;}<>]{3,}+))""",
    re.IGNORECASE,
)
# The indented lines below a name.
_BLOCK = re.compile(
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


_HEAD = re.compile(r"[\w .*`\"'()/-]{1,40}")
_RULE = re.compile(r"[\s|:+=-]*")
_AROUND = " \t*`\"'|"
_INSERT = re.compile(
    r"\binsert\s+into\s+[\w.\"`\[\]]{1,80}\s*\((?P<names>[^()\n]{1,500})\)\s*values\s*(?P<rows>\([^;]++)",
    re.IGNORECASE,
)
_ROW = re.compile(r"\((?P<row>(?:'(?:[^'\n]|'')*+'|[^()'\n])*+)\)")
_CELL = re.compile(r"\s*+(?:'(?P<quoted>(?:[^'\n]|'')*+)'|[^,']*+)\s*+(?:,|\Z)")
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
