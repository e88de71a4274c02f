"""The first stage of a search: four-bit codes of the rows, scanned for the few that are compared exactly."""

from __future__ import annotations

import logging
import math
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alma.vectors.mapped.table import Flags, Floats, Numbers, View

_log = logging.getLogger("alma.vectors")

_BITS = 4
_DIMS_STEP = 8
_ADDED_AT_ONCE = 4096
_READ_AT_ONCE = 1 << 20
LEAST_LOOKED_AT = 96
"""The fewest rows that are compared exactly, because codes mistake the order of near rows."""
# Multiples of that, where it is not enough, and the mark of codes that are useless. Comparing one picked row takes as
# long as comparing so many in their order, so larger multiples do not pay.
_TIMES, _USELESS = (1, 8, 64), 0
_PICKING = 16
# Found out by looking for so many of the nearest of so many rows, and again when there are so many times as many.
_FOUND, _SAMPLES, _GROWN = 10, 24, 1.2
# The share of them that must be found, and what single precision may get wrong.
_ENOUGH, _TIE = 0.985, 2e-6
# A scan that must pass over rows takes three times as long: where nearly all are inside, the others are dropped after.
_NEARLY_ALL = 0.9
# How many more of the best are then requested than should be inside, in standard deviations.
_CAUTION = 4.0


class Coarse:
    """Codes of the first rows of a table, in its order.

    `times` says how many times as many of the best as usual are compared, so that codes find the nearest rows; 0 where
    no number is enough and every row has to be compared.
    """

    def __init__(self, dims: int, index: Any = None, times: int = 1) -> None:
        from turbovec import TurboQuantIndex

        self.times = times
        self._measured = 0 if index is None else len(index)
        self._dims = dims
        self._padding = -dims % _DIMS_STEP
        self._index = TurboQuantIndex(dim=dims + self._padding, bit_width=_BITS) if index is None else index
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path, dims: int, most_rows: int) -> Coarse | None:
        """The codes in a file, or None where there are none that can be of use."""
        from turbovec import TurboQuantIndex

        if not path.exists():
            return None
        try:
            saved, times = _sum_path(path).read_text().split()
            if saved != _sum_of(path) or int(times) not in (*_TIMES, _USELESS):
                raise ValueError("they are not what was saved")
            index = TurboQuantIndex.load(str(path))
        except (ValueError, OSError) as exc:
            _log.warning("the codes of the vector index are of no use and are made anew", extra={"reason": str(exc)})
            return None
        coarse = cls(dims, index, int(times))
        fits = index.dim == dims + coarse._padding and index.bit_width == _BITS and len(index) <= most_rows
        return coarse if fits else None

    @property
    def count(self) -> int:
        """How many rows have codes."""
        return len(self._index)

    def save(self, path: Path) -> None:
        """Put the codes into a file, in one step, and beside it what tells whether they are all there.

        They are not forced to the disk, as they can be made anew.
        """
        with self._lock:
            self._index.write(str(path), durable=False)
        _sum_path(path).write_text(f"{_sum_of(path)} {self.times}")

    def measure(self, view: View) -> None:
        """Determine how many rows have to be compared, again when there are many more of them.

        Where a model, or the texts, make all vectors similar, their codes hardly differ.
        """
        if self.count < _GROWN * self._measured:
            return
        self._measured = self.count
        wanted = min(_FOUND, self.count)
        samples = [view.vectors(row, row + 1)[0] for row in np.linspace(0, self.count - 1, _SAMPLES).astype(int)]
        least = [np.partition(view.all_cosines(each)[: self.count], -wanted)[-wanted] for each in samples]
        affordable = (times for times in _TIMES if times == 1 or times * LEAST_LOOKED_AT * _PICKING <= self.count)
        enough = (
            times for times in affordable if self._found(view, samples, least, times) >= _ENOUGH * _SAMPLES * wanted
        )
        self.times = next(enough, _USELESS)

    def _found(self, view: View, samples: Sequence[Floats], least: Sequence[float], times: int) -> int:
        """How many of the rows nearest to the samples are among the proposed ones."""
        found = 0
        for wanted, cosine in zip(samples, least, strict=True):
            rows, _ = self.nearest(wanted, times * LEAST_LOOKED_AT, None, self._measured)
            rows.sort()
            found += min(_FOUND, int(np.count_nonzero(view.cosines(rows, wanted) >= cosine - _TIE)))
        return found

    def extend(self, view: View, stop: int) -> None:
        """Add codes for the next rows of the view, up to a number."""
        vectors = view.vectors(self.count, min(self.count + _ADDED_AT_ONCE, stop))
        with self._lock:
            self._index.add(self._padded(vectors))

    def nearest(self, wanted: Floats, most: int, inside: Flags | None, settled: int) -> tuple[Numbers, int]:
        """The rows that seem nearest among the first `settled` ones and those inside, and how many were compared.

        Rows may have got codes since the caller looked; those are other rows to it, and left out.
        """
        with self._lock:
            covered = min(self.count, settled)
            mask = None if inside is None else inside[:covered]
            if covered < self.count:
                mask = np.pad(np.ones(covered, np.bool_) if mask is None else mask, (0, self.count - covered))
            found = self._nearest_inside(wanted, min(most, self.count), mask)
        return found, covered

    def _nearest_inside(self, wanted: Floats, most: int, mask: Flags | None) -> Numbers:
        if mask is None:
            return self._scanned(wanted, most, None)
        share = np.count_nonzero(mask) / len(mask)
        if share >= _NEARLY_ALL:
            found = self._scanned(wanted, min(_enough(most, share), self.count), None)
            kept: Numbers = found[mask[found]]
            if len(kept) >= most:
                return kept[:most]
        return self._scanned(wanted, most, np.ascontiguousarray(mask))

    def _scanned(self, wanted: Floats, most: int, mask: Flags | None) -> Numbers:
        _, found = self._index.search(self._padded(wanted[None]), k=most, mask=mask)
        rows: Numbers = found[0].astype(np.int64)
        return rows

    def _padded(self, vectors: Floats) -> Floats:
        padded = np.pad(vectors, ((0, 0), (0, self._padding))) if self._padding else vectors
        return np.ascontiguousarray(padded, np.float32)


def _sum_path(codes: Path) -> Path:
    return codes.with_name(f"{codes.name}.sum")


def _sum_of(path: Path) -> str:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(_READ_AT_ONCE):
            total = zlib.crc32(piece, total)
    return f"{total:08x}"


def _enough(most: int, share: float) -> int:
    """Among so many rows there are nearly always `most` of those that are such a share of all."""
    return 1 + math.ceil((most + _CAUTION * math.sqrt(most * (1 - share))) / share)
