"""Files: a store of plain JSON arrays, for tests, fallback and reading with other tools.

Commits are atomic: a commit writes every changed file and its backup under new names, then `commit.json` with a list of
them, which makes the commit durable, then renames the files. The next process completes a `commit.json` left by a
process that died.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from alma.errors import (
    ConfigurationError,
    DamagedFileError,
    StorageError,
    StorageFullError,
    StoreReplacedError,
    ValidationError,
)
from alma.model.governance import Setting, default_settings
from alma.model.kinds import KINDS
from alma.model.record import Record
from alma.model.vector import Vector
from alma.paths import expand_home, make_directory, open_private
from alma.storage.backend import Backend
from alma.storage.base import DEFAULT_MODEL, ChainHead, StorageBackend
from alma.storage.document import from_document, timestamp_of, timestamp_text, to_document
from alma.storage.in_memory import (
    CHAINS,
    MODELS,
    OUTBOX,
    PROJECTIONS,
    VECTORS,
    Table,
    TableBackend,
    VectorKey,
)
from alma.storage.outbox import Mark, MarkKey
from alma.storage.records import USUAL_DIMENSIONS, described

Signature = tuple[int, int, int]

_MARKER = "commit.json"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class FileBasedStorage(StorageBackend):
    """A store in a folder with one JSON array for each kind; every write rewrites the files it changes."""

    storage_type = "file"

    def __init__(
        self,
        storage_dir: str | os.PathLike[str],
        embedding_dim: int = 384,
        embedding_model: str = DEFAULT_MODEL,
    ) -> None:
        super().__init__(embedding_dim, embedding_model)
        if not isinstance(storage_dir, str | os.PathLike) or not os.fspath(storage_dir):
            raise ConfigurationError(f"storage_dir must be the path of a folder, not {storage_dir!r}")
        folder = Path(storage_dir)
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(f"storage_dir {os.fspath(storage_dir)!r} is a file; name a folder")
        self.storage_dir = folder
        self._folder = JsonFolder(folder)
        self._cache: dict[str, tuple[Signature | None, Table]] = {}
        self._cache_lock = threading.Lock()
        self._closed = False
        if not self._is_furnished():
            with self._folder.writing():
                self._furnish()

    def _is_furnished(self) -> bool:
        with self._folder.reading():
            return self._folder.signature(Setting.spec.table) is not None

    def _furnish(self) -> None:
        """Write the documented settings, unless another process has done so while this one waited."""
        if not self._folder.read(Setting.spec.table):
            self._folder.commit({Setting.spec.table: [to_document(setting) for setting in default_settings()]})

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store for `storage_dir` and `embedding_dim` of a configuration."""
        settings = described(config)
        return cls(expand_home(settings.storage_dir), embedding_dim=settings.embedding_dim or USUAL_DIMENSIONS)

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Backend]:
        if self._closed:
            raise StorageError(f"the store {self._folder.folder} was closed")
        if not write:
            yield TableBackend(self._tables(), self.embedding_dim, self.embedding_model, writable=False)
            return
        with self._folder.writing():
            backend = TableBackend(self._tables(), self.embedding_dim, self.embedding_model, writable=True)
            yield backend
            if backend.changed:
                self._folder.commit({name: _rows(name, table) for name, table in backend.changed.items()})
                self._remember(backend.changed)

    def require_in_place(self) -> None:
        with self._folder.reading():
            pass

    def _generation(self) -> str:
        return repr([self._folder.signature(name) for name in FORMATS])

    def _tables(self) -> dict[str, Table]:
        """The committed state of every file, cached until a file changes."""
        # Lock order: a thread that waits for the folder must not hold the cache lock.
        with self._folder.reading(), self._cache_lock:
            for format_ in FORMATS.values():
                signature = self._folder.signature(format_.name)
                cached = self._cache.get(format_.name)
                if cached is None or cached[0] != signature:
                    self._cache[format_.name] = (signature, self._read(format_))
            return {name: table for name, (_, table) in self._cache.items()}

    def _remember(self, changed: Mapping[str, Table]) -> None:
        """Cache what this process has just written; no other process can write before the lock is released."""
        with self._cache_lock:
            self._cache.update({name: (self._folder.signature(name), table) for name, table in changed.items()})

    def _read(self, format_: Format) -> Table:
        table: Table = {}
        for row in self._folder.read(format_.name):
            try:
                key, value = format_.read(row)
            except (ValidationError, KeyError, TypeError, ValueError) as exc:
                raise self._folder.damaged(format_.name, str(exc)) from exc
            if key in table:
                raise self._folder.damaged(format_.name, f"the id {key!r} occurs twice")
            table[key] = value
        return table

    def close(self) -> None:
        self._closed = True
        self._cache.clear()


class JsonFolder:
    """The files of a store, with their locks and commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _translated(folder):
            make_directory(folder)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def backup(self, name: str) -> Path:
        """The path of the copy of the file's last committed state."""
        return self.folder / f"{name}.json.bak"

    def signature(self, name: str) -> Signature | None:
        """A value that changes with the state of a file; None if there is no file."""
        try:
            stat = self.path(name).stat()
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def read(self, name: str) -> list[dict[str, Any]]:
        """The objects in a file; empty if there is no file."""
        try:
            with _translated(self.folder, FileNotFoundError):
                rows = json.loads(self.path(name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.backup(name).exists():
                raise self.damaged(name, "it is missing") from None
            return []
        except (ValueError, RecursionError) as exc:
            raise self.damaged(name, f"it is not JSON: {exc}") from exc
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.damaged(name, "it is not an array of objects")
        return rows

    def damaged(self, name: str, reason: str) -> DamagedFileError:
        backup = self.backup(name)
        return DamagedFileError(self.path(name), backup if backup.exists() else None, reason)

    # ------------------------------------------------------------------ locks

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock, and complete the commit of a writer that died."""
        with self._lock("writer", fcntl.LOCK_EX):
            self._recover()
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the read lock, which keeps commits from renaming files; only while files are read."""
        while True:
            with self._lock("files", fcntl.LOCK_SH):
                if not (self.folder / _MARKER).exists():
                    yield
                    return
            # A marker without a write lock was left by a process that died.
            with self.writing():
                pass

    @contextmanager
    def _lock(self, name: str, how: int) -> Iterator[None]:
        with _translated(self.folder):
            handle = open_private(self.folder / f".{name}.lock")
        try:
            with _translated(self.folder):
                fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    # ------------------------------------------------------------------ commits

    def commit(self, changed: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """Replace these files atomically; call it inside `writing`."""
        marker = self.folder / f"{_MARKER}.new"
        with _translated(self.folder):
            try:
                for name, rows in changed.items():
                    self._write_both(name, _array(rows))
                self._write(marker, json.dumps(sorted(changed)))
            except BaseException:
                self._discard_new()
                raise
        # The remaining steps need no disk space, so they cannot fail because the disk is full.
        with self._lock("files", fcntl.LOCK_EX), _translated(self.folder):
            marker.replace(self.folder / _MARKER)
            self._sync_folder()
            self._put_in_place(changed)

    def _recover(self) -> None:
        marker = self.folder / _MARKER
        if marker.exists():
            with self._lock("files", fcntl.LOCK_EX), _translated(self.folder):
                self._put_in_place(self._committed(marker))
        with _translated(self.folder):
            self._discard_new()

    def _committed(self, marker: Path) -> list[str]:
        """The names of the files of a commit, which its marker lists."""
        try:
            names = json.loads(marker.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as exc:
            raise DamagedFileError(marker, None, f"it is not JSON: {exc}") from exc
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DamagedFileError(marker, None, "it is not a list of names")
        return names

    def _put_in_place(self, names: Iterable[str]) -> None:
        for name in names:
            for path in (self.backup(name), self.path(name)):
                new = path.with_name(f"{path.name}.new")
                if new.exists():
                    new.replace(path)
        self._sync_folder()
        (self.folder / _MARKER).unlink()

    def _write_both(self, name: str, text: str) -> None:
        """Write the file and its backup, which is a real copy: a hard link would be damaged together with the file."""
        for path in (self.path(name), self.backup(name)):
            self._write(path.with_name(f"{path.name}.new"), text)

    def _discard_new(self) -> None:
        for leftover in self.folder.glob("*.new"):
            leftover.unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _array(rows: Iterable[Mapping[str, Any]]) -> str:
    """A JSON array with one object per line, readable and easy to compare."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


@contextmanager
def _translated(folder: Path, *expected: type[OSError]) -> Iterator[None]:
    """Translate OSError; used around our own calls only, never around a caller's code."""
    try:
        yield
    except expected:
        raise
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFullError(f"the disk of {folder} is full: nothing of this transaction was stored") from exc
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                f"{folder} cannot be opened or written ({exc.strerror}): this user must be allowed to write the folder "
                f"and the files in it"
            ) from exc
        if exc.errno == errno.ENOENT and not folder.is_dir():
            raise StoreReplacedError(
                f"the folder {folder} was deleted or moved away while this process had it open, and nothing was "
                f"stored: put it back, or restart this process to begin a new store"
            ) from exc
        if exc.errno in _NO_LOCKS:
            raise StorageError(
                f"the file system of {folder} cannot lock files ({exc.strerror}), so that no process can write safely: "
                f"put the store on a local disk"
            ) from exc
        raise StorageError(f"{folder}: {exc}") from exc


def _rows(name: str, table: Table) -> Iterable[dict[str, Any]]:
    write = FORMATS[name].write
    return [write(key, value) for key, value in table.items()]


@dataclass(frozen=True)
class Format:
    """Converts the rows of a file to values with keys, and back."""

    name: str
    read: Callable[[dict[str, Any]], tuple[Any, Any]]
    write: Callable[[Any, Any], dict[str, Any]]


def _record_format(cls: type[Record]) -> Format:
    def read(row: dict[str, Any]) -> tuple[Any, Record]:
        record = from_document(cls, row)
        return record.key, record

    return Format(cls.spec.table, read, lambda _, record: to_document(record))


def _read_vector(row: dict[str, Any]) -> tuple[VectorKey, Vector]:
    vector = Vector.from_bytes(base64.b64decode(row["embedding"], validate=True))
    if len(vector) != row["dims"]:
        raise ValueError(f"the vector of {row['memory_id']!r} has {len(vector)} dimensions, not {row['dims']}")
    return (row["memory_type"], row["memory_id"], row["model"], row.get("part", 0)), vector


def _write_vector(key: VectorKey, vector: Vector) -> dict[str, Any]:
    encoded = base64.b64encode(vector.to_bytes()).decode()
    return {
        "memory_type": key[0],
        "memory_id": key[1],
        "model": key[2],
        "part": key[3],
        "dims": len(vector),
        "embedding": encoded,
    }


def _read_mark(row: dict[str, Any]) -> tuple[MarkKey, Mark]:
    lease = row.get("leased_until")
    times = {
        "marked_at": timestamp_of(row["marked_at"]),
        "leased_until": None if lease is None else timestamp_of(lease),
    }
    mark = Mark(**{**row, **times})
    return mark.key, mark


def _write_mark(_: Any, mark: Mark) -> dict[str, Any]:
    lease = mark.leased_until
    return {
        "projection": mark.projection,
        "kind": mark.kind,
        "record_id": mark.record_id,
        "generation": mark.generation,
        "marked_at": timestamp_text(mark.marked_at),
        "leased_until": None if lease is None else timestamp_text(lease),
        "attempts": mark.attempts,
        "error": mark.error,
        "parked": mark.parked,
    }


FORMATS = {
    format_.name: format_
    for format_ in (
        *(_record_format(cls) for cls in KINDS),
        Format(VECTORS, _read_vector, _write_vector),
        Format(MODELS, lambda row: (row["model"], row["dims"]), lambda key, dims: {"model": key, "dims": dims}),
        Format(
            PROJECTIONS,
            lambda row: ((row["projection"], row["kind"]), True),
            lambda key, _: {"projection": key[0], "kind": key[1]},
        ),
        Format(OUTBOX, _read_mark, _write_mark),
        Format(CHAINS, lambda row: (row["chain"], ChainHead(**row)), lambda _, head: head._asdict()),
    )
}
