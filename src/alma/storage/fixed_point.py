"""Vectors of 16-bit fixed-point numbers, which take half of the bytes; only where they are exactly the same.

The local model makes such vectors. A mark at the end of their bytes makes the length odd; others are 32-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alma.model.vector import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ONE = 1 << 15
_MARK = b"\x01"


def packed(vector: Vector) -> bytes:
    """The bytes of a vector: in fixed point if that is exact, else as floats."""
    data = vector.to_bytes()
    # Most others are seen at the first component.
    if abs(vector[0]) >= 1 or (vector[0] * _ONE) % 1 or (fixed := _fixed(data)) is None:
        return data
    return fixed + _MARK


def _fixed(data: bytes) -> bytes | None:
    import numpy as np

    scaled = np.frombuffer(data, "<f4") * np.float32(_ONE)
    if np.abs(scaled).max() >= _ONE:
        return None
    numbers = scaled.astype("<i2")
    return numbers.tobytes() if np.array_equal(numbers, scaled) else None


def unpacked(data: bytes) -> Vector:
    """The vector in these bytes."""
    return Vector.from_bytes(as_floats(data))


def as_floats(data: bytes) -> bytes:
    """The same bytes as 32-bit floats."""
    return data if len(data) % 2 == 0 else rows([data]).astype("<f4").tobytes()


def rows(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    """The vectors in these bytes as rows of an array."""
    import numpy as np

    kinds = {len(blob) % 2 for blob in blobs}
    if kinds == {0}:
        return np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), -1)
    if kinds == {1}:
        raw: Any = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), -1)[:, :-1]
        return np.ascontiguousarray(raw).view("<i2").astype(np.float32) / np.float32(_ONE)
    return np.concatenate([rows([blob]) for blob in blobs])
