"""The table of rows: memory-mapped files, followed by newer rows in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from alma.lazy import lazy_module
from alma.storage.base import StoredVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_module("numpy")

Floats: TypeAlias = "NDArray[np.float32]"
Fixed: TypeAlias = "NDArray[np.int16]"
Numbers: TypeAlias = "NDArray[np.int64]"
Flags: TypeAlias = "NDArray[np.bool_]"
Facts: TypeAlias = "NDArray[Any]"

FACTS = [
    ("position", "<i8"),
    ("kind", "<i4"),
    ("user_id", "<i4"),
    ("project_id", "<i4"),
    ("session_id", "<i4"),
    ("agent", "<i4"),
    ("part", "<i4"),
]
NAMED = ("kind", "user_id", "project_id", "session_id", "agent")
_NONE = 0
_UNKNOWN = -1


# Components of unit vectors as 16-bit fixed-point numbers. A cosine is then off by about 1e-5, which is much less than
# the distance of two texts; results have the exact cosines, from the store.
_ONE = 32767.0
FIXED = "<i2"
BYTES_OF_NUMBER, BYTES_OF_FACTS = 2, 32


class Block(NamedTuple):
    """A block of rows: their unit vectors in fixed point, and the facts about each."""

    vectors: Fixed
    facts: Facts

    @property
    def size(self) -> int:
        return len(self.facts)

    def part(self, chosen: slice | Numbers | Flags) -> Block:
        return Block(self.vectors[chosen], self.facts[chosen])


def empty(dims: int) -> Block:
    """No rows."""
    return Block(np.empty((0, dims), FIXED), np.empty(0, FACTS))


class Names:
    """Interned texts: a number above 0 for each, in the order of first use."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts, start=1)}

    def number(self, text: str | None) -> int:
        """The number of a text, which is added if it is new."""
        if text is None:
            return _NONE
        number = self._numbers.get(text)
        if number is None:
            self.texts.append(text)
            number = self._numbers[text] = len(self.texts)
        return number

    def known(self, text: str | None) -> int:
        """The number of a text, or a number that no row has."""
        return _NONE if text is None else self._numbers.get(text, _UNKNOWN)

    def renumbered(self, facts: Facts, by: Names) -> Facts:
        """Facts with the numbers of this table, translated to those of another."""
        if self.texts == by.texts[: len(self.texts)]:
            return facts
        other = np.array([_NONE, *map(by.number, self.texts)], np.int32)
        changed = facts.copy()
        for name in NAMED:
            changed[name] = other[facts[name]]
        return changed


def encoded(page: Sequence[StoredVector], names: Names, dims: int) -> Block:
    """A page of the feed as rows."""
    number = names.number
    facts = np.array(
        [
            (v.position, number(v.kind), *map(number, (v.user_id, v.project_id, v.session_id, v.agent)), v.part)
            for v in page
        ],
        FACTS,
    )
    vectors = units(b"".join(v.data for v in page), dims)
    return Block(np.rint(vectors * _ONE).astype(FIXED), facts)


def floats(vectors: Fixed) -> Floats:
    """Unit vectors of fixed-point numbers."""
    numbers: Floats = vectors.astype(np.float32) / _ONE
    return numbers


def units(data: bytes, dims: int) -> Floats:
    """The normalized vectors; a zero vector stays zero."""
    # Double precision: the squares of large single-precision numbers would overflow.
    raw = np.frombuffer(data, "<f4").reshape(-1, dims).astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw))[:, None]
    scaled: Floats = np.divide(raw, lengths, out=np.zeros_like(raw), where=lengths > 0).astype(np.float32)
    return scaled


_GATHERED_AT_ONCE = 1024
_FIRST_ROOM = 256


@dataclass(frozen=True)
class Kept:
    """The rows in files: one generation, complete up to a position of the feed."""

    generation: str | None
    base: Block
    names: tuple[str, ...]
    position: int
    maps: tuple[mmap.mmap, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the files are at least as long as their mapping; reading behind their end kills the process."""
        return all(len(each) <= each.size() for each in self.maps)


class View:
    """A snapshot of the rows, numbered from 0; safe to read while more are added."""

    def __init__(self, base: Block, tail: Block, dead: Flags, any_dead: bool) -> None:
        self._base = base
        self._tail = tail
        self.dead = dead
        self.any_dead = any_dead
        self.count = base.size + tail.size

    def facts(self, start: int, stop: int) -> Facts:
        """The facts about a range of rows."""
        split = self._base.size
        if stop <= split:
            return self._base.facts[start:stop]
        if start >= split:
            return self._tail.facts[start - split : stop - split]
        return np.concatenate([self._base.facts[start:], self._tail.facts[: stop - split]])

    def positions(self, rows: Numbers) -> list[int]:
        """The feed positions of these rows, which must be in ascending order."""
        split = int(np.searchsorted(rows, self._base.size))
        early: list[int] = self._base.facts["position"][rows[:split]].tolist()
        if split == len(rows):
            return early
        return [*early, *self._tail.facts["position"][rows[split:] - self._base.size].tolist()]

    def rows_at(self, positions: Numbers) -> Numbers:
        """The live rows at these feed positions, in ascending order."""
        wanted = np.sort(positions)
        known = self.facts(0, self.count)["position"]
        rows = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        found: Numbers = rows[(known[rows] == wanted) & ~self.dead[rows]] if len(known) else rows[:0]
        return found

    def cosines(self, rows: Numbers, wanted: Floats) -> Floats:
        """The cosines of these rows, which must be in ascending order."""
        split = int(np.searchsorted(rows, self._base.size))
        early = _gathered_cosines(self._base.vectors, rows[:split], wanted)
        # Usually the tail is empty.
        if split == len(rows):
            return early
        return np.concatenate([early, _gathered_cosines(self._tail.vectors, rows[split:] - self._base.size, wanted)])

    def all_cosines(self, wanted: Floats, start: int = 0) -> Floats:
        """The cosines of every row from one number on."""
        split = self._base.size
        parts = [_cosines(self._tail.vectors[max(start - split, 0) :], wanted)]
        if start < split:
            parts.insert(0, _cosines(self._base.vectors[start:], wanted))
        return np.concatenate(parts)

    def vectors(self, start: int, stop: int) -> Floats:
        """A range of vectors; it may be shorter than requested at the boundary of files and memory."""
        return floats(self._fixed(start, stop))

    def _fixed(self, start: int, stop: int) -> Fixed:
        split = self._base.size
        if start < split:
            return self._base.vectors[start : min(stop, split)]
        return self._tail.vectors[start - split : stop - split]

    def block(self, start: int, stop: int) -> Block:
        """A copy of a range of rows."""
        split = self._base.size
        parts = [self._fixed(start, stop)]
        if start < split < stop:
            parts.append(self._fixed(split, stop))
        return Block(np.concatenate(parts), self.facts(start, stop))


class Table:
    """Rows in the order of the feed; changed only under the lock of the index."""

    def __init__(self, kept: Kept, dims: int) -> None:
        self.dims = dims
        self.kept = kept
        self.names = Names(kept.names)
        self.position = kept.position
        self._tail = empty(dims)
        self._tail_count = 0
        self._dead = np.zeros(kept.base.size, np.bool_)
        self.dead_count = 0

    @classmethod
    def from_nothing(cls, dims: int) -> Table:
        return cls(Kept(None, empty(dims), (), 0), dims)

    @property
    def count(self) -> int:
        return self.kept.base.size + self._tail_count

    @property
    def tail(self) -> Block:
        """The rows that are not in files yet."""
        return self._tail.part(slice(self._tail_count))

    def view(self) -> View:
        return View(self.kept.base, self.tail, self._dead[: self.count], self.dead_count > 0)

    def extend(self, block: Block, position: int) -> None:
        """Add rows, after which the table is complete up to the position."""
        needed = self._tail_count + block.size
        if needed > self._tail.size:
            self._tail = _roomier(self._tail, needed)
            self._dead = _longer(self._dead, self.kept.base.size + self._tail.size)
        self._tail.vectors[self._tail_count : needed] = block.vectors
        self._tail.facts[self._tail_count : needed] = block.facts
        self._tail_count = needed
        self.position = position

    def copy(self) -> Table:
        """A snapshot of the table, to be read while this one grows."""
        copy = Table(self.kept, self.dims)
        copy.names = Names(self.names.texts)
        copy.position = self.position
        copy._tail, copy._tail_count = self.tail, self._tail_count
        copy._dead, copy.dead_count = self._dead[: self.count].copy(), self.dead_count
        return copy

    def bury(self, rows: Numbers) -> None:
        """Mark these rows as dead: they are no longer stored."""
        self._dead[rows] = True
        self.dead_count = int(np.count_nonzero(self._dead[: self.count]))

    def alive(self) -> Flags:
        return ~self._dead[: self.count]

    def based_on(self, kept: Kept) -> Table:
        """The same table on newer files; only the rows of the tail that they lack are kept."""
        table = Table(kept, self.dims)
        if self.kept.generation not in (None, kept.generation):
            # Other rows that the new files lack are read from the feed again.
            return table
        tail = self.tail
        lacking = tail.part(tail.facts["position"] > kept.position)
        if lacking.size:
            facts = self.names.renumbered(lacking.facts, table.names)
            table.extend(Block(lacking.vectors, facts), self.position)
        table.position = max(table.position, self.position)
        if self.kept.generation == kept.generation:
            known = np.flatnonzero(self._dead[: self.kept.base.size])
            table.bury(known)
        return table


def _cosines(vectors: Fixed, wanted: Floats) -> Floats:
    """Compute cosines in pieces that fit the CPU cache, too small for the threads of numpy, which wait for each other
    on a busy machine.
    """
    cosines, scaled = np.empty(len(vectors), np.float32), wanted / _ONE
    room = np.empty((min(len(vectors), _GATHERED_AT_ONCE), len(wanted)), np.float32)
    for start in range(0, len(vectors), _GATHERED_AT_ONCE):
        chosen = vectors[start : start + _GATHERED_AT_ONCE]
        room[: len(chosen)] = chosen
        np.dot(room[: len(chosen)], scaled, out=cosines[start : start + len(chosen)])
    return cosines


def _gathered_cosines(vectors: Fixed, rows: Numbers, wanted: Floats) -> Floats:
    """The cosines of some rows."""
    cosines = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _GATHERED_AT_ONCE):
        chosen = rows[start : start + _GATHERED_AT_ONCE]
        cosines[start : start + len(chosen)] = _cosines(np.take(vectors, chosen, axis=0, mode="clip"), wanted)
    return cosines


def _roomier(tail: Block, needed: int) -> Block:
    room = max(needed, 2 * tail.size, _FIRST_ROOM)
    vectors = np.zeros((room, tail.vectors.shape[1]), FIXED)
    facts = np.zeros(room, FACTS)
    vectors[: tail.size], facts[: tail.size] = tail.vectors, tail.facts
    return Block(vectors, facts)


def _longer(flags: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, np.bool_)
    longer[: len(flags)] = flags
    return longer
