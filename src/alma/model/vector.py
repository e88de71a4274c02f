"""Vector: an immutable embedding of single-precision floats, without third-party types."""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, overload

from alma.errors import ValidationError

LONGEST_VECTOR = 16_000
"""The maximum number of dimensions, which is that of pgvector."""

# One in 16-bit fixed point.
_ONE = 1 << 15


class Vector(Sequence[float]):
    """An embedding in its stored form: finite 32-bit floats. It is created from a sequence of numbers or a
    one-dimensional array, and equals any sequence of the same floats.
    """

    __slots__ = ("_data", "_floats")
    _floats: array[float]
    _data: bytes

    def __getattr__(self, name: str) -> Any:
        # Only of packed vectors, most of which are read with their record and never used.
        if name != "_floats":
            raise AttributeError(f"a vector has no {name}")
        whole = struct.unpack(f"<{len(self._data) // 2}hb", self._data)[:-1]
        self._floats = array("f", [number / _ONE for number in whole])
        return self._floats

    def __init__(self, values: Any) -> None:
        self._floats = values._floats if isinstance(values, Vector) else _single_precision(values)

    @classmethod
    def from_bytes(cls, data: bytes, *, big_endian: bool = False) -> Vector:
        """The vector with these 32-bit floats, little-endian by default."""
        vector = cls.__new__(cls)
        vector._floats = array("f", data)
        if (sys.byteorder == "big") != big_endian:
            vector._floats.byteswap()
        return vector

    def to_bytes(self) -> bytes:
        """Little-endian 32-bit floats, the format of all stores."""
        if sys.byteorder == "little":
            return self._floats.tobytes()
        swapped = self._floats[:]
        swapped.byteswap()
        return swapped.tobytes()

    def packed(self) -> bytes:
        """The bytes in an SQLite store: 16-bit fixed-point numbers where these are exactly the same, else the floats.

        The local model makes such vectors. A mark at the end makes the length of fixed-point numbers odd.
        """
        # Most others differ in the first component.
        if (self._floats[0] * _ONE) % 1:
            return self.to_bytes()
        scaled = [number * _ONE for number in self._floats]
        whole = list(map(int, scaled))
        if whole != scaled or not (min(whole) > -_ONE and max(whole) < _ONE):
            return self.to_bytes()
        return struct.pack(f"<{len(whole)}hb", *whole, 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Vector:
        """The vector in packed bytes."""
        if len(data) % 2 == 0:
            return cls.from_bytes(data)
        vector = cls.__new__(cls)
        vector._data = data
        return vector

    def __len__(self) -> int:
        return len(self._floats)

    def __iter__(self) -> Iterator[float]:
        return iter(self._floats)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        return self._floats[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vector):
            # Compare bytes first: comparing arrays of floats takes twenty times as long.
            mine, theirs = self._floats, other._floats
            return mine is theirs or mine.tobytes() == theirs.tobytes() or mine == theirs
        if isinstance(other, Sequence) and not isinstance(other, str | bytes):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._floats.tobytes())

    def __repr__(self) -> str:
        head = ", ".join(f"{value:.4g}" for value in self._floats[:3])
        return f"Vector([{head}{', …' if len(self) > 3 else ''}], dims={len(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Vector.from_bytes, (self.to_bytes(),)


def wrong_dimension(number: object) -> str | None:
    """Why a number of dimensions is invalid, or None."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LONGEST_VECTOR:
        return f"must be a whole number from 1 to {LONGEST_VECTOR:,}"
    return None


def _single_precision(values: Any) -> array[float]:
    if type(values) is list and values:
        try:
            # Twice as fast as array() on a list, and rejects values out of range.
            packed = array("f", struct.pack(f"={len(values)}f", *values))
            if math.isfinite(sum(values)):
                return packed
        except (struct.error, TypeError, ValueError, OverflowError):
            pass
    floats = _packed(values)
    if not floats:
        raise _unusable(values, "must have at least one number")
    # Finite single-precision numbers cannot overflow a double, so their sum is finite if all are.
    if not math.isfinite(sum(floats)):
        raise _unusable(values, "must hold finite single-precision numbers only")
    return floats


def _packed(values: Any) -> array[float]:
    # Dicts and sets are iterable, but not vectors.
    if isinstance(values, str | bytes | bytearray | Mapping | Set):
        raise _unusable(values, "must be a sequence of numbers")
    if hasattr(values, "__array_interface__"):
        if getattr(values, "ndim", 1) != 1 or values.dtype.kind not in "fiu":
            raise _unusable(values, "must be a one-dimensional array of real numbers")
        if values.dtype == "float32":
            return array("f", values.tobytes())
        values = values.tolist()
    try:
        return array("f", values)
    except (TypeError, ValueError, OverflowError) as exc:
        raise _unusable(values, "must be a sequence of numbers") from exc


def _unusable(values: Any, reason: str) -> ValidationError:
    return ValidationError("vector", None, values, reason)
