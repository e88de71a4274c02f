"""Repeated log lines: the first is written, those like it within ten seconds are counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SECONDS = 10.0
_MOST_KINDS = 1_000
# An internal error is looked up by the id of its request, so more of these are written.
_INTERNAL_ERRORS = 20
_LOGGERS = ("alma.rest", "alma.mcp", "alma.serving", "uvicorn", "asyncio", "mcp", "sse_starlette")

_Kind = tuple[str, int, str, type[BaseException] | None]


@dataclass(slots=True)
class _Window:
    until: float
    left: int
    first: logging.LogRecord
    held_back: int = 0


class Repeated(logging.Filter):
    """Keeps a client that is refused again and again from filling the log; threads may share one."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._windows: dict[_Kind, _Window] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; of another part of the program every one is."""
        if not any(record.name == name or record.name.startswith(f"{name}.") for name in _LOGGERS):
            return True
        if getattr(record, "is_count", False):
            return True
        kind = _kind_of(record)
        with self._lock:
            window = self._windows.get(kind)
            if window is None and len(self._windows) < _MOST_KINDS:
                is_internal = record.levelno >= logging.ERROR and record.name.startswith("alma.")
                left = _INTERNAL_ERRORS if is_internal else 1
                window = self._windows[kind] = _Window(self._monotonic() + _SECONDS, left, record)
            if window is None:
                return False
            if window.left:
                window.left -= 1
                return True
            window.held_back += 1
            return False

    def tell_counts(self) -> None:
        """Write how often the lines came whose ten seconds are over."""
        moment = self._monotonic()
        with self._lock:
            over = [kind for kind, window in self._windows.items() if window.until <= moment]
            windows = [self._windows.pop(kind) for kind in over]
        for window in windows:
            if window.held_back:
                first = window.first
                logging.getLogger(first.name).log(
                    first.levelno,
                    "%d more within %d s: %s",
                    window.held_back,
                    _SECONDS,
                    first.getMessage().partition("\n")[0],
                    extra={"is_count": True},
                )


@contextmanager
def counting_repeated_lines() -> Iterator[Repeated]:
    """Count repeated lines of the servers in every handler there is, for as long as a server runs."""
    repeated = Repeated()
    root = logging.getLogger().handlers
    handlers = [*root, *([] if root or logging.lastResort is None else [logging.lastResort])]
    for handler in handlers:
        handler.addFilter(repeated)
    try:
        yield repeated
    finally:
        for handler in handlers:
            handler.removeFilter(repeated)


def _kind_of(record: logging.LogRecord) -> _Kind:
    error = record.exc_info[0] if record.exc_info else None
    # Others put what a client sent into their messages; ours are constant but for the reason.
    text = record.getMessage() if record.name.startswith("alma.") else str(record.msg)
    return record.name, record.levelno, text, error
