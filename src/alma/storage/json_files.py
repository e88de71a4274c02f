"""A folder of JSON arrays that changes as a whole: locked, written beside, then renamed into place.

A commit writes every changed file and its backup under new names, then `commit.json` with a list of them, which is the
moment the commit counts, then renames. Whoever finds a `commit.json` left by a process that died finishes its renames.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alma.errors import DamagedFileError, StorageError, StorageFullError, StoreReplacedError
from alma.paths import make_directory, open_private

Signature = tuple[int, int, int]

_MARKER = "commit.json"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class JsonFolder:
    """The files of one store, their locks and their commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _translated(folder):
            make_directory(folder)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def backup(self, name: str) -> Path:
        """Where a copy of the file's last committed state is kept."""
        return self.folder / f"{name}.json.bak"

    def signature(self, name: str) -> Signature | None:
        """What tells one state of a file from the next; None where there is no file."""
        try:
            stat = self.path(name).stat()
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def read(self, name: str) -> list[dict[str, Any]]:
        """The objects in a file, of which there are none where there never was one."""
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
        """Be the only writer, and finish what a writer that died had committed."""
        with self._lock("writer", fcntl.LOCK_EX):
            self._recover()
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep commits from renaming files meanwhile; held only while files are looked at."""
        while True:
            with self._lock("files", fcntl.LOCK_SH):
                if not (self.folder / _MARKER).exists():
                    yield
                    return
            # A marker that is seen while no commit holds the lock was left by a process that died.
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
        """Replace these files together; to be called while writing."""
        marker = self.folder / f"{_MARKER}.new"
        with _translated(self.folder):
            try:
                for name, rows in changed.items():
                    self._write_both(name, _array(rows))
                self._write(marker, json.dumps(sorted(changed)))
            except BaseException:
                self._discard_new()
                raise
        # From here on nothing needs room on the disk any more: what counts cannot fail for want of it.
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
        """The names that a marker lists; without them nobody knows which files belong to the commit."""
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
        """The file and its backup: a file of its own, because a second name for the same file would be torn with it."""
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
    """One object a line: a person can read it and a tool can compare it."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


@contextmanager
def _translated(folder: Path, *expected: type[OSError]) -> Iterator[None]:
    """The system's errors as ours; around our own calls only, never around a caller's code."""
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
