"""Files: a store of plain JSON arrays, for tests, fallback and reading with other tools."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from alma.errors import ConfigurationError, StorageError, ValidationError
from alma.model.governance import Setting, default_settings
from alma.model.kinds import KINDS
from alma.model.record import Record
from alma.model.vector import Vector
from alma.paths import expand_home
from alma.storage.backend import Backend
from alma.storage.base import DEFAULT_MODEL, ChainHead, Mark, StorageBackend
from alma.storage.document import from_document, timestamp_of, timestamp_text, to_document
from alma.storage.in_memory import (
    CHAINS,
    MODELS,
    OUTBOX,
    PROJECTIONS,
    VECTORS,
    MarkKey,
    Table,
    TableBackend,
    VectorKey,
    mark_key,
)
from alma.storage.json_files import JsonFolder, Signature
from alma.storage.records import USUAL_DIMENSIONS, described


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
        """Write the documented settings, unless another process did while this one waited."""
        if not self._folder.read(Setting.spec.table):
            self._folder.commit({Setting.spec.table: [to_document(setting) for setting in default_settings()]})

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `storage_dir` and `embedding_dim` describe."""
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
        """The committed state of every file, read again only where a file changed."""
        # In this order: a thread that waits for the folder must not hold the cache lock.
        with self._folder.reading(), self._cache_lock:
            for format_ in FORMATS.values():
                signature = self._folder.signature(format_.name)
                cached = self._cache.get(format_.name)
                if cached is None or cached[0] != signature:
                    self._cache[format_.name] = (signature, self._read(format_))
            return {name: table for name, (_, table) in self._cache.items()}

    def _remember(self, changed: Mapping[str, Table]) -> None:
        """What this process has just written need not be read again; no other can write until the lock is gone."""
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


def _rows(name: str, table: Table) -> Iterable[dict[str, Any]]:
    write = FORMATS[name].write
    return [write(key, value) for key, value in table.items()]


@dataclass(frozen=True)
class Format:
    """How one file's rows become values with keys, and back."""

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
    return mark_key(mark), mark


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
