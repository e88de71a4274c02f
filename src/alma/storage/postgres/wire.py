"""Values on the wire to PostgreSQL, where the driver takes its time: lists of texts and numbers, and empty JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.types.json import set_json_loads

_SEPARATOR = '","'


class Texts(list[str]):
    """A list of texts, as a parameter."""


class _TextsDumper(Dumper):
    """The texts in quotes between curly brackets, joined at once; the driver would look at one after the other."""

    oid = psycopg.adapters.types["text"].array_oid

    def dump(self, obj: Texts) -> Buffer:
        joined = _SEPARATOR.join(obj)
        if "\x00" in joined:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        # Two quotes for each separator are ours, and most lists, being of ids, have no others.
        if "\\" in joined or joined.count('"') != 2 * (len(obj) - 1):
            joined = _SEPARATOR.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in obj)
        encoding = "utf-8" if self.connection is None else self.connection.info.encoding
        return f'{{"{joined}"}}'.encode(encoding)


class Floats(list[float]):
    """A list of finite numbers, as a parameter."""


class _FloatsDumper(Dumper):
    """The numbers between curly brackets, each as exact as it is."""

    oid = psycopg.adapters.types["float8"].array_oid

    def dump(self, obj: Floats) -> Buffer:
        return f"{{{','.join(map(repr, obj))}}}".encode("ascii")


def register_values(connection: psycopg.Connection[Any]) -> None:
    """Teach the connection to send lists at once, and to know empty JSON when it comes."""
    connection.adapters.register_dumper(Texts, _TextsDumper)
    connection.adapters.register_dumper(Floats, _FloatsDumper)
    set_json_loads(_from_json, connection)


def _from_json(data: str | bytes) -> Any:
    # Most metadata is empty, and to read that need not start a decoder.
    return {} if data == b"{}" else [] if data == b"[]" else json.loads(data)


@lru_cache(maxsize=1024)
def literal(text: str) -> str:
    """A text spelled out in a statement, for the planner to know it."""
    return sql.Literal(text).as_string(None).replace("%", "%%")


def listed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a statement, with lists of texts as such."""
    return {name: Texts(value) if _is_texts(value) else value for name, value in values.items()}


def _is_texts(value: object) -> bool:
    return type(value) is list and {*map(type, value)} == {str}
