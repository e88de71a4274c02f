"""Create, read, change and delete single memories, and count their reads."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from alma import clock
from alma.closeable import Closeable
from alma.errors import ConflictError, NotFoundError, RefusedError, StorageError, UniquenessError, ValidationError
from alma.memory.audit import AuditTrail
from alma.memory.entries import Content, changed_memory, checked_changes, new_memory, with_assigned
from alma.memory.erasure import Traces, erase
from alma.memory.filters import MemoryFilter, visible
from alma.memory.git import GitContext
from alma.memory.read_counts import FLUSH_SECONDS, AccessRecorder
from alma.memory.settings import SystemSettings
from alma.memory.working import WorkingMemory
from alma.model.common import checked_part
from alma.model.governance import ANONYMOUS, Attribution, checked_by
from alma.model.memory import Memory, MemoryVersion
from alma.model.query import And, Compare, Order, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.storage.tombstones import Because, lift_tombstones, note_tombstones
from alma.telemetry import traced

_EVERYWHERE = Scope.everywhere()
READABLE = MemoryFilter(include_archived=True)
ANY_STATE = MemoryFilter(include_archived=True, include_deleted=True, include_expired=True)


class Writer(Protocol):
    """Saves text: it adds vectors, and may reject, mask or merge.

    If its `save` has a parameter `source`, the journal passes where the text comes from.
    """

    def save(self, record: Record, by: Attribution = ...) -> object:
        """Save one record; returns its id, or an object with the id as attribute `id`."""
        ...


class MemoryRepository(Closeable):
    """Single memories of a store; `Journal` adds search and bulk operations."""

    def __init__(
        self,
        storage: StorageBackend,
        writer: Writer,
        retrieval: RetrievalEngine,
        *,
        count_reads: bool = True,
        flush_seconds: float = FLUSH_SECONDS,
        audit: AuditTrail | None = None,
    ) -> None:
        self._storage = checked_storage("journal", storage)
        if not callable(getattr(writer, "save", None)):
            raise ValidationError("journal", "writer", writer, "must be an object with a save method, as Ingest")
        self._audit = audit or AuditTrail(storage)
        self._writer = writer
        self._retrieval = checked_part("journal", "retrieval", retrieval, RetrievalEngine, "a RetrievalEngine")
        self._traces = Traces(storage, retrieval.index, retrieval.cache)
        self._working = WorkingMemory(storage)
        self._access = AccessRecorder(storage, flush_seconds) if count_reads else None

    # ------------------------------------------------------------------ one memory

    @traced("create_memory", lambda memory: [memory.id])
    def create(
        self,
        content: Content,
        *,
        by: Attribution = ANONYMOUS,
        git: GitContext | None = None,
        source: str | None = None,
        **fields: Any,
    ) -> Memory:
        """Store a memory and return it as it is stored.

        `content` is text, or JSON with a `text`. `fields` are fields of a memory, `layers` by name and `ttl_seconds`;
        None means not given. Category, importance and layers that are not given are assigned, with the reasons under
        `context_json["assigned"]`. `source` says where the text comes from; quarantined text raises RefusedError. A
        memory of a session is added to the session as `WorkingMemory.add` does.
        """
        checked_by("create", by)
        with self._audited("create", by, request={"content": content, **fields}):
            return self._created(content, by, git, source, fields)

    def _created(
        self, content: Content, by: Attribution, git: GitContext | None, source: str | None, fields: Mapping[str, Any]
    ) -> Memory:
        given = {name: value for name, value in fields.items() if value is not None}
        if git is not None:
            if not isinstance(git, GitContext):
                raise ValidationError("create", "git", git, "must be a GitContext, as read_git_context gives one")
            given.setdefault("git_context_json", git.to_json())
        settings = SystemSettings(self._storage).read(given.get("user_id", by.user_id))
        memory = new_memory(content, {"decay_rate": settings.default_decay_rate, **given}, by)
        memory = with_assigned(memory, given, categorize=settings.auto_categorization_enabled)
        if "id" not in given and memory.session_id is None:
            return self._stored(self._save(memory, by, source))
        self._prepare(memory, source)

        def create_once(tx: Transaction) -> object:
            if "id" in given and tx.lock(Memory, [memory.id], _EVERYWHERE):
                raise UniquenessError("memory", ("id",), (memory.id,))
            saved = self._save(memory, by, source)
            if memory.session_id:
                self._enter_session(tx, saved)
            return saved

        return self._stored(self._storage.write(create_once, by))

    def get(
        self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, include_deleted: bool = False
    ) -> Memory | None:
        """The memory with this id, or None if the caller can see none; counts as a read."""
        found = self._visible(self._storage, memory_id, scope, by, ANY_STATE if include_deleted else READABLE)
        if found is not None:
            self.record_reads([memory_id], by)
            self._audit.record_read("memory", [memory_id], by)
        return found

    def require(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS) -> Memory:
        """The memory with this id, or NotFoundError."""
        found = self.get(memory_id, scope, by=by)
        if found is None:
            raise NotFoundError("memory", memory_id)
        return found

    @traced("update_memory", lambda memory: [memory.id], record="memory_id")
    def update(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        reason: str | None = None,
        expected_version: int | None = None,
        expected_updated_at: datetime | None = None,
        source: str | None = None,
    ) -> Memory:
        """Change some fields and return the memory; ConflictError if its version or update time is not the expected
        one."""
        checked_by("update", by)
        with self._audited("update", by, memory_id, {"changes": changes}):
            return self._updated(
                memory_id, changes, scope, with_reason(by, reason), expected_version, expected_updated_at, source
            )

    def _updated(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        scope: Scope,
        by: Attribution,
        expected_version: int | None,
        expected_updated_at: datetime | None,
        source: str | None,
    ) -> Memory:
        values = checked_changes(changes)
        before = self._visible(self._storage, memory_id, scope, by, READABLE)
        if before is None:
            raise NotFoundError("memory", memory_id)
        self._prepare(changed_memory(before, values), source)

        def change(tx: Transaction) -> object:
            current = self._locked(tx, memory_id, scope, by, READABLE)
            conflict = _conflict(tx, current, expected_version, expected_updated_at)
            saved = conflict or self._save(changed_memory(current, values), by, source)
            if saved is not conflict and values.get("session_id") not in (None, current.session_id):
                self._enter_session(tx, saved)
            if getattr(saved, "status", None) == "quarantined":
                # The old memory stays; two versions with one id cannot both be stored.
                raise RefusedError("untrusted", f"the memory was not changed: {getattr(saved, 'reason', None)}")
            return saved

        saved = self._storage.write(change, by)
        if isinstance(saved, ConflictError):
            # Raised outside of the transaction, because storage retries conflicts.
            raise saved
        return self._stored(saved)

    @traced("delete_memory", int, record="memory_id")
    def delete(
        self,
        memory_id: str,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        hard: bool = False,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> bool:
        """Delete a memory so that `undelete` can restore it, or permanently with `hard`; returns whether there was one.

        A hard delete also erases its history and rewrites the files of the store. To delete many memories, use
        `bulk_delete` or `purge`, which do so once.
        """
        because = with_reason(checked_by("delete", by), reason)
        state = ANY_STATE if hard else READABLE

        def remove(tx: Transaction) -> bool | ConflictError:
            try:
                current = self._locked(tx, memory_id, scope, by, state)
            except NotFoundError:
                return False
            if conflict := _conflict(tx, current, expected_version, None):
                return conflict
            note_tombstones(tx, [current], Because.DELETED)
            if hard:
                erase(tx, [current], scope)
                return True
            with tx.audited_as("delete"):
                tx.save(current.replace(is_active=False, updated_at=clock.now()))
            return True

        with self._audited("delete", because, memory_id):
            removed = self._storage.write(remove, because)
            if isinstance(removed, ConflictError):
                raise removed
            if removed and hard:
                self._traces.clear()
            return removed

    def undelete(
        self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, reason: str | None = None
    ) -> Memory:
        """Restore a deleted memory; NotFoundError if it was deleted permanently."""

        def bring_back(tx: Transaction) -> str:
            current = self._locked(tx, memory_id, scope, by, ANY_STATE)
            if not current.is_active:
                lift_tombstones(tx, [current])
                with tx.audited_as("restore"):
                    tx.save(current.replace(is_active=True, updated_at=clock.now()))
            return memory_id

        because = with_reason(checked_by("undelete", by), reason)
        with self._audited("restore", because, memory_id):
            return self._stored(self._storage.write(bring_back, because))

    def version(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS) -> int:
        """The newest version number of a memory, to pass as `expected_version`."""
        with self._storage.snapshot() as tx:
            if self._visible(tx, memory_id, scope, by, ANY_STATE) is None:
                raise NotFoundError("memory", memory_id)
            return _version(tx, memory_id)

    # ------------------------------------------------------------------ counting reads

    def record_reads(self, memory_ids: Iterable[str], by: Attribution = ANONYMOUS) -> None:
        """Count these memories as read by the acting session; written in the background."""
        if self._access is not None:
            self._access.record(memory_ids, checked_by("record_reads", by).session_id)

    def flush(self) -> None:
        """Write the reads counted so far."""
        if self._access is not None:
            self._access.flush()

    def close(self) -> None:
        """Write the last counts; the storage stays open."""
        if self._access is not None:
            self._access.close()

    # ------------------------------------------------------------------ internals

    def _audited(
        self, action: str, by: Attribution, memory_id: str = "*", request: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[None]:
        """Record errors inside the block in the audit log."""
        return self._audit.attempt(action, "memory", by, resource_id=memory_id, request=request)

    def _visible(
        self, reader: StorageBackend | Transaction, memory_id: str, scope: Scope, by: Attribution, state: MemoryFilter
    ) -> Memory | None:
        where = And(Compare("id", "eq", memory_id), visible(scope, by), state.predicate(clock.now()))
        found = reader.find(Memory, scope, where, limit=1)
        return found[0] if found else None

    def _locked(self, tx: Transaction, memory_id: str, scope: Scope, by: Attribution, state: MemoryFilter) -> Memory:
        """Lock a visible memory until the end of the transaction."""
        for memory in tx.lock(Memory, [memory_id], scope):
            if matches(And(visible(scope, by), state.predicate(clock.now())), memory):
                return memory
        raise NotFoundError("memory", memory_id)

    def _save(self, memory: Memory, by: Attribution, source: str | None) -> object:
        save: Any = self._writer.save
        if source is None or "source" not in inspect.signature(save).parameters:
            return save(memory, by)
        return save(memory, by, source=source)

    def _prepare(self, memory: Memory, source: str | None) -> None:
        """Embed and judge the text before the transaction; both cache their results."""
        prepare = getattr(self._writer, "prepare", None)
        if prepare is not None:
            prepare(memory, source)
            return
        if memory.embedding is None:
            self._retrieval.embedder.encode_texts([memory.text()])

    def _enter_session(self, tx: Transaction, saved: object) -> None:
        for stored in tx.get_many(Memory, [_id_of(saved)], _EVERYWHERE):
            self._working.enter(tx, stored)

    def _stored(self, saved: object) -> Memory:
        if getattr(saved, "status", None) == "quarantined":
            raise RefusedError("quarantined", _quarantine_reason(saved))
        stored = self._storage.get(Memory, _id_of(saved), _EVERYWHERE)
        if stored is None:
            status, why = getattr(saved, "status", "not stored"), getattr(saved, "reason", None)
            raise StorageError(f"the memory was {status} and cannot be read: {why or 'no reason given'}")
        return stored


def _id_of(saved: object) -> str:
    return str(getattr(saved, "id", saved))


def _quarantine_reason(saved: object) -> str:
    archive_id, why = getattr(saved, "archive_id", None), getattr(saved, "reason", None) or "no reason given"
    where = "" if archive_id is None else f"; it is in the archive as {archive_id!r} and can be restored from there"
    return f"the memory was quarantined and not stored: {why}{where}"


def with_reason(by: Attribution, reason: str | None) -> Attribution:
    return by if reason is None else dataclasses.replace(by, reason=reason)


def _conflict(
    tx: Transaction, memory: Memory, expected_version: int | None, expected_updated_at: datetime | None
) -> ConflictError | None:
    if expected_updated_at is not None and memory.updated_at != expected_updated_at:
        changed = memory.updated_at.isoformat()
        return ConflictError(f"memory {memory.id!r} was changed at {changed}, after it was read: read it again")
    if expected_version is not None and (actual := _version(tx, memory.id)) != expected_version:
        return ConflictError(f"memory {memory.id!r} is at version {actual}, not at {expected_version}: read it again")
    return None


def _version(tx: Transaction, memory_id: str) -> int:
    of_memory = And(Compare("memory_id", "eq", memory_id), Compare("kind", "eq", "memory"))
    newest = tx.values(
        MemoryVersion, ("version_number",), _EVERYWHERE, of_memory, (Order("version_number", "desc"),), 1
    )
    return int(newest[0][0]) if newest else 0
