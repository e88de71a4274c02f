"""The journal: general memories are created, read, changed, deleted and searched here, by whoever may."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from alma import clock
from alma.errors import ConflictError, NotFoundError, StorageError, UniquenessError, ValidationError
from alma.memory.access import FLUSH_SECONDS, AccessRecorder, add_judgement
from alma.memory.assignment import with_assigned
from alma.memory.context import ContextReader, WorkingContext
from alma.memory.deletion import BulkDeletion, delete_many
from alma.memory.entries import Content, changed_memory, checked_changes, new_memory
from alma.memory.filters import ALIVE, MemoryFilter, age_limit, seen_from_here, visible
from alma.memory.git import GitContext, read_git_context
from alma.memory.pages import NEWEST_FIRST, Page, read_page
from alma.memory.promotion import DEFAULT_RULES, Promotion, PromotionRules, Promotions
from alma.memory.search import SearchResult, search
from alma.memory.summary import LanguageModel, Summary, summarize
from alma.model.governance import ANONYMOUS, Attribution, Setting
from alma.model.memory import Memory, MemoryVersion
from alma.model.query import And, Compare, In, Order, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.searching import Mode
from alma.storage.base import StorageBackend, Transaction

_EVERYWHERE = Scope.everywhere()
_SETTINGS = ("auto_categorization_enabled", "default_decay_rate")
_READABLE = MemoryFilter(include_archived=True)
_ANY_STATE = MemoryFilter(include_archived=True, include_deleted=True, include_expired=True)
_MOST_SUMMARIZED = 1_000


class Writer(Protocol):
    """What text enters the store through: it adds vectors, and may refuse, mask or merge.

    Where its `save` also takes a `source`, it is told where the text comes from.
    """

    def save(self, record: Record, by: Attribution = ...) -> object:
        """Save one record; returns its id, or something that has it as `id`."""
        ...


class Journal:
    """The general memories of a store.

    Every call names a scope, and says in `by` who acts: private memories are seen by their user alone, and a caller
    in a session sees, besides its own, no memories of the session layer. Reads are counted in the background; `close`
    writes what was counted last.
    """

    def __init__(
        self,
        storage: StorageBackend,
        writer: Writer,
        retrieval: RetrievalEngine,
        *,
        llm: LanguageModel | None = None,
        promotion_rules: PromotionRules = DEFAULT_RULES,
        count_reads: bool = True,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._storage = storage
        self._writer = writer
        self._retrieval = retrieval
        self._llm = llm
        self._access = AccessRecorder(storage, flush_seconds) if count_reads else None
        self._promotions = Promotions(storage, promotion_rules)
        self._context = ContextReader(storage, retrieval)

    # ------------------------------------------------------------------ one memory

    def create(
        self,
        content: Content,
        *,
        by: Attribution = ANONYMOUS,
        git: GitContext | None = None,
        source: str | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember something and return it as it is stored.

        `content` is text, or JSON with a `text`. `fields` are those of a memory, `layers` by name and `ttl_seconds`;
        None says nothing. Category, importance and layers that are not given are assigned, with their reasons under
        `context_json["assigned"]`. `source` is where the text comes from, for a writer that wants to know.
        """
        given = {name: value for name, value in fields.items() if value is not None}
        if git is not None:
            given.setdefault("git_context_json", git.to_json())
        settings = self._settings()
        memory = new_memory(content, {"decay_rate": settings["default_decay_rate"], **given}, by)
        memory = with_assigned(memory, given, categorize=settings["auto_categorization_enabled"])
        if "id" not in given:
            return self._stored(self._save(memory, by, source))
        self._warm(memory)

        def create_once(tx: Transaction) -> object:
            if tx.lock(Memory, [memory.id], _EVERYWHERE):
                raise UniquenessError("memory", ("id",), (memory.id,))
            return self._save(memory, by, source)

        return self._stored(self._storage.write(create_once, by))

    def get(
        self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, include_deleted: bool = False
    ) -> Memory | None:
        """The memory with this id, or None where there is none that the caller may see; counts as a read."""
        found = self._visible(self._storage, memory_id, scope, by, _ANY_STATE if include_deleted else _READABLE)
        if found is not None:
            self.record_reads([memory_id], by)
        return found

    def require(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS) -> Memory:
        """The memory with this id, or NotFoundError."""
        found = self.get(memory_id, scope, by=by)
        if found is None:
            raise NotFoundError("memory", memory_id)
        return found

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
        """Change some fields and return the memory; a ConflictError where it is not what the caller thinks it is."""
        values, because = checked_changes(changes), _because(by, reason)
        before = self._visible(self._storage, memory_id, scope, by, _READABLE)
        if before is None:
            raise NotFoundError("memory", memory_id)
        self._warm(changed_memory(before, values))

        def change(tx: Transaction) -> object:
            current = self._held(tx, memory_id, scope, by, _READABLE)
            conflict = _conflict(tx, current, expected_version, expected_updated_at)
            return conflict or self._save(changed_memory(current, values), because, source)

        saved = self._storage.write(change, because)
        if isinstance(saved, ConflictError):
            # Not raised inside: it would be tried again, which would not help.
            raise saved
        return self._stored(saved)

    def delete(
        self,
        memory_id: str,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        hard: bool = False,
        reason: str | None = None,
    ) -> bool:
        """Delete a memory so that `undelete` brings it back, or for good with `hard`; says whether there was one."""
        because = _because(by, reason)
        state = _ANY_STATE if hard else _READABLE

        def remove(tx: Transaction) -> bool:
            try:
                current = self._held(tx, memory_id, scope, by, state)
            except NotFoundError:
                return False
            if hard:
                return tx.delete(Memory, [memory_id], scope) > 0
            tx.save(current.replace(is_active=False, updated_at=clock.now()))
            return True

        return self._storage.write(remove, because)

    def undelete(
        self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, reason: str | None = None
    ) -> Memory:
        """Bring a deleted memory back, or NotFoundError where it is gone for good."""

        def bring_back(tx: Transaction) -> str:
            current = self._held(tx, memory_id, scope, by, _ANY_STATE)
            if not current.is_active:
                tx.save(current.replace(is_active=True, updated_at=clock.now()))
            return memory_id

        return self._stored(self._storage.write(bring_back, _because(by, reason)))

    def version(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS) -> int:
        """The number of a memory's newest version, for `expected_version`."""
        with self._storage.snapshot() as tx:
            if self._visible(tx, memory_id, scope, by, _ANY_STATE) is None:
                raise NotFoundError("memory", memory_id)
            return _version(tx, memory_id)

    # ------------------------------------------------------------------ many memories

    def batch_read(
        self,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        ids: Iterable[str] | None = None,
        where: MemoryFilter | None = None,
        sort: Sequence[str] = NEWEST_FIRST,
        limit: int = 50,
        offset: int = 0,
        cursor: str | None = None,
    ) -> Page:
        """The memories with these ids, in their order, or a page of those the filter lets through.

        Ids count as reads, pages do not.
        """
        if ids is not None:
            return self._by_ids(scope, by, ids, where)
        wanted = where or ALIVE
        others = dataclasses.replace(wanted, types=())
        seen = And(seen_from_here(scope, by, wanted), others.predicate(clock.now()))
        return read_page(self._storage, scope, seen, sort, limit, offset, cursor, wanted.types)

    def bulk_delete(
        self,
        scope: Scope,
        *,
        where: MemoryFilter | None = None,
        older_than: timedelta | datetime | None = None,
        by: Attribution = ANONYMOUS,
        hard: bool = False,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkDeletion:
        """Delete what the filter lets through and is older than this, by when it was created; one of both is needed."""
        wanted = where or ALIVE
        if older_than is None and not wanted.narrows:
            raise ValidationError("bulk_delete", "where", where, "must say what to delete: a type, tags, an age …")
        parts = [visible(scope, by), wanted.predicate(clock.now())]
        if older_than is not None:
            parts.append(Compare("created_at", "lt", age_limit(older_than)))
        return delete_many(self._storage, scope, And(*parts), _because(by, reason), hard=hard, dry_run=dry_run)

    def search(
        self,
        query: str,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        mode: Mode = "hybrid",
        where: MemoryFilter | None = None,
        min_similarity: float | None = None,
        limit: int = 10,
        routed: bool = False,
        now: datetime | None = None,
    ) -> SearchResult:
        """The memories that answer a question best, each with the reasons for its score; they count as read.

        `routed` lets the question's words choose the layers that are looked into.
        """
        found = search(
            self._retrieval,
            query,
            scope,
            by,
            mode=mode,
            where=where,
            min_similarity=min_similarity,
            limit=limit,
            routed=routed,
            now=now,
        )
        self.record_reads([hit.memory.id for hit in found], by)
        return found

    def summarize(
        self,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        where: MemoryFilter | None = None,
        max_tokens: int = 300,
    ) -> Summary:
        """What a session (a scope or filter that names it) or a time range was about.

        The most telling sentences, or what a language model makes of them where the journal has one.
        """
        wanted = where or ALIVE
        # Whoever names a session wants what it alone has.
        seen = And(visible(scope, by), wanted.predicate(clock.now()))
        newest = self._storage.find(Memory, scope, seen, (Order("created_at", "desc"),), _MOST_SUMMARIZED)
        return summarize(newest, max_tokens, self._llm)

    # ------------------------------------------------------------------ layers and context

    def promotions(self, scope: Scope, *, by: Attribution = ANONYMOUS) -> list[Promotion]:
        """Which memories have proved useful enough for a wider layer, and why; nothing is changed."""
        self.flush()
        return self._promotions.proposed(scope, by)

    def promote(
        self,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        memory_ids: Iterable[str] | None = None,
        dry_run: bool = False,
    ) -> list[Promotion]:
        """Promote what the rules propose, all of it or these memories; returns what was, or would be, promoted."""
        self.flush()
        return self._promotions.promote(scope, by, memory_ids, dry_run=dry_run)

    def demote(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, reason: str | None = None) -> Memory:
        """Take a memory's last promotion back: its layers are again exactly what they were.

        It also counts as saying that the memory did not help, so that it does not rise again by itself.
        """
        return self._promotions.demote(memory_id, scope, by, reason)

    def mark_helpful(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, helpful: bool = True) -> None:
        """Say that a memory helped, or did not; it counts towards its promotion."""

        def judge(tx: Transaction) -> None:
            self._held(tx, memory_id, scope, by, _READABLE)
            add_judgement(tx, memory_id, helpful, by.session_id)

        self._storage.write(judge, by)

    def get_context(
        self,
        scope: Scope,
        *,
        activity: str = "",
        files: Sequence[str] = (),
        git_branch: str | None = None,
        git: GitContext | None = None,
        directory: str | os.PathLike[str] | None = None,
        by: Attribution = ANONYMOUS,
        max_tokens: int = 2000,
    ) -> WorkingContext:
        """What matters now: the working set, open tasks, what is known of these files and this branch, and why.

        The branch is the one that is named, or that of the Git context, which a working directory tells.
        """
        if git is None and directory is not None:
            git = read_git_context(directory)
        found = self._context.read(
            scope, by, activity, files, git_branch or (git.branch if git is not None else None), max_tokens, git
        )
        self.record_reads([item.record.key for item in found.items if isinstance(item.record, Memory)], by)
        return found

    # ------------------------------------------------------------------ reads that were counted

    def record_reads(self, memory_ids: Iterable[str], by: Attribution = ANONYMOUS) -> None:
        """Count memories as read by whoever acts; it is written in the background."""
        if self._access is not None:
            self._access.record(memory_ids, by.session_id)

    def flush(self) -> None:
        """Write the reads counted so far."""
        if self._access is not None:
            self._access.flush()

    def close(self) -> None:
        """Write what was counted last; the storage stays open."""
        if self._access is not None:
            self._access.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ how it is done

    def _visible(
        self, reader: StorageBackend | Transaction, memory_id: str, scope: Scope, by: Attribution, state: MemoryFilter
    ) -> Memory | None:
        where = And(Compare("id", "eq", memory_id), visible(scope, by), state.predicate(clock.now()))
        found = reader.find(Memory, scope, where, limit=1)
        return found[0] if found else None

    def _held(self, tx: Transaction, memory_id: str, scope: Scope, by: Attribution, state: MemoryFilter) -> Memory:
        """The memory as it is now, kept from other writers until the transaction ends."""
        for memory in tx.lock(Memory, [memory_id], scope):
            if matches(And(visible(scope, by), state.predicate(clock.now())), memory):
                return memory
        raise NotFoundError("memory", memory_id)

    def _by_ids(self, scope: Scope, by: Attribution, ids: Iterable[str], where: MemoryFilter | None) -> Page:
        wanted = list(dict.fromkeys(ids))
        seen = And(In("id", wanted), visible(scope, by), (where or _READABLE).predicate(clock.now()))
        found = {memory.id: memory for memory in self._storage.find(Memory, scope, seen)}
        self.record_reads(found, by)
        return Page(tuple(found[key] for key in wanted if key in found))

    def _save(self, memory: Memory, by: Attribution, source: str | None) -> object:
        save: Any = self._writer.save
        if source is None or "source" not in inspect.signature(save).parameters:
            return save(memory, by)
        return save(memory, by, source=source)

    def _warm(self, memory: Memory) -> None:
        """Let the embedder see the text before a transaction waits for its vector: it remembers what it has seen."""
        if memory.embedding is None:
            self._retrieval.embedder.encode_texts([memory.text()])

    def _stored(self, saved: object) -> Memory:
        memory_id = str(getattr(saved, "id", saved))
        stored = self._storage.get(Memory, memory_id, _EVERYWHERE)
        if stored is None:
            status, why = getattr(saved, "status", "not stored"), getattr(saved, "reason", None)
            raise StorageError(f"the memory was {status} and cannot be read: {why or 'the writer did not say why'}")
        return stored

    def _settings(self) -> dict[str, Any]:
        stored = self._storage.find(Setting, _EVERYWHERE, In("key", _SETTINGS))
        usual: dict[str, Any] = {"auto_categorization_enabled": True, "default_decay_rate": 0.1}
        return {**usual, **{setting.key: setting.typed_value for setting in stored}}


def _because(by: Attribution, reason: str | None) -> Attribution:
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
