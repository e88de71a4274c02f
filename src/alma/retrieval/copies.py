"""Copies: what was stored many times must not keep everything else from being looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from alma.model.query import And, Compare, In, Missing, Or, Predicate
from alma.model.record import Record
from alma.retrieval.candidate import Candidate
from alma.retrieval.router import Target

# What tells two records apart besides their texts: how it ended.
_APART = ("success",)
# A question with more conditions takes longer than what it finds is worth.
_MOST_SPELLINGS = 100


@dataclass(slots=True)
class Crowd:
    """Memories that so many say the same as that too little else was read: themselves, and every spelling of them."""

    originals: list[Record] = field(default_factory=list)
    spellings: list[Record] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.spellings)

    @property
    def is_small(self) -> bool:
        """Whether it can be looked past."""
        return len(self.spellings) <= _MOST_SPELLINGS

    def add(self, other: Crowd) -> None:
        self.originals += other.originals
        self.spellings += other.spellings


def copies_behind(best: Sequence[Candidate], most: int) -> Sequence[Candidate]:
    """Candidates in their order, but that of the `most` that are read half are not alike to what stands before them.

    What every search finds alike most likely is a copy, though it may be another strategy for the same task.
    """
    half = most // 2
    seen = {_mark(each) for each in best[:half]}
    if len(best) <= most or len(seen) == half:
        return best
    others: list[Candidate] = []
    alike: list[Candidate] = []
    for each in best[half:]:
        mark = _mark(each)
        (alike if mark in seen else others).append(each)
        seen.add(mark)
    return [*best[:half], *others, *alike]


def _mark(found: Candidate) -> object:
    return found.id if found.cosine is None else (found.cosine, found.words)


def without_copies(targets: Sequence[Target], crowd: Crowd) -> list[Target]:
    """The same targets, but of what crowds them only the originals."""
    return [_without(target, crowd) for target in targets]


def _without(target: Target, crowd: Crowd) -> Target:
    spellings = [each for each in crowd.spellings if isinstance(each, target.cls)]
    if not spellings or not target.searched:
        return target
    originals = In(target.cls.spec.key, [each.key for each in crowd.originals])
    others = And(*(Or(*_differences(each)) for each in spellings))
    return replace(target, where=And(target.where, Or(originals, others)), narrowed=True)


def _differences(record: Record) -> Iterator[Predicate]:
    """Of which one is fulfilled by whatever is no copy of a record."""
    spec = record.spec
    for name in (*spec.text, *(name for name in _APART if name in spec.by_name)):
        value = getattr(record, name)
        if value is None or value == "":
            yield Compare(name, "ne", "")
        else:
            yield Compare(name, "ne", value)
            yield Missing(name)
