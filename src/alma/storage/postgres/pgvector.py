"""Vectors on the wire to PostgreSQL: pgvector's binary form, for psycopg."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

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
