"""Exact nearest neighbours with NumPy, for stores without vector search."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from alma.model.vector import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 4096


def nearest(wanted: Vector, candidates: Iterable[tuple[str, bytes]], limit: int) -> list[tuple[str, float]]:
    """The ids with the highest cosine, with the id for tie-breaking, in bounded memory. An id that occurs several times
    counts once, with its best cosine.
    """
    best: list[tuple[str, float]] = []
    rows = iter(candidates)
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        scored = dict(best)
        for (key, _), cosine in zip(chunk, cosines(wanted, [blob for _, blob in chunk]), strict=True):
            if cosine > scored.get(key, -2.0):
                scored[key] = cosine
        best = heapq.nsmallest(limit, scored.items(), key=_rank)
    return best


def _rank(scored: tuple[str, float]) -> tuple[float, str]:
    return -scored[1], scored[0]


def cosines(wanted: Vector, blobs: Sequence[bytes]) -> list[float]:
    """The cosine of one vector with each of the others; a zero vector has cosine 0 with everything."""
    import numpy as np

    if not blobs:
        return []
    # Double precision: the squares of large single-precision numbers would overflow.
    stored = _rows(blobs).astype(np.float64)
    query = np.frombuffer(wanted.to_bytes(), dtype="<f4").astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", stored, stored)) * np.sqrt(query @ query)
    # Not with BLAS, whose last digit depends on the number of rows: the same pair must always have the same cosine.
    dots = np.einsum("ij,j->i", stored, query)
    cosines = np.divide(dots, lengths, out=np.zeros(len(stored)), where=lengths > 0)
    clipped: list[float] = np.minimum(np.maximum(cosines, -1.0), 1.0).tolist()
    return clipped


def _rows(blobs: Sequence[bytes]) -> NDArray[np.floating]:
    """Packed vectors as rows of an array."""
    import numpy as np

    kinds = {len(blob) % 2 for blob in blobs}
    if kinds == {0}:
        return np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), -1)
    if kinds == {1}:
        whole = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), -1)[:, :-1]
        return np.ascontiguousarray(whole).view("<i2") / np.float64(1 << 15)
    return np.concatenate([_rows([blob]) for blob in blobs])
