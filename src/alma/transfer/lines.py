"""The export file format: JSON lines with a running checksum, size limits, and atomic writing."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from alma.errors import (
    ConfigurationError,
    ConflictError,
    StorageError,
    StorageFullError,
    TransferError,
    ValidationError,
)
from alma.paths import make_private

MEGABYTE = 1 << 20


class LimitExceeded(Exception):
    """A file exceeds a limit; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an import: bytes per line, row or element, and bytes unpacked from a compressed file."""

    row_bytes: int = 256 * MEGABYTE
    unpacked_bytes: int = 16 * 1024 * MEGABYTE

    def __post_init__(self) -> None:
        for name in ("row_bytes", "unpacked_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValidationError("import", name, value, "must be a whole number of at least 1")

    def check_row(self, size: int) -> None:
        """Raise LimitExceeded for a line, row or element of this size."""
        if size > self.row_bytes:
            raise LimitExceeded(
                f"it is longer than {_shown(self.row_bytes)}, the most that is read at once; nothing was imported: "
                "split it, or allow more with --max-row-mb"
            )

    def check_unpacked(self, size: int) -> None:
        """Raise LimitExceeded for a compressed file that unpacks to this size."""
        if size > self.unpacked_bytes:
            raise LimitExceeded(
                f"it unpacks to more than {_shown(self.unpacked_bytes)}, the most that is taken; nothing was "
                "imported: unpack it yourself if you trust it, or allow more with --max-unpacked-mb"
            )

    def lines(self, file: BinaryIO, *, packed: bool = False) -> Iterator[bytes]:
        """The lines of a file, each within the limit."""
        total = 0
        while line := file.readline(self.row_bytes + 1):
            total += len(line)
            if packed:
                self.check_unpacked(total)
            self.check_row(len(line))
            yield line


UNLIMITED = Limits(1 << 62, 1 << 62)
"""For backups, which the operator trusts."""


def _shown(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB" if size >= MEGABYTE else f"{size:,} bytes"


_CHECK = b',"check":"'
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class Seal:
    """The running checksum: a line's checksum depends on all lines before it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def of(self, body: bytes) -> bytes:
        """The checksum of the next line."""
        self._hash.update(body)
        return self._hash.hexdigest()[:16].encode()


class LineWriter:
    """Writes lines with checksums."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._seal = Seal()
        self.lines = 0

    def write(self, document: Mapping[str, Any]) -> None:
        body = _encode(document).encode()[:-1]
        self._file.write(b'%s%s%s"}\n' % (body, _CHECK, self._seal.of(body)))
        self.lines += 1


def read_lines(path: Path, limits: Limits = UNLIMITED) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and object of every line; an error names a line whose checksum is wrong."""
    seal = Seal()
    number = 0
    with open_export(path) as file:
        for number, line in _numbered(path, file, limits):
            body, mark, check = line.rpartition(_CHECK)
            if not mark or not line.endswith(b'"}\n'):
                raise TransferError(path, number, "it is not a whole line of an export: the file was cut or edited")
            if check[:-3] != seal.of(body):
                raise TransferError(
                    path, number, "its checksum is wrong: this line, or one before it, was edited or lost"
                )
            yield number, _decoded(path, number, body)
    if not number:
        raise TransferError(path, 1, "the file is empty")


def _numbered(path: Path, file: BinaryIO, limits: Limits) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(limits.lines(file, packed=_is_packed(path)), start=1):
            yield number, line
    except LimitExceeded as exc:
        raise TransferError(path, number + 1, str(exc)) from None
    except (EOFError, gzip.BadGzipFile) as exc:
        raise TransferError(path, number + 1, f"the compressed file is truncated: {exc}") from exc


def _decoded(path: Path, number: int, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body + b"}")
    except ValueError as exc:
        raise TransferError(path, number, f"it is not JSON: {exc}") from exc
    return cast(dict[str, Any], document)


def _is_packed(path: Path) -> bool:
    return path.suffix == ".gz"


@contextmanager
def open_export(path: Path) -> Iterator[BinaryIO]:
    """The file for reading, unpacked if its name ends in .gz."""
    try:
        file: BinaryIO = cast(BinaryIO, gzip.GzipFile(path)) if _is_packed(path) else path.open("rb")
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}") from None
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}") from exc
    with file:
        yield file


@contextmanager
def atomic_write(path: Path, *, force: bool) -> Iterator[Path]:
    """A temporary file that replaces the target when it is complete."""
    if path.exists() and not force:
        raise ConflictError(f"{path} exists already; choose another name, or overwrite it with --force")
    if not path.parent.is_dir():
        raise ConfigurationError(f"there is no directory {path.parent} to write {path.name} into")
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        make_private(new)
        yield new
        _sync(new)
        new.replace(path)
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise StorageFullError(f"the disk of {path} is full, nothing was written") from exc
        raise StorageError(f"{path} cannot be written: {exc.strerror}") from exc
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def line_writer(path: Path, *, packed: bool) -> Iterator[LineWriter]:
    """A writer of lines into a new file."""
    with path.open("wb") as plain:
        if not packed:
            yield LineWriter(plain)
            return
        with gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=6) as file:
            yield LineWriter(cast(BinaryIO, file))
