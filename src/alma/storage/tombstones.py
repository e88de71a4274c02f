"""Tombstones: values that were deleted or rejected, so that no extraction, learning, import or merge brings them back.

Only a keyed fingerprint of the value is kept, as a setting, so that it outlives a purge of the text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from alma.clock import now
from alma.model.governance import ArchiveCause, ArchivedRecord, Setting, SettingType
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.transaction import Transaction
from alma.text.canonical import ordered_words

CONVERSATIONS = "conversations"
"""The metadata key of a fact, preference or outcome for the marks of the conversations that it was extracted from."""

KEY = "tombstone_key"
PREFIX = "tombstone."
_EVERYWHERE = Scope.everywhere()
_MOST_LISTED = 200
_MOST_CONVERSATIONS = 20
_STATEMENTS: dict[type[Record], tuple[str, ...]] = {
    Memory: ("content",),
    Heuristic: ("strategy",),
    DomainKnowledge: ("fact",),
    AntiPattern: ("pattern",),
    UserPreference: ("preference",),
    Outcome: ("task_description", "strategy_used"),
}


class Because(StrEnum):
    """Why a value has a tombstone; an erased one went with its user or project."""

    REJECTED = "rejected"
    DELETED = "deleted"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Why and when a value went, and the digests of the conversations that it was extracted from.

    `name` is the key of the setting, and `before` is why a rejected record was in the archive before.
    """

    name: str

    because: Because
    at: datetime
    before: ArchiveCause | None = None
    conversations: frozenset[str] = frozenset()
    in_other_words: bool = False

    def __str__(self) -> str:
        how = "was rejected in review" if self.because is Because.REJECTED else "was deleted"
        return f"{how} on {self.at:%Y-%m-%d}{', in other words' if self.in_other_words else ''}"


def tombstones_of(tx: Transaction, records: Iterable[Record]) -> dict[str, Tombstone]:
    """The tombstones of these records' texts, by the ids of the records."""
    key = _key(tx)
    names = {} if key is None else {name: record for record in records if (name := _name(key, record)) is not None}
    if not names:
        return {}
    by_name = {row.key: _parsed(row) for row in tx.get_many(Setting, list(names), _EVERYWHERE)}
    return {str(record.key): by_name[name] for name, record in names.items() if name in by_name}


def tombstone_of(tx: Transaction, record: Record) -> Tombstone | None:
    """The tombstone of the record's text, if it was deleted or rejected."""
    return tombstones_of(tx, [record]).get(str(record.key))


def has_tombstones(tx: Transaction) -> bool:
    """Whether anything was ever deleted or rejected in this store."""
    return _key(tx) is not None


def deleted_by_owners(tx: Transaction, records: Sequence[Record]) -> dict[str, list[str]]:
    """For each of these records the ids of what its owner deleted or rejected last; none for most."""
    key = _key(tx)
    if key is None or not records:
        return {}
    owners = {str(record.key): f"{PREFIX}{_owner(key, record)}" for record in records}
    lists = {row.key: list(row.typed_value) for row in tx.get_many(Setting, list({*owners.values()}), _EVERYWHERE)}
    return {each: lists[owner] for each, owner in owners.items() if owner in lists}


def note_tombstones(
    tx: Transaction, records: Sequence[Record], because: Because, before: ArchiveCause | None = None
) -> None:
    """Remember that what these records say was deleted or rejected."""
    said = [record for record in records if _statement(record)]
    if not said:
        return
    key, moment = _key(tx) or _new_key(tx), now()
    rows: dict[str, Setting] = {}
    for record in said:
        name = _name(key, record)
        assert name is not None
        marks = [_digest(key, "conversation", mark) for mark in conversations_of(record)]
        value = {"because": because, "at": moment.isoformat(), "before": before, CONVERSATIONS: marks}
        value = {field: each for field, each in value.items() if each}
        rows[name] = Setting(
            key=name, value=json.dumps(value), value_type=SettingType.JSON, description="A deleted or rejected value"
        )
    with tx.without_reason():
        tx.save(*rows.values())
        if because is not Because.ERASED:
            _list_ids(tx, key, said)


def _list_ids(tx: Transaction, key: bytes, records: Sequence[Record]) -> None:
    """Add records to the lists of their owners, from which the text is found as long as it is in the archive."""
    by_owner: dict[str, list[str]] = {}
    for record in records:
        by_owner.setdefault(f"{PREFIX}{_owner(key, record)}", []).append(str(record.key))
    for name, ids in sorted(by_owner.items()):
        tx.hold(name)
        row = tx.get(Setting, name, _EVERYWHERE)
        listed = dict.fromkeys([*(() if row is None else row.typed_value), *ids])
        value = json.dumps(list(listed)[-_MOST_LISTED:])
        tx.save(Setting(key=name, value=value, value_type=SettingType.JSON, description="Records deleted last"))


def lift_tombstones(tx: Transaction, records: Iterable[Record]) -> None:
    """Allow what these records say to be stored again."""
    key = _key(tx)
    drop_tombstones(tx, [] if key is None else [name for each in records if (name := _name(key, each)) is not None])


def drop_tombstones(tx: Transaction, names: Sequence[str]) -> None:
    """Allow the values of these tombstones to be stored again."""
    if names:
        tx.delete(Setting, names, _EVERYWHERE)


def is_from_before(tx: Transaction, tombstone: Tombstone, record: Record) -> bool:
    """Whether the record was extracted from a conversation that the deleted one was extracted from, too."""
    key = _key(tx)
    if key is None:
        return False
    return any(_digest(key, "conversation", mark) in tombstone.conversations for mark in conversations_of(record))


def conversations_of(record: Record) -> Sequence[str]:
    """The marks of the conversations that a record was extracted from."""
    metadata = getattr(record, "metadata", None)
    known = metadata.get(CONVERSATIONS) if isinstance(metadata, Mapping) else None
    return [mark for mark in known if isinstance(mark, str)] if isinstance(known, list | tuple) else []


def with_conversations(metadata: Mapping[str, Any], marks: Iterable[str]) -> dict[str, Any]:
    """The metadata of a record with the marks of more conversations."""
    known = dict.fromkeys([*metadata.get(CONVERSATIONS, ()), *marks])
    return {**metadata, CONVERSATIONS: list(known)[-_MOST_CONVERSATIONS:]}


def of_another_store(tx: Transaction, settings: Iterable[str]) -> set[str]:
    """Which of these settings are tombstones with a key that is not this store's."""
    key = _key(tx)
    own = None if key is None else f"{PREFIX}{_id_of(key)}."
    return {name for name in settings if name.startswith(PREFIX) and own is not None and not name.startswith(own)}


def set_cause(tx: Transaction, archived: ArchivedRecord, cause: ArchiveCause) -> None:
    """Change why a record is in the archive."""
    tx.update(ArchivedRecord, archived.id, {"cause": cause}, _EVERYWHERE)


# ---------------------------------------------------------------------- names and values


def _key(tx: Transaction) -> bytes | None:
    """The key of this store's fingerprints; None before the first one."""
    row = tx.get(Setting, KEY, _EVERYWHERE)
    return None if row is None else bytes.fromhex(row.value)


def _new_key(tx: Transaction) -> bytes:
    tx.hold(KEY)
    known = _key(tx)
    if known is not None:
        return known
    made = secrets.token_bytes(32)
    with tx.without_reason():
        tx.save(Setting(key=KEY, value=made.hex(), description="The key of the fingerprints of deleted values"))
    return made


def _statement(record: Record) -> str:
    names = _STATEMENTS.get(type(record), ())
    return " ".join(word for name in names for word in ordered_words(getattr(record, name) or ""))


def _name(key: bytes, record: Record) -> str | None:
    """The name of the tombstone of a record's text; None for kinds without one."""
    said = _statement(record)
    return f"{PREFIX}{_owner(key, record)}.{_digest(key, 'value', said, *_apart(record))}" if said else None


def _apart(record: Record) -> tuple[object, ...]:
    """What tells values of the same words apart: a warning is no rule, and each outcome is an event of its own."""
    match record:
        case AntiPattern():
            return ("warning",)
        case Outcome():
            heard = conversations_of(record)[:1] or (record.timestamp and record.timestamp.isoformat(),)
            return ("outcome", record.agent, record.success, *heard)
    return ()


def _owner(key: bytes, record: Record) -> str:
    """The project of the record, of a preference its user."""
    owner = getattr(record, "project_id", None) or getattr(record, "user_id", None)
    return f"{_id_of(key)}.{_digest(key, 'owner', owner)[:12]}"


def _id_of(key: bytes) -> str:
    return _digest(key, "key")[:8]


def _digest(key: bytes, *parts: object) -> str:
    return blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16, key=key).hexdigest()


def _parsed(row: Setting) -> Tombstone:
    value = row.typed_value
    before = value.get("before")
    return Tombstone(
        row.key,
        Because(value["because"]),
        datetime.fromisoformat(value["at"]),
        None if before is None else ArchiveCause(before),
        frozenset(value.get(CONVERSATIONS) or ()),
    )
