"""An engine of the simplest kind: a table in a second SQLite file, which refuses some texts by constraints."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from alma.errors import StorageError, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.record import Record
from alma.storage.document import document_text, spelled_document
from alma.sync import Change, Difference, Mismatch, Projection

REFUSED, FAILING = "refuse this", "fail at this"
_SCHEMA = f"""
    CREATE TABLE IF NOT EXISTS entries (
        kind TEXT, id TEXT, content TEXT CHECK (content NOT LIKE '%{REFUSED}%'), hash TEXT, PRIMARY KEY (kind, id)
    );
    CREATE TRIGGER IF NOT EXISTS failing BEFORE INSERT ON entries WHEN NEW.content LIKE '%{FAILING}%'
    BEGIN SELECT RAISE(FAIL, 'out of order'); END;
"""


class SecondStore(Projection):
    """Keeps the content and a hash of each record; the engine is down while the folder of its file is missing."""

    name: ClassVar[str] = "second"
    kinds: ClassVar[tuple[type[Record], ...]] = (Memory, Heuristic)
    needs_vectors: ClassVar[bool] = True

    def __init__(self, path: Path, before_apply: Callable[[Sequence[Change]], object] = lambda _: None) -> None:
        self.path = path
        self.batches: list[int] = []
        self._before_apply = before_apply

    def close(self) -> None:
        """Nothing stays open."""

    def ping(self) -> None:
        if not self.path.parent.is_dir():
            raise StorageError(f"the second store at {self.path} does not answer")

    def prepare(self) -> None:
        self.ping()
        with self._open() as db:
            db.executescript(_SCHEMA)

    def apply(self, changes: Sequence[Change]) -> None:
        self.batches.append(len(changes))
        self._before_apply(changes)
        with self._open() as db:
            db.executemany("DELETE FROM entries WHERE kind = ? AND id = ?", [_name(each) for each in changes])
            rows = [(*_name(each), *_entry(each)) for each in changes if each.record is not None]
            db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)

    def compare(self, expected: Sequence[Change]) -> list[Mismatch]:
        with self._open() as db:
            found = (
                (
                    each,
                    db.execute("SELECT content, hash FROM entries WHERE kind = ? AND id = ?", _name(each)).fetchone(),
                )
                for each in expected
            )
            states = [(each, _difference(each, row)) for each, row in found]
        return [Mismatch(each.record_id, state) for each, state in states if state is not None]

    def held(self, cls: type[Record], after: str | None, limit: int) -> list[str]:
        sql = "SELECT id FROM entries WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        with self._open() as db:
            return [key for (key,) in db.execute(sql, (cls.spec.kind, after or "", limit))]

    def count(self, cls: type[Record]) -> int:
        with self._open() as db:
            return int(db.execute("SELECT count(*) FROM entries WHERE kind = ?", (cls.spec.kind,)).fetchone()[0])

    def clear(self) -> None:
        with self._open() as db:
            db.execute("DELETE FROM entries")

    def change(self, sql: str, *values: object) -> None:
        """Damage the entries behind the back of the relay."""
        with self._open() as db:
            db.execute(sql, values)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as db, db:
                yield db
        except sqlite3.IntegrityError as exc:
            if "CHECK" in str(exc):
                raise ValidationError("second", "content", None, "is refused") from exc
            raise StorageError(str(exc)) from exc
        except sqlite3.Error as exc:
            raise StorageError(f"the second store at {self.path} failed: {exc}") from exc


def _name(change: Change) -> tuple[str, str]:
    return change.cls.spec.kind, change.record_id


def _entry(change: Change) -> tuple[str, str]:
    assert change.record is not None
    counters = ("access_count", "last_accessed_at")
    fields = spelled_document(change.record, without=(*counters, change.record.spec.vector_field or ""))
    vectors = "".join(f"{each.model}{each.part}{each.vector.to_bytes().hex()}" for each in change.vectors)
    content = document_text(fields.items()) + vectors
    return content, hashlib.sha256(content.encode()).hexdigest()


def _difference(change: Change, row: tuple[str, str] | None) -> Difference | None:
    if row is None:
        return Difference.MISSING
    content, digest = row
    if hashlib.sha256(content.encode()).hexdigest() != digest:
        return Difference.CORRUPTED
    return None if (content, digest) == _entry(change) else Difference.STALE
