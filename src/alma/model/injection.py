"""Injection of memories into a session: no memory twice unless it changed, in text that is only added to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from alma.model.record import Record
from alma.model.slice import MemorySlice
from alma.tokens import count_tokens

Shown = Mapping[str, str]
"""What a session was shown: a fingerprint of what each memory said, by its id."""

_PARTS = ("heuristics", "anti_patterns", "preferences", "instructions", "domain_knowledge", "outcomes", "memories")


@dataclass(frozen=True, slots=True)
class Block:
    """A text for a session, its length in tokens, and the memories in it as `Shown`."""

    text: str
    tokens: int
    shown: Shown


def fingerprint(record: Record) -> str:
    """A fingerprint of what a memory says; counters and confidence do not change it."""
    said = "\x1f".join(str(getattr(record, name) or "") for name in record.spec.text)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def without_shown(found: MemorySlice, shown: Shown) -> MemorySlice:
    """The slice without the memories that were shown and say the same since."""

    def unseen(records: Iterable[Record]) -> tuple[Record, ...]:
        return tuple(each for each in records if shown.get(str(each.key)) != fingerprint(each))

    parts: dict[str, Any] = {name: unseen(getattr(found, name)) for name in _PARTS}
    return replace(found, **parts)


def block_of(found: MemorySlice, shown: Shown, max_tokens: int) -> Block:
    """The text for what a session was not shown yet, within the budget."""
    fresh = without_shown(found, shown)
    packed = fresh.packed(max_tokens)
    included = set(packed.included)
    marks = {str(each.key): fingerprint(each) for each in fresh if str(each.key) in included}
    return Block(packed.text, count_tokens(packed.text), marks)
