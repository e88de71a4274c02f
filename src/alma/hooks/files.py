"""The files of hooks: what each session was shown, events that wait to be learned from, and the log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from alma.hooks.hosts import Json

_LONGEST_LOG = 1_000_000
_MOST_WAITING = 2_000
_KEPT_DAYS = 14


class Session:
    """The memories shown in a session: the block at its start, its ids, and a fingerprint of each memory by its id."""

    def __init__(self, held: Json) -> None:
        shown, first = held.get("shown"), held.get("first")
        self.block = str(held.get("block", ""))
        self.prompt = str(held.get("prompt", ""))
        self.shown: dict[str, str] = {**shown} if isinstance(shown, dict) else {}
        self.first: list[str] = [*first] if isinstance(first, list) else []


class HookFiles:
    """The files in a folder that only their owner can read; each write replaces a file atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spool, self._sessions = folder / "spool", folder / "sessions"

    # ------------------------------------------------------------------ sessions

    def session(self, name: str) -> Session:
        """The memories shown in a session; a damaged file counts as a new session."""
        return Session(self._read(self._sessions / f"{_named(name)}.json"))

    def save_session(self, name: str, session: Session) -> None:
        """Keep what a session was shown."""
        self._write(self._sessions / f"{_named(name)}.json", vars(session))

    def progress(self, name: str) -> Json:
        """How far the transcripts of a session were read."""
        return self._read(self._sessions / f"{_named(name)}.read")

    def save_progress(self, name: str, progress: Json) -> None:
        """Keep how far the transcripts of a session were read."""
        self._write(self._sessions / f"{_named(name)}.read", progress)

    def drop_old_sessions(self) -> None:
        """Remove sessions that were not used for two weeks."""
        if not self._sessions.is_dir():
            return
        oldest = time.time() - _KEPT_DAYS * 86_400
        for file in self._sessions.iterdir():
            with suppress(OSError):
                if file.stat().st_mtime < oldest:
                    file.unlink()

    # ------------------------------------------------------------------ waiting events

    def spool(self, event: Json) -> None:
        """Keep an event until it is learned from; the oldest give way when nothing learns for a long time."""
        names = self._waiting()
        for name in names[: max(0, len(names) - _MOST_WAITING)]:
            (self._spool / name).unlink(missing_ok=True)
        self._write(self._spool / f"{time.time_ns():020d}-{os.getpid()}.json", event)

    def waiting(self) -> Iterator[tuple[Path, Json]]:
        """The events that wait, oldest first."""
        for name in self._waiting():
            yield self._spool / name, self._read(self._spool / name)

    def _waiting(self) -> list[str]:
        if not self._spool.is_dir():
            return []
        return sorted(file.name for file in self._spool.iterdir() if file.suffix == ".json")

    # ------------------------------------------------------------------ log

    @property
    def log_file(self) -> Path:
        """The log of hooks and of the resident process."""
        return self.folder / "hooks.log"

    def log(self, sentence: str) -> None:
        """Add a line to the log; an error here is passed over."""
        with suppress(OSError):
            self._make(self.folder)
            if self.log_file.exists() and self.log_file.stat().st_size > _LONGEST_LOG:
                self.log_file.replace(self.log_file.with_suffix(".old"))
            line = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(sentence.split())}\n"
            with os.fdopen(os.open(self.log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as out:
                out.write(line)

    # ------------------------------------------------------------------ internals

    def _write(self, file: Path, value: Any) -> None:
        self._make(file.parent)
        fresh = file.with_suffix(f".{os.getpid()}.new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            json.dump(value, out)
        fresh.replace(file)

    def _read(self, file: Path) -> Json:
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) else {}

    def _make(self, folder: Path) -> None:
        for each in (self.folder, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)


def _named(session: str) -> str:
    """A file name for a session, whose name may hold anything."""
    return blake2b(session.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
