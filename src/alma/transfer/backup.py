"""Backup and restore of a store in one file."""

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
from alma.transfer.lines import UNLIMITED, atomic_write
from alma.transfer.parcels import EVERYWHERE, TRAVELLING, OnProgress

RESTORING = Attribution(reason="restored from a backup")
_DATABASE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A written backup: a copy of the database, or an export."""

    path: Path
    form: str
    size_bytes: int


def is_database(path: Path) -> bool:
    """Whether a backup is an SQLite database and not an export."""
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
    """Write a consistent backup while the store is in use; the file appears when it is complete.

    The backup of an SQLite store is an SQLite file that can be opened; other stores are exported. Index files are not
    included, because they are rebuilt from the vectors.
    """
    target = Path(path)
    if Capability.COPY not in storage.capabilities:
        export_store(storage, target, force=force, on_progress=on_progress)
        return BackedUp(target, "export", target.stat().st_size)
    with atomic_write(target, force=force) as new:
        storage.copy_to(new, on_progress)
    return BackedUp(target, "database", target.stat().st_size)


def restore_store(
    path: str | os.PathLike[str],
    storage: StorageBackend,
    *,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> None:
    """Replace the contents of a store with a backup, in one transaction, after checking the backup.

    A store that is not empty is only replaced with `force`.
    """
    source = Path(path)
    if is_database(source):
        if Capability.COPY not in storage.capabilities:
            raise ConfigurationError(f"{source} is a copy of an SQLite store, which this store cannot restore")
        _refuse_to_overwrite(storage, force)
        storage.copy_from(source)
        return
    verify_export(source, UNLIMITED)
    _refuse_to_overwrite(storage, force)
    with _emptied(storage):
        import_store(storage, source, by=RESTORING, limits=UNLIMITED, on_progress=on_progress)


@contextmanager
def _emptied(storage: StorageBackend) -> Iterator[None]:
    """Empty the store; other readers see the change when the block is complete."""
    with storage.transaction(RESTORING) as tx:
        tx.erase()
        yield


def _refuse_to_overwrite(storage: StorageBackend, force: bool) -> None:
    if not force and holds_anything(storage):
        raise ConflictError("the store is not empty; restore into a new one, or replace what it holds with --force")


def holds_anything(storage: StorageBackend) -> bool:
    """Whether a store has more than default settings."""
    with storage.snapshot() as tx:
        kinds = (cls for cls in TRAVELLING if cls is not Setting)
        return any(tx.find(cls, EVERYWHERE, limit=1) for cls in (*kinds, MemoryVersion))
