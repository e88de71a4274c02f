"""Erasure: delete records with their history and every other copy of their text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Protocol, runtime_checkable

from alma.cache.base import CacheBackend
from alma.errors import StorageError
from alma.memory.audit_chain import ERASED_EVENTS
from alma.model.governance import ArchivedRecord, AuditEvent, KeptAnswer, audit_event
from alma.model.kinds import kind_named, references_to
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion, ProjectPattern
from alma.model.query import And, Compare, Has, In
from alma.model.record import OnDelete, Record
from alma.model.scope import Scope
from alma.storage.audit import seal, without_details
from alma.storage.base import StorageBackend, Transaction
from alma.storage.bundles import pack, unpack
from alma.storage.document import from_document, to_document
from alma.vectors.base import VectorIndex

_EVERYWHERE = Scope.everywhere()
_BATCH_SIZE = 500
_MIN_QUOTE_LENGTH = 12
_MAX_QUOTE_LENGTH = 100
_ENDS = ("from_memory_id", "to_memory_id")
_ERASED = "(erased)"
_OWNERS = ("user_id", "project_id", "session_id", "agent", "source_agent", "is_private", *_ENDS, "relationship_type")
_Key = tuple[str, str]


@runtime_checkable
class Compactable(Protocol):
    """An index that keeps copies of vectors and can drop deleted ones on request."""

    def compact(self) -> object:
        """Drop deleted vectors now, from files as well."""
        ...


@dataclass(frozen=True, slots=True)
class Traces:
    """Copies outside of the rows of a store: its files, a vector index, a cache of answers."""

    storage: StorageBackend
    index: Compactable | VectorIndex | None = None
    cache: CacheBackend | None = None

    def clear(self) -> None:
        """Clear deleted rows from the files, the index and the cache."""
        try:
            if self.cache is not None:
                self.cache.clear()
            self.storage.scrub()
            if isinstance(self.index, Compactable):
                self.index.compact()
        except StorageError as exc:
            raise StorageError(
                f"the records are deleted, but their text could not be cleared from the files ({exc}): remove the "
                f"cause, then delete or purge anything again, which clears the files of all that was deleted"
            ) from exc


def erase(tx: Transaction, records: Sequence[Record], scope: Scope, action: str = "delete") -> None:
    """Delete stored records of one kind with their history and every copy of their text.

    An audit event and an empty last version remain, which say that they were deleted, by whom and when.
    """
    if not records:
        return
    cls, keys = type(records[0]), [str(record.key) for record in records]
    dependents = [each for group in dependents_of(tx, cls, keys).values() for each in group]
    copies = And(Compare("kind", "eq", cls.spec.kind), In("record_id", keys))
    tx.delete_where(ArchivedRecord, _EVERYWHERE, copies)
    erase_copies(tx, [*records, *dependents])
    # The older versions are erased already, so the version of the deletion copies no content.
    tx.delete(cls, keys, scope, action)
    for record in (*records, *dependents):
        if record.spec.versioned:
            tx.leave_owner(_blank(record))


def _blank(record: Record) -> Record:
    """The record with only its id, owners and required fields."""
    kept = {name: value for name, value in to_document(record).items() if name in (record.spec.key, *_OWNERS)}
    for field in record.spec.primary:
        if field.required and field.name not in kept:
            kept[field.name] = _ERASED if field.name in record.spec.text else getattr(record, field.name)
    return from_document(type(record), kept)


def erase_copies(tx: Transaction, records: Sequence[Record], until: Sequence[datetime | None] = ()) -> None:
    """Erase the history of records, up to a moment where one is given, and other copies of their text."""
    ends: dict[_Key, datetime | None] = {}
    for record, end in zip_longest(records, until):
        ends[record.spec.kind, str(record.key)] = end
    memory_ids = [record.key for record in records if isinstance(record, Memory)]
    ends.update(dict.fromkeys(_ended_relationships(tx, memory_ids)))
    for (kind, key), end in ends.items():
        cls = kind_named(kind)
        if cls.spec.versioned:
            tx.erase_history(cls, key, end)
    _erase_patterns(tx, memory_ids)
    _erase_details(tx, records, ends)
    _erase_answers(tx)


def dependents_of(tx: Transaction, cls: type[Record], keys: Sequence[str]) -> dict[str, list[Record]]:
    """The records that would be deleted with these, by the first record they depend on."""
    found: dict[str, list[Record]] = {}
    seen: set[tuple[str, object]] = set()
    for spec, reference in references_to(cls.spec.kind):
        if reference.on_delete is not OnDelete.CASCADE:
            continue
        for dependent in tx.find(spec.cls, _EVERYWHERE, In(reference.field, keys)):
            if (spec.kind, dependent.key) not in seen:
                seen.add((spec.kind, dependent.key))
                found.setdefault(getattr(dependent, reference.field), []).append(dependent)
    return found


# ---------------------------------------------------------------------- relationships and patterns


def _ended_relationships(tx: Transaction, memory_ids: Sequence[str]) -> list[_Key]:
    """Former relationships of these memories, whose history or archive rows may quote them."""
    if not memory_ids:
        return []
    _drop_archived_ends(tx, set(memory_ids))
    kind, wanted = MemoryRelationship.spec.kind, set(memory_ids)
    rows = tx.values(MemoryVersion, ("memory_id", "record_json"), _EVERYWHERE, Compare("kind", "eq", kind))
    ended = {key: None for key, content in rows if any((content or {}).get(name) in wanted for name in _ENDS)}
    live = {record.key for record in tx.get_many(MemoryRelationship, list(ended), _EVERYWHERE)}
    return [(kind, key) for key in ended if key not in live]


def _drop_archived_ends(tx: Transaction, memory_ids: set[str]) -> None:
    """Remove relationships with these memories from the archive rows of other memories."""
    for row in tx.find(ArchivedRecord, _EVERYWHERE, Compare("dependents", "ne", "[]")):
        bundle = unpack(row)
        kept = tuple(each for each in bundle.dependents if not memory_ids & {getattr(each, n, None) for n in _ENDS})
        if len(kept) < len(bundle.dependents) and row.record_id not in memory_ids:
            smaller = type(bundle)(bundle.record, bundle.vectors, kept)
            tx.save(pack(smaller, row.cause, row.reason, row.archived_by, row.archived_at, row.id))


def _erase_patterns(tx: Transaction, memory_ids: Sequence[str]) -> None:
    """Delete patterns that quote these memories; patterns with other evidence are mined again."""
    for memory_id in memory_ids:
        resting = tx.find(ProjectPattern, _EVERYWHERE, Has("memory_ids", memory_id))
        if resting:
            erase(tx, resting, _EVERYWHERE)


# ---------------------------------------------------------------------- audit and answers


def _erase_details(tx: Transaction, records: Sequence[Record], ends: Mapping[_Key, datetime | None]) -> None:
    """Erase the details of audit events about these records; a new event records the erasure."""
    quotes = [quote for record in records for quote in _quotes(record)]
    events: dict[int | None, AuditEvent] = {}
    for kind in {kind for kind, _ in ends}:
        of_kind = {key: end for (each, key), end in ends.items() if each == kind}
        found = [event for event in _events_of(tx, kind, list(of_kind)) if _is_about(event, of_kind)]
        found += [event for event in _failures(tx, kind) if any(quote in _details_text(event) for quote in quotes)]
        events.update((event.id, event) for event in found)
    erase_events(tx, list(events.values()))


def _is_about(event: AuditEvent, ends: Mapping[str, datetime | None]) -> bool:
    """Whether an event is about one of these records and not about a later record with the same id."""
    about = {event.resource_id, *(event.resource_ids or ())} & ends.keys()
    return any((end := ends[key]) is None or event.created_at <= end for key in about)


def _events_of(tx: Transaction, kind: str, ids: Sequence[str]) -> Iterator[AuditEvent]:
    of_kind, wanted = Compare("resource_type", "eq", kind), set(ids)
    for start in range(0, len(ids), _BATCH_SIZE):
        alone = In("resource_id", list(ids[start : start + _BATCH_SIZE]))
        yield from tx.find(AuditEvent, _EVERYWHERE, And(of_kind, alone))
    together = And(of_kind, Compare("resource_id", "eq", "*"))
    rows = tx.values(AuditEvent, ("id", "resource_ids"), _EVERYWHERE, together)
    listing = [event_id for event_id, listed in rows if wanted.intersection(listed or ())]
    for start in range(0, len(listing), _BATCH_SIZE):
        yield from tx.find(AuditEvent, _EVERYWHERE, In("id", listing[start : start + _BATCH_SIZE]))


def _failures(tx: Transaction, kind: str) -> list[AuditEvent]:
    """Events of refused operations, which name no record."""
    refused = And(Compare("success", "eq", False), Compare("resource_id", "eq", "*"))
    found = tx.find(AuditEvent, _EVERYWHERE, And(Compare("resource_type", "eq", kind), refused))
    return [event for event in found if not event.resource_ids]


def _has_details(event: AuditEvent) -> bool:
    """Whether an event has details that are not erased yet."""
    is_bare = event.details_json is None and event.error_message is None
    return not is_bare and without_details(event) != event


def _quotes(record: Record) -> Iterator[str]:
    """The beginnings of a record's texts, as they would be quoted."""
    for name in ("title", "summary", *record.spec.text):
        text = getattr(record, name, None)
        if isinstance(text, str) and len(text) >= _MIN_QUOTE_LENGTH:
            yield json.dumps(text[:_MAX_QUOTE_LENGTH], ensure_ascii=False)[1:-1]


def _details_text(event: AuditEvent) -> str:
    return (
        f"{json.dumps(event.details_json, ensure_ascii=False)}\n{json.dumps(event.error_message, ensure_ascii=False)}"
    )


def erase_events(tx: Transaction, events: Sequence[AuditEvent]) -> None:
    """Erase the details of these audit events; a new event records it, so that the chain verifies."""
    found = [event for event in events if _has_details(event)]
    if found:
        _reseal(tx, found)


def _reseal(tx: Transaction, events: Sequence[AuditEvent]) -> None:
    seals = {str(event.id): seal(event) for event in tx.erase_details(events) if event.chain is not None}
    tx.save(audit_event(tx.by, "erase", AuditEvent.spec.kind, details_json={ERASED_EVENTS: seals}))


def _erase_answers(tx: Transaction) -> None:
    """Erase the stored answers of idempotent requests, which may quote the deleted text; that they were carried out is
    kept."""
    while answers := tx.find(KeptAnswer, _EVERYWHERE, Compare("status", "ge", 0), limit=_BATCH_SIZE):
        tx.save(*(each.replace(status=None, answer=None) for each in answers))
