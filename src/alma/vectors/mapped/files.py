"""The files of the index: append-only rows, and a header with the number of valid rows. The header is replaced
atomically after its rows have been flushed; rows behind the valid ones, left by a process that died, are overwritten.
Rows are never changed in place: removing some writes a new generation of files, and a process keeps the old ones while
it has them mapped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import mmap
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.lazy import lazy_module
from alma.paths import make_directory, open_private
from alma.vectors.mapped.table import (
    BYTES_OF_FACTS,
    BYTES_OF_NUMBER,
    FACTS,
    FIXED,
    NAMED,
    Block,
    Flags,
    Kept,
    Table,
    empty,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_log = logging.getLogger("alma.vectors")

_FORMAT = 2
_HEAD = "head.json"
_LOCK = "lock"
_COPIED_AT_ONCE = 8192
_LONGEST_NAME = 80
_LOOKED_AT = 1000
_ABANDONED_SECONDS = 600


@dataclass(frozen=True)
class _Head:
    """The header: the valid rows and bytes of names of a generation, complete up to a feed position."""

    model: str
    dims: int
    generation: str
    rows: int
    position: int
    names_bytes: int
    # Empty in files from before feeds had names.
    feed: str = ""
    format: int = _FORMAT


class IndexFiles:
    """The folder with the rows of one model of a feed; processes share it, and one at a time writes."""

    def __init__(self, folder: Path, feed: str, model: str, dims: int) -> None:
        self._folder = folder / _safe(model)
        self._feed = feed
        self._model = model
        self._dims = dims
        self._rejected: set[str] = set()
        make_directory(self._folder)

    def load(self) -> Kept:
        """The valid rows and names in the files; none if the files are unusable."""
        try:
            head = _Head(**json.loads((self._folder / _HEAD).read_bytes()))
            problem = self._problem(head)
            if problem is None:
                kept = self._mapped(head)
                problem = _damage(kept)
        except FileNotFoundError:
            return Kept(None, empty(self._dims), (), 0)
        except (OSError, ValueError, TypeError) as exc:
            problem = str(exc)
        if problem is None:
            return kept
        _log.warning("the files of the vector index are unusable and will be rebuilt", extra={"reason": problem})
        return Kept(None, empty(self._dims), (), 0)

    def codes_path(self, generation: str) -> Path:
        """The path of the quantized codes of a generation."""
        return self._folder / f"{generation}.codes"

    def reject(self, generation: str | None) -> None:
        """Stop using these files, because they belong to another store."""
        if generation is not None:
            self._rejected.add(generation)

    def keep(self, table: Table, alive: Flags | None = None) -> Kept | None:
        """Append the rows that the files lack; with `alive`, write only those rows to a new generation. Returns the
        rows in the files, or None while another process is writing.
        """
        with self._lock() as locked:
            if not locked:
                return None
            kept = self.load()
            if kept.generation != table.kept.generation and table.kept.generation is not None:
                return kept
            merged = table.based_on(kept) if kept.generation is not None else table
            if alive is not None:
                if kept.generation != table.kept.generation or merged.count != len(alive):
                    return kept
                return self._rewritten(merged, alive)
            return self._appended(kept, merged)

    # ------------------------------------------------------------------ writing

    def _appended(self, kept: Kept, table: Table) -> Kept:
        tail = table.tail
        if kept.generation is not None and not tail.size and table.position == kept.position:
            return kept
        generation = kept.generation or uuid.uuid4().hex[:12]
        if kept.generation is None:
            self._remove_all()
        self._remove_abandoned_codes()
        self._write_rows(generation, kept.base.size, [tail])
        return self._commit(generation, kept.base.size + tail.size, table)

    def _rewritten(self, table: Table, alive: Flags) -> Kept:
        generation = uuid.uuid4().hex[:12]
        view = table.view()
        stretches = (
            (start, min(start + _COPIED_AT_ONCE, view.count)) for start in range(0, view.count, _COPIED_AT_ONCE)
        )
        self._write_rows(generation, 0, (view.block(a, b).part(alive[a:b]) for a, b in stretches))
        kept = self._commit(generation, int(np.count_nonzero(alive)), table)
        self._remove_all(besides=generation)
        return kept

    def _write_rows(self, generation: str, row: int, blocks: Iterable[Block]) -> None:
        with (
            _opened(self._path(generation, "vectors"), row * self._dims * BYTES_OF_NUMBER) as vectors,
            _opened(self._path(generation, "facts"), row * BYTES_OF_FACTS) as facts,
        ):
            for block in blocks:
                vectors.write(np.ascontiguousarray(block.vectors).data)
                facts.write(np.ascontiguousarray(block.facts).tobytes())

    def _commit(self, generation: str, rows: int, table: Table) -> Kept:
        text = "".join(json.dumps(name) + "\n" for name in table.names.texts).encode()
        # Names are append-only, so writing them again does not change the valid ones.
        with _opened(self._path(generation, "names"), 0) as names:
            names.write(text)
        head = _Head(self._model, self._dims, generation, rows, table.position, len(text), self._feed)
        new = self._folder / f"{_HEAD}.new"
        with _opened(new, 0) as file:
            file.write(json.dumps(asdict(head)).encode())
            file.truncate()
        new.replace(self._folder / _HEAD)
        return self._mapped(head)

    def _remove_all(self, besides: str | None = None) -> None:
        for path in self._folder.iterdir():
            if path.name not in (_HEAD, _LOCK) and (besides is None or not path.name.startswith(besides)):
                path.unlink(missing_ok=True)

    def _remove_abandoned_codes(self) -> None:
        """Remove files of a process that died while it saved codes; saving takes at most seconds."""
        for path in self._folder.glob("*.codes.tmp.*"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        handle = open_private(self._folder / _LOCK)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)

    # ------------------------------------------------------------------ reading

    def _problem(self, head: _Head) -> str | None:
        if head.format != _FORMAT or (head.model, head.dims) != (self._model, self._dims):
            return "they are of another format, model or length"
        if head.generation in self._rejected or head.feed not in ("", self._feed):
            return "they belong to another store"
        if not re.fullmatch(r"[0-9a-f]{12}", head.generation) or min(head.rows, head.position, head.names_bytes) < 0:
            return "the header is invalid"
        sizes = {
            "vectors": head.rows * self._dims * BYTES_OF_NUMBER,
            "facts": head.rows * BYTES_OF_FACTS,
            "names": head.names_bytes,
        }
        short = [kind for kind, size in sizes.items() if self._path(head.generation, kind).stat().st_size < size]
        return f"{', '.join(short)} are truncated" if short else None

    def _mapped(self, head: _Head) -> Kept:
        names = tuple(self._names(head))
        if not head.rows:
            return Kept(head.generation, empty(self._dims), names, head.position)
        vectors = _map(self._path(head.generation, "vectors"), head.rows * self._dims * BYTES_OF_NUMBER)
        facts = _map(self._path(head.generation, "facts"), head.rows * BYTES_OF_FACTS)
        base = Block(np.frombuffer(vectors, FIXED).reshape(head.rows, self._dims), np.frombuffer(facts, FACTS))
        return Kept(head.generation, base, names, head.position, (vectors, facts))

    def _names(self, head: _Head) -> Sequence[str]:
        with self._path(head.generation, "names").open("rb") as file:
            return [json.loads(line) for line in file.read(head.names_bytes).splitlines()]

    def _path(self, generation: str, kind: str) -> Path:
        return self._folder / f"{generation}.{kind}"


def _damage(kept: Kept) -> str | None:
    """Check the last rows, which a crash of the machine may have left unwritten; None if they are valid."""
    facts = kept.base.facts[-_LOOKED_AT:]
    positions = facts["position"]
    if len(facts) and (positions[0] < 1 or positions[-1] > kept.position or np.any(np.diff(positions) <= 0)):
        return "positions are out of order"
    if any(np.any((facts[name] < 0) | (facts[name] > len(kept.names))) for name in NAMED):
        return "numbers have no names"
    return None


def _map(path: Path, size: int) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


@contextmanager
def _opened(path: Path, offset: int) -> Iterator[Any]:
    """Open a file for writing at an offset; it is flushed to disk at the end of the block."""
    handle = open_private(path)
    with os.fdopen(handle, "r+b") as file:
        file.seek(offset)
        yield file
        file.flush()
        os.fsync(file.fileno())


def _safe(model: str) -> str:
    """A readable folder name that is unique for each model."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", model).strip("._")[:_LONGEST_NAME]
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"{readable or 'model'}-{digest}"
