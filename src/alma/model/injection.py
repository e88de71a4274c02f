"""Injection of memories into a session: no memory twice unless it changed, in text that is only added to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from alma.model.learning import Outcome, anti_pattern_id
from alma.model.record import Record
from alma.model.slice import MemorySlice
from alma.tokens import count_tokens

Shown = Mapping[str, str]
"""The memories that a session was shown: a fingerprint of each memory's text, by its id."""

_PARTS = ("heuristics", "anti_patterns", "preferences", "instructions", "domain_knowledge", "outcomes", "memories")


@dataclass(frozen=True, slots=True)
class Block:
    """A text for a session, its length in tokens, and the memories in it as `Shown`."""

    text: str
    tokens: int
    shown: Shown


@dataclass(frozen=True, slots=True)
class SessionBlocks:
    """The blocks of a session: one that stays the same, and one for the task at hand.

    `stable` has preferences, standing instructions and established lessons. It is returned with every request of the
    session in the same words, as long as none of it is deleted, so that a prompt that begins with it stays cached.
    `task` has what was in no block of this session yet, or has changed since. `is_first` says that `stable` is new.
    """

    stable: Block
    task: Block
    is_first: bool

    @property
    def fresh(self) -> str:
        """The text that the session was not given yet: at first both blocks, later the one for the task."""
        return "\n\n".join(filter(None, (self.stable.text if self.is_first else "", self.task.text)))


def fingerprint(record: Record) -> str:
    """A fingerprint of a memory's text; counters and confidence do not change it."""
    said = "\x1f".join(str(getattr(record, name) or "") for name in record.spec.text)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def without_shown(found: MemorySlice, shown: Shown) -> MemorySlice:
    """The slice without the memories that were shown and say the same since, and without the evidence for them."""

    def unseen(records: Iterable[Record]) -> tuple[Record, ...]:
        return tuple(each for each in records if shown.get(str(each.key)) != fingerprint(each))

    def told(record: Record) -> bool:
        lesson = record.lesson_id if isinstance(record, Outcome) else None
        return lesson is not None and (lesson in shown or anti_pattern_id(lesson) in shown)

    parts: dict[str, Any] = {name: unseen(getattr(found, name)) for name in _PARTS}
    parts["outcomes"] = tuple(each for each in parts["outcomes"] if not told(each))
    return replace(found, **parts)


def block_of(found: MemorySlice, shown: Shown, max_tokens: int) -> Block:
    """The text for what a session was not shown yet, within the budget."""
    fresh = without_shown(found, shown)
    packed = fresh.packed(max_tokens)
    included = set(packed.included)
    marks = {str(each.key): fingerprint(each) for each in fresh if str(each.key) in included}
    return Block(packed.text, count_tokens(packed.text), marks)
