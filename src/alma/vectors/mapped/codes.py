"""The first stage of a search: four-bit quantized codes select the rows that are compared exactly."""

from __future__ import annotations

import logging
import math
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.lazy import lazy_module
from alma.vectors.mapped.table import Flags, Floats, Numbers, View

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_log = logging.getLogger("alma.vectors")

_BITS = 4
_DIMS_STEP = 8
_ADDED_AT_ONCE = 4096
_READ_AT_ONCE = 1 << 20
LEAST_LOOKED_AT = 96
"""The minimum number of rows that are compared exactly, because codes misorder near rows."""
# Multiples of that number to try, and the mark of useless codes. Comparing one selected row costs as much as _PICKING
# sequential ones, so larger multiples do not pay.
_TIMES, _USELESS = (1, 8, 64), 0
_PICKING = 16
# Recall is measured on the _FOUND nearest rows of _SAMPLES rows, and again when the table has grown by this factor.
_FOUND, _SAMPLES, _GROWN = 10, 24, 1.2
# The required recall of these rows, and the tolerance of fixed-point vectors.
_ENOUGH, _TIE = 0.985, 1e-4
# A filtered scan takes three times as long: if nearly all rows are inside, the others are dropped afterwards.
_NEARLY_ALL = 0.9
# The number of additional rows to request in that case, in standard deviations.
_CAUTION = 4.0


class Coarse:
    """Quantized codes of the first rows of a table, in its order.

    `times` multiplies the number of rows that are compared exactly, so that codes find the nearest rows; 0 if no number
    is enough and every row has to be compared.
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
        """The codes in a file, or None if there are no usable ones."""
        from turbovec import TurboQuantIndex

        if not path.exists():
            return None
        try:
            saved, times = _sum_path(path).read_text().split()
            if saved != _sum_of(path) or int(times) not in (*_TIMES, _USELESS):
                raise ValueError("their checksum is wrong")
            index = TurboQuantIndex.load(str(path))
        except (ValueError, OSError) as exc:
            _log.warning("the codes of the vector index are unusable and will be rebuilt", extra={"reason": str(exc)})
            return None
        coarse = cls(dims, index, int(times))
        fits = index.dim == dims + coarse._padding and index.bit_width == _BITS and len(index) <= most_rows
        return coarse if fits else None

    @property
    def count(self) -> int:
        """The number of rows with codes."""
        return len(self._index)

    def save(self, path: Path) -> None:
        """Write the codes atomically to a file, and a checksum next to it. They are not flushed, because they can be
        rebuilt.
        """
        with self._lock:
            self._index.write(str(path), durable=False)
        _sum_path(path).write_text(f"{_sum_of(path)} {self.times}")

    def measure(self, view: View) -> None:
        """Determine how many rows have to be compared; repeated when the table has grown. If the model, or the texts,
        make all vectors similar, their codes hardly differ.
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
        """The number of rows nearest to the samples that are among the proposed ones."""
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
        """The rows with the nearest codes among the first `settled` rows that are inside, and the number of compared
        rows. Rows that got codes after the snapshot of the caller are left out.
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
    """The number of rows that almost certainly contains `most` rows of this share."""
    return 1 + math.ceil((most + _CAUTION * math.sqrt(most * (1 - share))) / share)
