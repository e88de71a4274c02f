"""The chain of audit events: each one's hash covers the event and the hash before it.

A store has one chain for each writer that it ever had at the same time, so that none waits for another. The head of a
chain is kept beside it: whoever cuts off the end of the log leaves a head that leads nowhere.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from alma.model.governance import AuditEvent
from alma.storage.document import timestamp_text

_GIVEN_BY_THE_STORE = ("id", "chain", "chain_position", "chain_hash")
_NAMES = [field.name for field in AuditEvent.spec.primary if field.name not in _GIVEN_BY_THE_STORE]
_said = itemgetter(*_NAMES)
_MOMENT, _DETAILS = _NAMES.index("created_at"), _NAMES.index("details_json")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class ChainHead:
    """Where a chain ends: how many events it has and the last one's hash, empty while there is none.

    `unchained` is how many events the store had before it kept chains; the first chain remembers it.
    """

    chain: int
    length: int = 0
    hash: str = ""
    unchained: int = 0


class ChainTable(ABC):
    """The heads inside one transaction."""

    @abstractmethod
    def take(self) -> ChainHead:
        """A head that no other transaction is moving, and none can until this one ends."""

    @abstractmethod
    def move(self, head: ChainHead) -> None:
        """Write down where a chain that was taken ends now."""

    @abstractmethod
    def heads(self) -> list[ChainHead]:
        """Every head there is, by number."""


def placed(events: Iterable[Mapping[str, Any]], head: ChainHead) -> tuple[list[dict[str, Any]], ChainHead]:
    """The values of events with their places behind the head, and where the chain ends then."""
    chained: list[dict[str, Any]] = []
    length, last = head.length, head.hash
    for values in events:
        length += 1
        last = _digest(values, head.chain, length, last)
        chained.append({**values, "chain": head.chain, "chain_position": length, "chain_hash": last})
    return chained, ChainHead(head.chain, length, last, head.unchained)


def digest(event: AuditEvent, before: str) -> str:
    """The hash that an event at its place must have behind the hash before it."""
    return _digest(event.values(), event.chain, event.chain_position, before)


def _digest(values: Mapping[str, Any], chain: int | None, position: int | None, before: str) -> str:
    return hashlib.sha256(f"{before}\n{chain}\n{position}\n{statement(values)}".encode()).hexdigest()


def statement(values: Mapping[str, Any]) -> str:
    """What is hashed of an event: the same before it was stored and after it was read back, from any store."""
    said = list(_said(values))
    said[_MOMENT] = timestamp_text(said[_MOMENT])
    if said[_DETAILS] is not None:
        said[_DETAILS] = _without_negative_zeros(said[_DETAILS])
    return _encode(said)


def _without_negative_zeros(value: Any) -> Any:
    """JSONB keeps decimals, and those know no negative zero."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {key: _without_negative_zeros(item) for key, item in value.items()}
    return [_without_negative_zeros(item) for item in value] if isinstance(value, list) else value
