"""Audit events and their hash chain: each one's hash covers the event and the hash before it.

A store has as many chains as it ever had concurrent writers, so that writers do not wait for each other. The head of a
chain is stored separately, so that a truncated log is detected.

The hash covers a digest of an event's details and error message. So they can be erased together with the memory that
they quote: the digest replaces them, and the chain still verifies.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from alma.model.governance import Attribution, AuditEvent
from alma.model.record import Record, RecordSpec
from alma.storage.document import timestamp_text

_GIVEN_BY_THE_STORE = ("id", "chain", "chain_position", "chain_hash")
_NAMES = [field.name for field in AuditEvent.spec.primary if field.name not in _GIVEN_BY_THE_STORE]
_said = itemgetter(*_NAMES)
_MOMENT, _DETAILS, _ERROR = map(_NAMES.index, ("created_at", "details_json", "error_message"))
_ERASED = "erased"
_ERASED_TEXT = "erased, SHA-256 "
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


class ChainHead(NamedTuple):
    """The end of a chain: its number of events and the last hash, empty without events. `unchained` is the number of
    events from before the store had chains, kept by the first chain.
    """

    chain: int
    length: int = 0
    hash: str = ""
    unchained: int = 0


class ChainTable(ABC):
    """The chain heads, inside one transaction."""

    @abstractmethod
    def take(self) -> ChainHead:
        """Lock a head that no other transaction has locked, until the end of this one."""

    @abstractmethod
    def move(self, head: ChainHead) -> None:
        """Store the new head of a locked chain."""

    @abstractmethod
    def heads(self) -> list[ChainHead]:
        """All heads, by number."""


def chained(events: Iterable[Mapping[str, Any]], head: ChainHead) -> tuple[list[dict[str, Any]], ChainHead]:
    """The values of events with their positions after the head, and the new head."""
    placed: list[dict[str, Any]] = []
    for values in events:
        head = following(head, statement(values))
        placed.append({**values, "chain": head.chain, "chain_position": head.length, "chain_hash": head.hash})
    return placed, head


def following(head: ChainHead, said: str) -> ChainHead:
    """The head of a chain after one more event with this statement."""
    length = head.length + 1
    return ChainHead(head.chain, length, _digest(said, head.chain, length, head.hash), head.unchained)


def digest(event: AuditEvent, before: str) -> str:
    """The hash of an event, given the hash before it."""
    return _digest(statement(event.values()), event.chain, event.chain_position, before)


def digest_before_erasure(event: AuditEvent, before: str) -> str:
    """The hash of an event from before hashes covered a digest of the details."""
    said = _encode(_hashed_values(event.values()))
    return _digest(said, event.chain, event.chain_position, before)


def seal(event: AuditEvent) -> str:
    """A digest of an event, which a later event can quote."""
    return hashlib.sha256(f"{event.chain}\n{event.chain_position}\n{statement(event.values())}".encode()).hexdigest()


def without_details(event: AuditEvent) -> AuditEvent:
    """The event with its details and error message replaced by digests."""
    said = _erasable(_hashed_values(event.values()))
    details = None if said[_DETAILS] is None else {_ERASED: said[_DETAILS]}
    error = None if said[_ERROR] is None else f"{_ERASED_TEXT}{said[_ERROR]}"
    return event.replace(details_json=details, error_message=error)


def _digest(said: str, chain: int | None, position: int | None, before: str) -> str:
    return hashlib.sha256(f"{before}\n{chain}\n{position}\n{said}".encode()).hexdigest()


def statement(values: Mapping[str, Any]) -> str:
    """The hashed text of an event, the same before and after storing it in any store."""
    return _encode(_erasable(_hashed_values(values)))


def _hashed_values(values: Mapping[str, Any]) -> list[Any]:
    said = list(_said(values))
    said[_MOMENT] = timestamp_text(said[_MOMENT])
    if said[_DETAILS] is not None:
        said[_DETAILS] = _without_negative_zeros(said[_DETAILS])
    return said


def _erasable(said: list[Any]) -> list[Any]:
    """The erasable values replaced by their digests, unless they were replaced before."""
    details, error = said[_DETAILS], said[_ERROR]
    if details is not None:
        is_erased = isinstance(details, dict) and details.keys() == {_ERASED}
        said[_DETAILS] = details[_ERASED] if is_erased else hashlib.sha256(_encode(details).encode()).hexdigest()
    if error is not None:
        is_erased = error.startswith(_ERASED_TEXT)
        said[_ERROR] = error.removeprefix(_ERASED_TEXT) if is_erased else hashlib.sha256(error.encode()).hexdigest()
    return said


def _without_negative_zeros(value: Any) -> Any:
    """Replace negative zeros, which JSONB does not keep."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {key: _without_negative_zeros(item) for key, item in value.items()}
    return [_without_negative_zeros(item) for item in value] if isinstance(value, list) else value


_IDS_PER_AUDIT_EVENT = 500


def audit_events(
    spec: RecordSpec, action: str, records: Sequence[Record], by: Attribution, moment: datetime
) -> Iterator[dict[str, Any]]:
    """The values of the audit events of a write; a batch gets one event that lists the ids."""
    keys = list(map(spec.key_of, records))
    for start in range(0, len(keys), _IDS_PER_AUDIT_EVENT):
        yield audit_event(spec.kind, action, keys[start : start + _IDS_PER_AUDIT_EVENT], by, moment)


def audit_event(kind: str, action: str, keys: Sequence[str], by: Attribution, moment: datetime) -> dict[str, Any]:
    """The values of the event for these records."""
    return {
        "id": None,
        "user_id": by.user_id,
        "session_id": by.session_id,
        "agent_id": by.agent,
        "action": action,
        "resource_type": kind,
        "resource_id": keys[0] if len(keys) == 1 else "*",
        "resource_ids": None if len(keys) == 1 else tuple(keys),
        "details_json": None if by.reason is None else {"reason": by.reason},
        "success": True,
        "error_message": None,
        "ip_address": by.ip_address,
        "user_agent": by.user_agent,
        "created_at": moment,
    }
