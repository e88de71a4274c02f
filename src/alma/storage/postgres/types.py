"""Values on the wire to PostgreSQL, where the driver takes its time: lists of texts and numbers, and empty JSON."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.json import set_json_loads

from alma.model.vector import Vector

_HEADER = struct.Struct(">HH")


class _VectorDumper(Dumper):
    """The number of dimensions, two unused bytes, then big-endian single-precision floats."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> Buffer:
        return _HEADER.pack(len(obj), 0) + _swapped(obj.to_bytes())


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Vector:
        return Vector.from_bytes(bytes(data)[_HEADER.size :], big_endian=True)


def register_vectors(connection: Connection[Any]) -> bool:
    """Teach the connection to send and receive vectors; False where the database has no such type."""
    info = TypeInfo.fetch(connection, "vector")
    if info is None:
        return False
    info.register(connection)
    dumper = type("VectorDumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(Vector, dumper)
    connection.adapters.register_loader(info.oid, _VectorLoader)
    return True


def floats(sent: Sequence[bytes]) -> list[bytes]:
    """The little-endian floats of vectors as `vector_send` gives them, of one length: swapped all at once."""
    plain = _swapped(b"".join([data[_HEADER.size :] for data in sent]))
    length = len(plain) // max(1, len(sent))
    return [plain[start : start + length] for start in range(0, len(plain), max(1, length))]


def _swapped(data: bytes) -> bytes:
    """Little-endian floats as big-endian ones, and back."""
    floats = array("I" if array("I").itemsize == 4 else "L", data)
    floats.byteswap()
    return floats.tobytes()


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
