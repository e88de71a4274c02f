"""Backup and restore: one consistent state of a store in one file, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alma.errors import ConfigurationError, ConflictError
from alma.model.governance import Attribution, Setting
from alma.model.memory import MemoryVersion
from alma.storage.base import Capability, StorageBackend
from alma.transfer.exporting import export_store
from alma.transfer.importing import import_store, verify_export
from alma.transfer.lines import UNLIMITED, written
from alma.transfer.parcels import EVERYWHERE, TRAVELLING
from alma.transfer.report import OnProgress

RESTORING = Attribution(reason="restored from a backup")
_DATABASE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup wrote: a copy of the database, or an export of everything."""

    path: Path
    form: str
    size_bytes: int


def is_database(path: Path) -> bool:
    """Whether a backup is a copy of an SQLite store rather than an export."""
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}") from None
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}") from exc


def backup_store(
    storage: StorageBackend,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> BackedUp:
    """Write one committed state of the store, while others use it; the file appears when it is complete.

    An SQLite store becomes an SQLite file, which can be opened as it is; any other an export of everything. Index
    files beside a store are not part of it: they are made again from the vectors.
    """
    target = Path(path)
    if Capability.COPY not in storage.capabilities:
        export_store(storage, target, force=force, on_progress=on_progress)
        return BackedUp(target, "export", target.stat().st_size)
    with written(target, force=force) as new:
        storage.copy_to(new, on_progress)
    return BackedUp(target, "database", target.stat().st_size)


def restore_store(
    path: str | os.PathLike[str],
    storage: StorageBackend,
    *,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> None:
    """Make the store what the backup holds, all at once or not at all; the backup is checked first.

    A store that holds anything is only replaced with `force`.
    """
    source = Path(path)
    if is_database(source):
        if Capability.COPY not in storage.capabilities:
            raise ConfigurationError(f"{source} is a copy of an SQLite store, which this store cannot take as it is")
        _refuse_to_overwrite(storage, force)
        storage.copy_from(source)
        return
    verify_export(source, UNLIMITED)
    _refuse_to_overwrite(storage, force)
    with _emptied(storage):
        import_store(storage, source, by=RESTORING, limits=UNLIMITED, on_progress=on_progress)


@contextmanager
def _emptied(storage: StorageBackend) -> Iterator[None]:
    """The store without anything in it, for others from the moment that what is stored inside is complete."""
    with storage.transaction(RESTORING) as tx:
        tx.erase()
        yield


def _refuse_to_overwrite(storage: StorageBackend, force: bool) -> None:
    if not force and holds_anything(storage):
        raise ConflictError("the store is not empty; restore into a new one, or replace what it holds with --force")


def holds_anything(storage: StorageBackend) -> bool:
    """Whether there is more in a store than the settings that every new one has."""
    with storage.snapshot() as tx:
        kinds = (cls for cls in TRAVELLING if cls is not Setting)
        return any(tx.find(cls, EVERYWHERE, limit=1) for cls in (*kinds, MemoryVersion))
