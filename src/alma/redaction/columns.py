"""Columns: secrets in tables, which the name at the head of their column tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from alma.redaction.secrets import Span
from alma.redaction.telling import is_secret_name
from alma.redaction.values import is_slug, is_unlike_any_name, may_be_secret
from alma.text.scanning import matches

_HEAD = re.compile(r"[\w .*`\"'()/-]{1,40}")
_RULE = re.compile(r"[\s|:+=-]*")
_AROUND = " \t*`\"'|"
_INSERT = re.compile(
    r"\binsert\s+into\s+[\w.\"`\[\]]{1,80}\s*\((?P<names>[^()\n]{1,500})\)\s*values\s*(?P<rows>\([^;]++)",
    re.IGNORECASE,
)
_ROW = re.compile(r"\((?P<row>(?:'(?:[^'\n]|'')*+'|[^()'\n])*+)\)")
_CELL = re.compile(r"\s*+(?:'(?P<quoted>(?:[^'\n]|'')*+)'|[^,']*+)\s*+(?:,|\Z)")
# Deeper than this nobody reads a table without its head.
_MOST_ROWS = 500


def column_spans(text: str) -> Iterator[Span]:
    """The values of tables, lists with commas and SQL that stand in a column with the name of a secret."""
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
        if secret and len(cells) == width and rows < _MOST_ROWS:
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
