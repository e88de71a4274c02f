"""The journal: create, read, change, delete, search, summarize and promote general memories."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from alma import clock
from alma.errors import ValidationError
from alma.memory.audit import AuditTrail
from alma.memory.context import ContextReader, WorkingContext
from alma.memory.erasure import erase
from alma.memory.filters import MemoryFilter, age_limit, checked_filter, viewer, visible, visible_in_session
from alma.memory.git import GitContext, read_git_context
from alma.memory.layers import DEFAULT_RULES, Promotion, PromotionRules, Promotions
from alma.memory.read_counts import FLUSH_SECONDS, add_feedback
from alma.memory.repository import READABLE, MemoryRepository, Writer, with_reason
from alma.memory.search import NEWEST_FIRST, Page, SearchResult, read_page, search
from alma.memory.settings import SystemSettings
from alma.memory.summary import LanguageModel, Summary, summarize
from alma.model.governance import ANONYMOUS, Attribution, checked_by
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Order, Predicate, matches
from alma.model.scope import Scope
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.storage.base import StorageBackend, Transaction
from alma.storage.tombstones import Because, note_tombstones
from alma.telemetry import traced

_BATCH_SIZE = 500
_MAX_SUMMARIZED = 1_000


@dataclass(frozen=True, slots=True)
class BulkDeletion:
    """The memories that were deleted, or would be deleted in a dry run."""

    ids: tuple[str, ...]
    dry_run: bool = False

    @property
    def count(self) -> int:
        return len(self.ids)


def delete_many(
    storage: StorageBackend, scope: Scope, where: Predicate, by: Attribution, *, hard: bool, dry_run: bool
) -> BulkDeletion:
    """Delete the memories inside the scope that match the predicate, in batches that do not block other writers for
    long."""
    ids = [key for (key,) in storage.values(Memory, ("id",), scope, where)]
    if dry_run:
        return BulkDeletion(tuple(ids), dry_run=True)
    gone: list[str] = []
    for start in range(0, len(ids), _BATCH_SIZE):
        batch = ids[start : start + _BATCH_SIZE]

        def delete(tx: Transaction, batch: Sequence[str] = batch) -> list[str]:
            # Another process may have changed them since they were found.
            held = [memory for memory in tx.lock(Memory, batch, scope) if matches(where, memory)]
            note_tombstones(tx, held, Because.DELETED)
            if hard:
                erase(tx, held, scope)
            else:
                moment = clock.now()
                with tx.audited_as("delete"):
                    tx.save(*(memory.replace(is_active=False, updated_at=moment) for memory in held))
            return [memory.id for memory in held]

        gone.extend(storage.write(delete, by))
    return BulkDeletion(tuple(gone))


class Journal(MemoryRepository):
    """The general memories of a store.

    Every call takes a scope and the acting user in `by`: private memories are visible to their user alone, and a caller
    in a session does not see the session layer of other sessions. Reads are counted in the background; `close` writes
    the last counts. Failures are recorded in the audit log, and reads as well if `audit` logs reads.
    """

    def __init__(
        self,
        storage: StorageBackend,
        writer: Writer,
        retrieval: RetrievalEngine,
        *,
        llm: LanguageModel | None = None,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        promotion_rules: PromotionRules = DEFAULT_RULES,
        count_reads: bool = True,
        flush_seconds: float = FLUSH_SECONDS,
        audit: AuditTrail | None = None,
    ) -> None:
        super().__init__(storage, writer, retrieval, count_reads=count_reads, flush_seconds=flush_seconds, audit=audit)
        self._llm = llm
        self._redactor = checked_redactor("journal", redactor)
        self._promotions = Promotions(storage, promotion_rules)
        self._context = ContextReader(storage, retrieval)

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
        """The memories with these ids, in their order, or a page of those that the filter matches.

        Reading by ids counts as reads; reading pages does not.
        """
        checked_by("batch_read", by)
        wanted = checked_filter("batch_read", where)
        if ids is not None:
            return self._by_ids(scope, by, ids, where)
        others = dataclasses.replace(wanted, types=())
        matching = And(visible_in_session(scope, by, wanted), others.predicate(clock.now()))
        page = read_page(self._storage, scope, matching, sort, limit, offset, cursor, wanted.types)
        self._audit.record_read("memory", [memory.id for memory in page.memories], by)
        return page

    @traced("delete_memory", lambda deleted: deleted.count)
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
        """Delete the memories that match the filter and were created before `older_than`; one of the two is
        required."""
        checked_by("bulk_delete", by)
        with self._audited("bulk_delete", by):
            wanted = checked_filter("bulk_delete", where)
            if older_than is None and not wanted.narrows:
                raise ValidationError("bulk_delete", "where", where, "must say what to delete: a type, tags, an age …")
            parts = [visible(scope, by), wanted.predicate(clock.now())]
            if older_than is not None:
                parts.append(Compare("created_at", "lt", age_limit(older_than)))
            deleted = delete_many(
                self._storage, scope, And(*parts), with_reason(by, reason), hard=hard, dry_run=dry_run
            )
            if hard and deleted.ids and not dry_run:
                self._traces.clear()

            return deleted

    @traced("search_memory", lambda found: [hit.memory.id for hit in found], query="query")
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
        """The memories that answer a query best, each with the reasons for its score; they count as read.

        With `routed`, the words of the query choose the layers to search. `min_similarity` is the least cosine; in mode
        "semantic" the default is the setting `semantic_search_threshold`.
        """
        checked_by("search", by)
        if mode == "semantic" and min_similarity is None:
            min_similarity = SystemSettings(self._storage).threshold(viewer(scope, by))
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
        ids = [hit.memory.id for hit in found]
        self.record_reads(ids, by)
        self._audit.record_read("memory", ids, by, action="search", request={"query": query, "mode": mode})
        return found

    def summarize(
        self,
        scope: Scope,
        *,
        by: Attribution = ANONYMOUS,
        where: MemoryFilter | None = None,
        max_tokens: int = 300,
    ) -> Summary:
        """Summarize a session (named by the scope or filter) or a time range.

        The summary is extractive, or abstractive where the journal has a language model.
        """
        checked_by("summarize", by)
        wanted = checked_filter("summarize", where)
        # Naming a session asks for its session layer as well.
        matching = And(visible(scope, by), wanted.predicate(clock.now()))
        newest = self._storage.find(Memory, scope, matching, (Order("created_at", "desc"),), _MAX_SUMMARIZED)
        return summarize(newest, max_tokens, self._llm, self._redactor)

    # ------------------------------------------------------------------ layers and context

    def promotions(self, scope: Scope, *, by: Attribution = ANONYMOUS) -> list[Promotion]:
        """The promotions that the rules propose, with reasons; nothing is changed."""
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
        """Apply the proposed promotions, all or those of these memories; returns what was, or would be, promoted."""
        self.flush()
        return self._promotions.promote(scope, checked_by("promote", by), memory_ids, dry_run=dry_run)

    def demote(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, reason: str | None = None) -> Memory:
        """Revert the last promotion of a memory, which restores its layers exactly.

        It also counts as marking the memory unhelpful, so that it is not promoted again.
        """
        with self._audited("demote", checked_by("demote", by), memory_id):
            return self._promotions.demote(memory_id, scope, by, reason)

    def mark_helpful(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, helpful: bool = True) -> None:
        """Record that a memory helped, or did not; it counts as evidence for its promotion."""

        def record(tx: Transaction) -> None:
            self._locked(tx, memory_id, scope, by, READABLE)
            add_feedback(tx, memory_id, helpful, by.session_id)

        with self._audited("mark_helpful", checked_by("mark_helpful", by), memory_id):
            self._storage.write(record, by)

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
        """The working context for an activity, files and a branch: working set, open tasks, related memories, with
        reasons.

        The branch comes from `git_branch`, else from `git`, else from the Git repository of `directory`.
        """
        if git is not None and not isinstance(git, GitContext):
            raise ValidationError("get_context", "git", git, "must be a GitContext, as read_git_context gives one")
        if git is None and directory is not None:
            git = read_git_context(directory)
            if git is not None and scope.project_id is not None:
                self._retrieval.activity.saw_repository(scope.project_id, git.to_json())
        found = self._context.read(
            scope, by, activity, files, git_branch or (git.branch if git is not None else None), max_tokens, git
        )
        ids = [item.record.id for item in found.items if isinstance(item.record, Memory)]
        self.record_reads(ids, by)
        self._audit.record_read("memory", ids, by, request={"activity": activity, "files": list(files)})
        return found

    def _by_ids(self, scope: Scope, by: Attribution, ids: Iterable[str], where: MemoryFilter | None) -> Page:
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise ValidationError("batch_read", "ids", ids, "must be a list of ids")
        wanted = list(dict.fromkeys(ids))
        matching = And(In("id", wanted), visible(scope, by), (where or READABLE).predicate(clock.now()))
        found = {memory.id: memory for memory in self._storage.find(Memory, scope, matching)}
        self.record_reads(found, by)
        self._audit.record_read("memory", found, by)
        return Page(tuple(found[key] for key in wanted if key in found))
