"""Cold storage: the memories of ended sessions in compressed files, one for each session, from which they come back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from alma import clock
from alma.errors import NotFoundError, StorageError, TransferError
from alma.memory.archive import Archive
from alma.model.governance import ANONYMOUS, ArchiveCause, ArchivedRecord, Attribution
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Missing, Or
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.paths import file_name_of, make_directory
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.storage.document import from_document, timestamp_text, to_document
from alma.transfer.lines import atomic_write, line_writer, read_lines

_EVERYWHERE = Scope.everywhere()
_FORMAT = "alma-session"
_AT_ONCE = 500
_NOTE = "cold_storage"
_REASON = "the session was moved to cold storage"


@dataclass(frozen=True, slots=True)
class ColdSession:
    """A session in cold storage: its file, and how many memories that has."""

    session_id: str
    file: Path
    memories: int


class ColdStorage:
    """Moves the memories of sessions to files in a folder and back, with vectors and relationships.

    The session stays in the store and says where its file is; the history of its memories stays too. A memory is
    removed after the file is on disk and was read back. An interrupted move is continued by the next one.
    """

    def __init__(self, storage: StorageBackend, archive: Archive, folder: str | os.PathLike[str]) -> None:
        self._storage = checked_storage("cold storage", storage)
        self._archive = archive
        self._folder = Path(folder)

    def due(self, ended_before: datetime) -> list[str]:
        """The ids of sessions that ended or were archived before a moment, and are not in cold storage yet."""
        unknown = And(Missing("ended_at"), Compare("last_active_at", "lt", ended_before))
        over = Or(Compare("is_active", "eq", False), Compare("is_archived", "eq", True))
        where = And(over, Or(Compare("ended_at", "lt", ended_before), unknown))
        found = self._storage.values(Session, ("id", "metadata"), _EVERYWHERE, where)
        return [str(session_id) for session_id, metadata in found if _NOTE not in (metadata or {})]

    def store(self, session_id: str, by: Attribution = ANONYMOUS) -> ColdSession:
        """Move the memories of a session to its file."""
        session = self._session(session_id)
        file = self._file_of(session)
        _make_folder(file.parent)
        inside = Compare("session_id", "eq", session_id)
        ids = [str(key) for (key,) in self._storage.values(Memory, ("id",), _EVERYWHERE, inside)]
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            self._archive.put(Memory, part, _EVERYWHERE, ArchiveCause.ARCHIVED, _REASON, by)
        rows = self._archived(session_id)
        self._write(session, rows, file)
        _read(file)

        def remove(tx: Transaction) -> None:
            tx.delete_where(ArchivedRecord, _EVERYWHERE, In("id", [row.id for row in rows]))
            self._note(tx, session_id, {"file": file.name, "memories": len(rows), "at": timestamp_text(clock.now())})

        self._storage.write(remove, by)
        return ColdSession(session_id, file, len(rows))

    def restore(self, session_id: str, by: Attribution = ANONYMOUS) -> ColdSession:
        """Bring the memories of a session back from its file."""
        session = self._session(session_id)
        note = session.metadata.get(_NOTE)
        if not isinstance(note, dict):
            raise NotFoundError("session in cold storage", session_id)
        file = self._file_of(session)
        rows = _read(file)
        # An interrupted restore may have brought some back.
        there = {each.id for each in self._storage.get_many(Memory, [row.record_id for row in rows], _EVERYWHERE)}
        missing = [row for row in rows if row.record_id not in there]
        self._storage.write(lambda tx: tx.save(*missing), by)
        self._archive.restore([row.id for row in missing], _EVERYWHERE, by, Memory)
        self._storage.write(lambda tx: self._note(tx, session_id, None), by)
        return ColdSession(session_id, file, len(rows))

    def stored(self) -> list[ColdSession]:
        """The sessions in cold storage."""
        where = Compare("is_archived", "eq", True)
        found = self._storage.find(Session, _EVERYWHERE, where)
        noted = [(each, each.metadata.get(_NOTE)) for each in found]
        return [
            ColdSession(each.id, self._file_of(each), int(note["memories"]))
            for each, note in noted
            if isinstance(note, dict)
        ]

    # ------------------------------------------------------------------ internals

    def _session(self, session_id: str) -> Session:
        session = self._storage.get(Session, session_id, _EVERYWHERE)
        if session is None:
            raise NotFoundError("session", session_id)
        return session

    def _archived(self, session_id: str) -> list[ArchivedRecord]:
        """The archived memories of a session that were archived for cold storage, also by an interrupted move."""
        where = And(Compare("session_id", "eq", session_id), Compare("reason", "eq", _REASON))
        return self._storage.find(ArchivedRecord, _EVERYWHERE, where)

    def _file_of(self, session: Session) -> Path:
        project = session.project_id or "no-project"
        return self._folder / file_name_of(project) / f"{file_name_of(session.id)}.jsonl.gz"

    def _write(self, session: Session, rows: Sequence[ArchivedRecord], file: Path) -> None:
        with atomic_write(file, force=True) as new, line_writer(new, packed=True) as lines:
            lines.write({"format": _FORMAT, "session_id": session.id, "created_at": timestamp_text(clock.now())})
            for row in rows:
                lines.write({"record": to_document(row)})
            lines.write({"end": len(rows)})

    def _note(self, tx: Transaction, session_id: str, note: dict[str, Any] | None) -> None:
        (session,) = tx.lock(Session, [session_id], _EVERYWHERE)
        metadata = {name: value for name, value in session.metadata.items() if name != _NOTE}
        if note is not None:
            metadata[_NOTE] = note
        tx.update(Session, session_id, {"metadata": metadata, "is_archived": note is not None}, _EVERYWHERE)


def _make_folder(folder: Path) -> None:
    try:
        make_directory(folder)
    except OSError as exc:
        raise StorageError(f"the folder {folder} of cold storage cannot be made: {exc.strerror}") from exc


def _read(file: Path) -> list[ArchivedRecord]:
    """The archived records of a file, whose checksums and end are verified."""
    rows: list[ArchivedRecord] = []
    end: int | None = None
    number = 0
    for number, line in _lines(file):
        if number == 1 and line.get("format") != _FORMAT:
            raise TransferError(file, number, "it is not a session in cold storage")
        if "record" in line:
            rows.append(from_document(ArchivedRecord, line["record"]))
        end = line.get("end", end)
    if end != len(rows):
        raise TransferError(file, number, "the file ends without its last line: it is truncated")
    return rows


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not file.is_file():
        raise StorageError(
            f"the file {file} of this session is missing: put it back, or set the folder of cold storage"
        )
    yield from read_lines(file)
