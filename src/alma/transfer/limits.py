"""Limits: how much of an imported file is held at once, and how much a compressed one may unpack to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from alma.errors import ValidationError

MEGABYTE = 1 << 20


class LimitExceeded(Exception):
    """Why a file is larger than it may be, and what to do about it; the reader adds where."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an import takes: a line, row or element of `row_bytes`, and `unpacked_bytes` out of a compressed file."""

    row_bytes: int = 256 * MEGABYTE
    unpacked_bytes: int = 16 * 1024 * MEGABYTE

    def __post_init__(self) -> None:
        for name in ("row_bytes", "unpacked_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValidationError("import", name, value, "must be a whole number of at least 1")

    def check_row(self, size: int) -> None:
        """Refuse a line, row or element of this size."""
        if size > self.row_bytes:
            raise LimitExceeded(
                f"it is longer than {_shown(self.row_bytes)}, the most that is read at once; nothing was imported: "
                "split it, or allow more with --max-row-mb"
            )

    def check_unpacked(self, size: int) -> None:
        """Refuse a compressed file that unpacks to this size."""
        if size > self.unpacked_bytes:
            raise LimitExceeded(
                f"it unpacks to more than {_shown(self.unpacked_bytes)}, the most that is taken; nothing was "
                "imported: unpack it yourself if you trust it, or allow more with --max-unpacked-mb"
            )

    def lines(self, file: BinaryIO, *, packed: bool = False) -> Iterator[bytes]:
        """The lines of a file, none held that is longer than it may be."""
        total = 0
        while line := file.readline(self.row_bytes + 1):
            total += len(line)
            if packed:
                self.check_unpacked(total)
            self.check_row(len(line))
            yield line


UNLIMITED = Limits(1 << 62, 1 << 62)
"""For a backup, which is the operator's own file."""


def _shown(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB" if size >= MEGABYTE else f"{size:,} bytes"
