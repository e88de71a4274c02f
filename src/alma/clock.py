"""The current time, and unique ids."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERSION = 7
_last_stamp = 0
_lock = threading.Lock()


class Replay:
    """A time of its own for the whole process, set step by step; ids are the same in every run."""

    def __init__(self, moment: datetime, seed: int) -> None:
        self.moment = moment
        self.random = random.Random(seed)


_replay: Replay | None = None


@contextmanager
def replay(start: datetime, seed: int = 0) -> Iterator[Replay]:
    """Set the clock of this process to another time inside the block, to write what happened then."""
    global _replay, _last_stamp
    before, stamp = _replay, _last_stamp
    _replay, _last_stamp = Replay(start, seed), 0
    try:
        yield _replay
    finally:
        _replay, _last_stamp = before, stamp


def now() -> datetime:
    """The current time in UTC, timezone-aware."""
    return datetime.now(UTC) if _replay is None else _replay.moment


def new_id() -> str:
    """A new unique id: 32 hexadecimal digits of a version 7 UUID, sorted by creation time.

    Increasing ids keep indexes append-only, which makes writes fast.
    """
    stamp = _next_stamp()
    drawn = int.from_bytes(os.urandom(8) if _replay is None else _replay.random.randbytes(8), "big")
    sub_millisecond, milliseconds = stamp & 0xFFF, stamp >> 12
    high = milliseconds << 16 | 0x7000 | sub_millisecond
    low = 0b10 << 62 | drawn & (1 << 62) - 1
    return f"{high:016x}{low:016x}"


def moment_of(new: str) -> datetime | None:
    """The creation time of an id made by `new_id`; None for other ids."""
    # Imported here: uuid takes as long to load as the rest of what a hook needs.
    from uuid import UUID

    try:
        made = UUID(hex=new)
    except ValueError:
        return None
    return _EPOCH + timedelta(milliseconds=made.int >> 80) if made.version == _VERSION else None


def _next_stamp() -> int:
    """Milliseconds and 1/4096 fractions, strictly increasing in this process."""
    global _last_stamp
    nanoseconds = time.time_ns() if _replay is None else (_replay.moment - _EPOCH) // timedelta(microseconds=1) * 1_000
    stamp = nanoseconds // 1_000_000 << 12 | nanoseconds % 1_000_000 * 4096 // 1_000_000
    with _lock:
        _last_stamp = max(stamp, _last_stamp + 1)
        return _last_stamp
