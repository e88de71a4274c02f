"""The files of the index: rows that are only ever appended, and a header with the number of valid rows.

A head is replaced in one step after the rows it speaks of are on the disk; what a process left behind the counted rows
when it died is overwritten by the next one. Rows are never changed in place: dropping some makes a new generation of
files; a process that has mapped the old ones keeps them until it unmaps them.
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
from typing import Any

import numpy as np

from alma.paths import make_directory, open_private
from alma.vectors.mapped.table import FACTS, NAMED, Block, Flags, Kept, Table, empty

_log = logging.getLogger("alma.vectors")

_FORMAT = 1
_HEAD = "head.json"
_LOCK = "lock"
_BYTES_PER_FLOAT = 4
_COPIED_AT_ONCE = 8192
_LONGEST_NAME = 80
_LOOKED_AT = 1000
_ABANDONED_SECONDS = 600


@dataclass(frozen=True)
class _Head:
    """What counts: so many rows and bytes of names of one generation, complete up to a position."""

    model: str
    dims: int
    generation: str
    rows: int
    position: int
    names_bytes: int
    # Empty where it was written before feeds had names.
    feed: str = ""
    format: int = _FORMAT


class IndexFiles:
    """The folder with the rows of one model of a feed; any number of processes share it, one at a time writes."""

    def __init__(self, folder: Path, feed: str, model: str, dims: int) -> None:
        self._folder = folder / _safe(model)
        self._feed = feed
        self._model = model
        self._dims = dims
        self._rejected: set[str] = set()
        make_directory(self._folder)

    def load(self) -> Kept:
        """What is there and can be trusted; nothing where that is nothing."""
        try:
            head = _Head(**json.loads((self._folder / _HEAD).read_bytes()))
            problem = self._problem(head)
            if problem is None:
                kept = self._mapped(head)
                problem = _strangeness(kept)
        except FileNotFoundError:
            return Kept(None, empty(self._dims), (), 0)
        except (OSError, ValueError, TypeError) as exc:
            problem = str(exc)
        if problem is None:
            return kept
        _log.warning("the files of the vector index are of no use and are made anew", extra={"reason": problem})
        return Kept(None, empty(self._dims), (), 0)

    def codes_path(self, generation: str) -> Path:
        """Where the quantised codes of a generation are kept."""
        return self._folder / f"{generation}.codes"

    def reject(self, generation: str | None) -> None:
        """Never use these files again: they turned out not to be this store's."""
        if generation is not None:
            self._rejected.add(generation)

    def keep(self, table: Table, alive: Flags | None = None) -> Kept | None:
        """Append what the files lack of a table; with `alive`, leave out the rest in a new generation.

        Returns what is in the files now, or None where another process is writing at this moment.
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
            _opened(self._path(generation, "vectors"), row * self._dims * _BYTES_PER_FLOAT) as vectors,
            _opened(self._path(generation, "facts"), row * FACTS.itemsize) as facts,
        ):
            for block in blocks:
                vectors.write(np.ascontiguousarray(block.vectors).data)
                facts.write(np.ascontiguousarray(block.facts).tobytes())

    def _commit(self, generation: str, rows: int, table: Table) -> Kept:
        text = "".join(json.dumps(name) + "\n" for name in table.names.texts).encode()
        # Names are only ever added, so writing them over themselves changes nothing that counts already.
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
        """What a process left that died while it saved codes, which takes it seconds at most."""
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
            return "they are not this store's"
        if not re.fullmatch(r"[0-9a-f]{12}", head.generation) or min(head.rows, head.position, head.names_bytes) < 0:
            return "the head makes no sense"
        sizes = {
            "vectors": head.rows * self._dims * _BYTES_PER_FLOAT,
            "facts": head.rows * FACTS.itemsize,
            "names": head.names_bytes,
        }
        short = [kind for kind, size in sizes.items() if self._path(head.generation, kind).stat().st_size < size]
        return f"{', '.join(short)} end too early" if short else None

    def _mapped(self, head: _Head) -> Kept:
        names = tuple(self._names(head))
        if not head.rows:
            return Kept(head.generation, empty(self._dims), names, head.position)
        vectors = _map(self._path(head.generation, "vectors"), head.rows * self._dims * _BYTES_PER_FLOAT)
        facts = _map(self._path(head.generation, "facts"), head.rows * FACTS.itemsize)
        base = Block(np.frombuffer(vectors, "<f4").reshape(head.rows, self._dims), np.frombuffer(facts, FACTS))
        return Kept(head.generation, base, names, head.position, (vectors, facts))

    def _names(self, head: _Head) -> Sequence[str]:
        with self._path(head.generation, "names").open("rb") as file:
            return [json.loads(line) for line in file.read(head.names_bytes).splitlines()]

    def _path(self, generation: str, kind: str) -> Path:
        return self._folder / f"{generation}.{kind}"


def _strangeness(kept: Kept) -> str | None:
    """A look at the last rows: cheap, and what a crash of the machine would have left unwritten."""
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
    """A file to write to from an offset on; on the disk when the context is left."""
    handle = open_private(path)
    with os.fdopen(handle, "r+b") as file:
        file.seek(offset)
        yield file
        file.flush()
        os.fsync(file.fileno())


def _safe(model: str) -> str:
    """A folder's name for a model: readable, and different for every model."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", model).strip("._")[:_LONGEST_NAME]
    digest = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"{readable or 'model'}-{digest}"
