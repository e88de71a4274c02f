"""Read rows from JSON (streamed), JSON lines, an SQLite database or SQL dump, or a zip archive with one of these."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import tempfile
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from alma.errors import ConfigurationError
from alma.importers.base import Importer, Rejected, Row
from alma.transfer.lines import LimitExceeded, Limits

_SQLITE = b"SQLite format 3\x00"
_ZIP = b"PK\x03\x04"
_LINES = (".jsonl", ".ndjson")
_SQL_STARTS = (b"PRAGMA", b"BEGIN", b"CREATE", b"INSERT", b"--")
_LOOKED_AT = 1 << 16
_LIMITS = Limits()
_DENIED = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_RECURSIVE)
# The page size of a new SQLite database, and the maximum length of a value.
_PAGE_BYTES, _LONGEST_VALUE = 4_096, 1_000_000_000


class Source:
    """A source file, which can be read several times."""

    def __init__(self, path: str | os.PathLike[str], importer: Importer, limits: Limits = _LIMITS) -> None:
        self.path = Path(path)
        self.fraction = 0.0
        self._importer = importer
        self._limits = limits
        if not self.path.is_file():
            raise ConfigurationError(f"there is no file {self.path} to import from")
        self._read: Callable[[], Iterator[Row | Rejected]] = self._reader()

    def rows(self) -> Iterator[Row | Rejected]:
        """Every row in order; unreadable rows are returned as rejected."""
        self.fraction = 0.0
        self._where = "it"
        try:
            yield from self._read()
        except LimitExceeded as exc:
            raise ConfigurationError(f"{self.path}, {self._where}: {exc}") from None
        self.fraction = 1.0

    def check(self) -> None:
        """Check the size limits before anything is stored."""
        if self._read == self._database_rows or self._size() > self._limits.row_bytes:
            deque(self.rows(), maxlen=0)

    def _size(self) -> int:
        if self._read != self._zip_rows:
            return self.path.stat().st_size
        with _archive(self.path) as archive:
            return sum(info.file_size for info in archive.infolist())

    def _reader(self) -> Callable[[], Iterator[Row | Rejected]]:
        with self.path.open("rb") as file:
            head = file.read(_LOOKED_AT)
        if head.startswith(_SQLITE):
            return self._database_rows
        if head.startswith(_ZIP):
            return self._zip_rows
        if self.path.suffix.lower() == ".sql" or head.lstrip(b"\xef\xbb\xbf \t\r\n").upper().startswith(_SQL_STARTS):
            return self._dump_rows
        return self._line_rows if self._is_lines(head) else self._json_rows

    # ------------------------------------------------------------------ JSON

    def _is_lines(self, head: bytes) -> bool:
        """Whether every line is a JSON object."""
        if self.path.suffix.lower() in _LINES:
            return True
        lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith(b"{"):
            return False
        return _is_object(lines[0]) or (lines[1].startswith(b"{") and (_is_object(lines[1]) or len(lines) == 2))

    def _line_rows(self) -> Iterator[Row | Rejected]:
        size = max(1, self.path.stat().st_size)
        done = 0
        with self.path.open("rb") as file:
            self._where = "line 1"
            for number, line in enumerate(self._limits.lines(file), start=1):
                self._where = f"line {number + 1}"
                done += len(line)
                self.fraction = done / size
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not text.strip():
                    continue
                try:
                    yield Row(f"line {number}", json.loads(text))
                except (ValueError, RecursionError) as exc:
                    yield Rejected(f"line {number}", None, f"malformed JSON: {_reason(exc)}")

    def _json_rows(self) -> Iterator[Row | Rejected]:
        with self.path.open("rb") as file:
            yield from self._elements(file, max(1, self.path.stat().st_size))

    def _elements(self, file: BinaryIO, size: int) -> Iterator[Row | Rejected]:
        number = 0
        with io.TextIOWrapper(file, encoding="utf-8-sig") as text:
            stream = JsonStream(text, self._limits)
            self._where = "item 1"
            try:
                for number, (key, listed, value) in enumerate(stream.elements(self._importer.fields), start=1):
                    self._where = f"item {number + 1}"
                    self.fraction = min(1.0, stream.position / size)
                    if not listed and not self._is_row(value):
                        continue
                    where = f"item {number}" if key is None else f"item {number} in {key!r}"
                    yield Row(where, value, key, listed)
            except (ValueError, RecursionError) as exc:
                reason = f"malformed JSON, the rest of the file cannot be read: {_reason(exc)}"
                yield Rejected(f"item {number + 1}", None, reason)

    def _is_row(self, value: object) -> bool:
        """Whether the value of a key is a row, and not metadata of the file."""
        return isinstance(value, dict) and not self._importer.fields.isdisjoint(value)

    def _zip_rows(self) -> Iterator[Row | Rejected]:
        wanted = self._importer.file_in_zip
        with _archive(self.path) as archive:
            # Long exports are split into numbered files: conversations-000.json …
            stem = Path(wanted or "").stem
            pieces = sorted(archive.infolist(), key=lambda info: info.filename)
            found = [info for info in pieces if wanted and _is_piece(Path(info.filename), stem)]
            if not found:
                raise ConfigurationError(f"{self.path} is an archive without {wanted or 'anything to import'}")
            self._where = ", ".join(info.filename for info in found[:3])
            self._limits.check_unpacked(sum(info.file_size for info in found))
            for info in found:
                # Other compression methods cannot be limited while unpacking.
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ConfigurationError(f"{self.path}, {info.filename}: pack it again with the deflate method")
                with archive.open(info) as file:
                    yield from self._elements(cast(BinaryIO, file), max(1, info.file_size))

    # ------------------------------------------------------------------ SQLite

    def _database_rows(self) -> Iterator[Row | Rejected]:
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.set_authorizer(_only_tables)
            yield from self._table_rows(connection)

    def _dump_rows(self) -> Iterator[Row | Rejected]:
        """Run the dump in a temporary database, where it may only create and fill tables."""
        with (
            tempfile.TemporaryDirectory(prefix="alma-import-") as folder,
            closing(sqlite3.connect(Path(folder) / "dump.db", isolation_level=None)) as connection,
        ):
            connection.set_authorizer(_only_tables)
            self._run_dump(connection)
            yield from self._table_rows(connection)

    def _run_dump(self, connection: sqlite3.Connection) -> None:
        statement = ""
        self._limit_values(connection)
        connection.execute(f"PRAGMA max_page_count = {max(1, self._limits.unpacked_bytes // _PAGE_BYTES)}")
        with self.path.open("rb") as file:
            self._where = "line 1"
            for number, content in enumerate(self._limits.lines(file), start=1):
                self._where = f"line {number + 1}"
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
                statement += line
                self._limits.check_row(len(statement))
                if not line.rstrip().endswith(";") or not sqlite3.complete_statement(statement):
                    continue
                try:
                    connection.execute(statement)
                except sqlite3.Error as exc:
                    raise ConfigurationError(f"{self.path}, line {number}: the SQL dump cannot be run: {exc}") from exc
                statement = ""

    def _table_rows(self, connection: sqlite3.Connection) -> Iterator[Row | Rejected]:
        self._limit_values(connection)
        try:
            tables = list(self._tables(connection))
        except sqlite3.Error as exc:
            raise ConfigurationError(f"{self.path} is a damaged SQLite file: {exc}") from exc
        if not tables:
            raise ConfigurationError(
                f"{self.path} has no table with the column {self._importer.key or 'that is needed'}, "
                f"as a database of {self._importer.name} does"
            )
        total = max(1, sum(count for _, _, count in tables))
        done = 0
        for table, columns, _ in tables:
            number = 0
            try:
                for number, row in self._rows_of(connection, table):
                    done += 1
                    self.fraction = done / total
                    data = dict(zip(columns, row[1:], strict=True))
                    yield Row(f"row {number} of table {table}", self._whole(table, data, row[0]))
            except sqlite3.DataError:
                # The library may be a row ahead.
                self._where = f"a row behind {number} of table {table}"
                self._limits.check_row(self._limits.row_bytes + 1)
            except sqlite3.DatabaseError as exc:
                reason = f"the database is damaged, further rows of this table cannot be read: {exc}"
                yield Rejected(f"row {number + 1} of table {table}", None, reason)

    def _limit_values(self, connection: sqlite3.Connection) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(self._limits.row_bytes, _LONGEST_VALUE))

    def _rows_of(self, connection: sqlite3.Connection, table: str) -> Iterator[tuple[int, tuple[object, ...]]]:
        # Invalid Unicode rejects the row, not the file.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            cursor = connection.execute(f"SELECT rowid, * FROM {_quoted(table)} ORDER BY rowid")
        except sqlite3.OperationalError:
            cursor = connection.execute(f"SELECT NULL, * FROM {_quoted(table)}")
        yield from enumerate(cursor, start=1)

    def _tables(self, connection: sqlite3.Connection) -> Iterator[tuple[str, list[str], int]]:
        """The tables with rows, those with whole rows first."""
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        ]
        found = []
        for name in names:
            columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
            if self._importer.key is not None and self._importer.key in columns:
                count = connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
                found.append((name, columns, count))
        yield from sorted(found, key=lambda each: (each[0] in self._importer.lists, each[0]))

    def _whole(self, table: str, data: dict[str, object], rowid: object) -> dict[str, object]:
        """The row; a row of a list table becomes a row with one entry."""
        key = self._importer.key
        if key is None or table not in self._importer.lists or table in data:
            return data
        entry = {name: value for name, value in data.items() if name != key}
        return {key: data[key], table: [{"id": rowid, **entry}]}


def _is_piece(path: Path, stem: str) -> bool:
    return path.suffix == ".json" and (path.stem == stem or path.stem.startswith((f"{stem}-", f"{stem}_")))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _reason(exc: Exception) -> str:
    if isinstance(exc, RecursionError):
        return "it is nested too deeply"
    return exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as exc:
        raise ConfigurationError(f"{path} is a damaged zip archive: {exc}") from exc
    with archive:
        yield archive


def _only_tables(action: int, first: str | None, second: str | None, *_: object) -> int:
    """The authorizer for dumps: no other databases, no recursive queries."""
    return sqlite3.SQLITE_DENY if action in _DENIED else sqlite3.SQLITE_OK


_CHUNK = 1 << 18
_IN_NUMBERS = frozenset("0123456789+-.eE")
_decode = json.JSONDecoder().raw_decode


class JsonStream:
    """A streaming JSON reader."""

    def __init__(self, file: TextIO, limits: Limits = _LIMITS) -> None:
        self._file = file
        self._limits = limits
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._before = 0
        self._held = False

    def elements(self, whole: frozenset[str]) -> Iterator[tuple[str | None, bool, Any]]:
        """(key, listed, value) for each element; an object whose first key is in `whole` is one element."""
        start = self._peek()
        if start == "[":
            yield from ((None, True, value) for value in self._array())
        elif start == "{" and self._first_key() not in whole:
            yield from self._members()
        else:
            yield None, True, self._value()
        if self._peek():
            raise ValueError(f"unexpected data after the end, at character {self.position}")

    @property
    def position(self) -> int:
        """The number of characters consumed."""
        return self._before + self._at

    def _array(self) -> Iterator[Any]:
        self._skip("[")
        if self._peek() == "]":
            self._skip("]")
            return
        while True:
            yield self._value()
            if self._peek() != ",":
                break
            self._skip(",")
        self._skip("]")

    def _members(self) -> Iterator[tuple[str | None, bool, Any]]:
        self._skip("{")
        if self._peek() == "}":
            self._skip("}")
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                raise ValueError(f"a key must be text, at character {self.position}")
            self._skip(":")
            if self._peek() == "[":
                yield from ((key, True, value) for value in self._array())
            else:
                yield key, False, self._value()
            if self._peek() != ",":
                break
            self._skip(",")
        self._skip("}")

    def _first_key(self) -> str | None:
        """The first key of the next object, without consuming it."""
        at, self._held = self._at, True
        self._at += 1
        key = self._value() if self._peek() == '"' else None
        self._at, self._held = at, False
        return key

    def _value(self) -> Any:
        self._peek()
        wanted = _CHUNK
        while True:
            try:
                value, end = _decode(self._buffer, self._at)
            except ValueError as exc:
                if self._ended:
                    raise ValueError(f"{exc.msg if isinstance(exc, json.JSONDecodeError) else exc}, at character "
                                     f"{self.position}") from None  # fmt: skip
            else:
                # A number at the end of the buffer may continue, as in 1.5 and 1e9.
                if self._ended or (end < len(self._buffer) and self._buffer[end] not in _IN_NUMBERS):
                    self._at = end
                    return value
            self._limits.check_row(len(self._buffer) - self._at)
            # Read ever larger pieces, so that a long element is parsed only a few times.
            self._fetch(wanted, keep=True)
            wanted *= 2

    def _peek(self) -> str:
        """The next character that is not white space, or nothing at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at].isspace():
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._ended:
                return ""
            self._fetch(_CHUNK, keep=False)

    def _skip(self, expected: str) -> None:
        if self._peek() != expected:
            raise ValueError(f"{expected!r} was expected at character {self.position}")
        self._at += 1

    def _fetch(self, size: int, *, keep: bool) -> None:
        more = self._file.read(size)
        self._ended = not more
        if not self._held and (not keep or self._at > _CHUNK):
            self._before += self._at
            self._buffer, self._at = self._buffer[self._at :], 0
        self._buffer += more
