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

from alma.clock import now
from alma.model.governance import ArchiveCause, ArchivedRecord, Setting, SettingType
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.transaction import Transaction
from alma.text.canonical import ordered_words

CONVERSATIONS = "conversations"
"""The metadata key of a fact or preference for the marks of the conversations that it was extracted from."""

KEY = "tombstone_key"
PREFIX = "tombstone."
_EVERYWHERE = Scope.everywhere()
_MOST_LISTED = 200
_FACTS = (Memory, DomainKnowledge, UserPreference)
_STATEMENTS: dict[type[Record], str] = {
    Memory: "content",
    Heuristic: "strategy",
    DomainKnowledge: "fact",
    AntiPattern: "pattern",
    UserPreference: "preference",
}


class Because(StrEnum):
    """Why a value has a tombstone; an erased one went with its user or project."""

    REJECTED = "rejected"
    DELETED = "deleted"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Why and when a value went, and the digests of the conversations that it was extracted from.

    `before` is why a rejected record was in the archive before.
    """

    because: Because
    at: datetime
    before: ArchiveCause | None = None
    conversations: frozenset[str] = frozenset()

    def __str__(self) -> str:
        how = "was rejected in review" if self.because is Because.REJECTED else "was deleted"
        return f"{how} on {self.at:%Y-%m-%d}"


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


def deleted_by_owner(tx: Transaction, record: Record) -> list[str]:
    """The ids of the facts that the owner of a record deleted or rejected last."""
    key = _key(tx)
    row = None if key is None else tx.get(Setting, f"{PREFIX}{_owner(key, record)}", _EVERYWHERE)
    return [] if row is None else list(row.typed_value)


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
        marks = [_digest(key, "conversation", mark) for mark in _conversations(record)]
        value = {"because": because, "at": moment.isoformat(), "before": before, CONVERSATIONS: marks}
        value = {field: each for field, each in value.items() if each}
        rows[name] = Setting(
            key=name, value=json.dumps(value), value_type=SettingType.JSON, description="A deleted or rejected value"
        )
    with tx.without_reason():
        tx.save(*rows.values())
        if because is not Because.ERASED:
            _list_ids(tx, key, [record for record in said if isinstance(record, _FACTS)])


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
        tx.save(Setting(key=name, value=value, value_type=SettingType.JSON, description="Facts deleted last"))


def lift_tombstones(tx: Transaction, records: Iterable[Record]) -> None:
    """Allow what these records say to be stored again."""
    key = _key(tx)
    names = [] if key is None else [name for record in records if (name := _name(key, record)) is not None]
    if names:
        tx.delete(Setting, names, _EVERYWHERE)


def is_from_before(tx: Transaction, tombstone: Tombstone, record: Record) -> bool:
    """Whether the record was extracted from a conversation that the deleted one was extracted from, too."""
    key = _key(tx)
    if key is None:
        return False
    return any(_digest(key, "conversation", mark) in tombstone.conversations for mark in _conversations(record))


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
    name = _STATEMENTS.get(type(record))
    return "" if name is None else " ".join(ordered_words(getattr(record, name) or ""))


def _name(key: bytes, record: Record) -> str | None:
    """The name of the tombstone of a record's text; None for kinds without one."""
    said = _statement(record)
    return f"{PREFIX}{_owner(key, record)}.{_digest(key, 'value', said)}" if said else None


def _owner(key: bytes, record: Record) -> str:
    """The project of the record, of a preference its user."""
    owner = getattr(record, "project_id", None) or getattr(record, "user_id", None)
    return f"{_id_of(key)}.{_digest(key, 'owner', owner)[:12]}"


def _id_of(key: bytes) -> str:
    return _digest(key, "key")[:8]


def _digest(key: bytes, *parts: object) -> str:
    return blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16, key=key).hexdigest()


def _conversations(record: Record) -> Sequence[str]:
    metadata = getattr(record, "metadata", None)
    known = metadata.get(CONVERSATIONS) if isinstance(metadata, Mapping) else None
    return [mark for mark in known if isinstance(mark, str)] if isinstance(known, list | tuple) else []


def _parsed(row: Setting) -> Tombstone:
    value = row.typed_value
    before = value.get("before")
    return Tombstone(
        Because(value["because"]),
        datetime.fromisoformat(value["at"]),
        None if before is None else ArchiveCause(before),
        frozenset(value.get(CONVERSATIONS) or ()),
    )
