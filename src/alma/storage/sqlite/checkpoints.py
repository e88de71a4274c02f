"""Checkpoints: what gathered in the write-ahead log is moved into the database."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from alma.storage.sqlite.connections import BUSY_SECONDS, PAGE_BYTES, OpenFile

_FRAME_BYTES = PAGE_BYTES + 24
_LOOK_AFTER_ROWS = 100
_CHECKPOINT_ROWS = 4_000
_CHECKPOINT_BYTES = 16 << 20
_MOST_BYTES_LEFT = 16 << 20
_MOST_BYTES_WHILE_WRITING = 48 << 20
_CHECKPOINT_PATIENCE_MS = 50
_READER_PATIENCE_MS = 2_000


class Checkpoints:
    """Moves what has gathered in the write-ahead log into the database, beside the writers instead of in their way."""

    def __init__(self, path: Path, writer: threading.Lock, file: OpenFile) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._writer = writer
        self._file = file
        self._running: threading.Thread | None = None
        self._tried_at_bytes = 0
        self._rows = 0
        self._look_at_rows = 0

    def wrote(self, rows: int) -> None:
        """Count what was committed; begin a checkpoint when enough has gathered since the last.

        How long the log is says nothing about how much is in it once it has started again, so the rows count as well.
        """
        self._rows += rows
        if self._rows >= self._look_at_rows:
            self._look_at_rows = self._rows + _LOOK_AFTER_ROWS
            self._start_if_due()

    def _start_if_due(self) -> None:
        if self._running is not None and self._running.is_alive():
            return
        try:
            gathered = self._log.stat().st_size
        except FileNotFoundError:
            return
        if gathered < self._tried_at_bytes:
            self._tried_at_bytes = 0
        # A log that a reader holds grows on, and is not tried again at once.
        if self._rows >= _CHECKPOINT_ROWS or gathered >= self._tried_at_bytes + _CHECKPOINT_BYTES:
            self._tried_at_bytes = gathered
            self._rows = self._look_at_rows = 0
            self._running = threading.Thread(target=self._checkpoint, name="alma-checkpoint", daemon=True)
            self._running.start()

    def finish(self) -> None:
        if self._running is not None:
            self._running.join()

    def _checkpoint(self) -> None:
        # Nothing is lost when it fails: the log keeps everything, and a later writer tries again.
        if self._file.problem() is not None:
            return
        with (
            suppress(sqlite3.Error, OSError),
            closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection,
        ):
            last_written = self._log.stat().st_mtime_ns
            (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            again = self._starting_again(frames * _FRAME_BYTES, last_written)
            if again is not None:
                # What was written meanwhile is moved before the writers have to wait, and most of it is on disk then.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_PATIENCE_MS}")
                with self._writer:
                    connection.execute(f"PRAGMA wal_checkpoint({again})")

    def _starting_again(self, gathered: int, last_written: int) -> Literal["TRUNCATE", "RESTART"] | None:
        """How to make the writers wait for the rest, if at all, so that the log can start again from its beginning.

        It does so by itself after a checkpoint without concurrent writes, but never under steady writing.
        """
        log = self._log.stat()
        if log.st_mtime_ns == last_written:
            return "TRUNCATE" if log.st_size > _MOST_BYTES_LEFT else None
        return "RESTART" if gathered > _MOST_BYTES_WHILE_WRITING else None


def empty_log(connection: sqlite3.Connection) -> None:
    """Move all of the write-ahead log into the database and cut it off, unless a reader keeps holding on to it."""
    connection.execute(f"PRAGMA busy_timeout = {_READER_PATIENCE_MS}")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
