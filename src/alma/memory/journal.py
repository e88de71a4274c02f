"""The journal: general memories are created, read, changed, deleted and searched here, by whoever may."""

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
from alma.memory.filters import MemoryFilter, age_limit, checked_filter, seen_from_here, viewer, visible
from alma.memory.git import GitContext, read_git_context
from alma.memory.layers import DEFAULT_RULES, Promotion, PromotionRules, Promotions
from alma.memory.read_counts import FLUSH_SECONDS, add_judgement
from alma.memory.repository import READABLE, Keeper, Writer, because_of
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

_AT_ONCE = 500
_MOST_SUMMARIZED = 1_000


@dataclass(frozen=True, slots=True)
class BulkDeletion:
    """The memories that were deleted, or in a dry run would be."""

    ids: tuple[str, ...]
    dry_run: bool = False

    @property
    def count(self) -> int:
        return len(self.ids)


def delete_many(
    storage: StorageBackend, scope: Scope, where: Predicate, by: Attribution, *, hard: bool, dry_run: bool
) -> BulkDeletion:
    """Delete the memories inside the scope that fulfil the predicate when their turn comes, batch by batch."""
    ids = [key for (key,) in storage.values(Memory, ("id",), scope, where)]
    if dry_run:
        return BulkDeletion(tuple(ids), dry_run=True)
    gone: list[str] = []
    for start in range(0, len(ids), _AT_ONCE):
        batch = ids[start : start + _AT_ONCE]

        def delete(tx: Transaction, batch: Sequence[str] = batch) -> list[str]:
            # Another process may have changed them since they were found.
            held = [memory for memory in tx.lock(Memory, batch, scope) if matches(where, memory)]
            if hard:
                erase(tx, held, scope)
            else:
                moment = clock.now()
                with tx.audited_as("delete"):
                    tx.save(*(memory.replace(is_active=False, updated_at=moment) for memory in held))
            return [memory.id for memory in held]

        gone.extend(storage.write(delete, by))
    return BulkDeletion(tuple(gone))


class Journal(Keeper):
    """The general memories of a store.

    Every call names a scope, and says in `by` who acts: private memories are seen by their user alone, and a caller
    in a session sees, besides its own, no memories of the session layer. Reads are counted in the background; `close`
    writes what was counted last. What is refused or fails is in the audit log, and so is every read with an `audit`
    that logs reads.
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
        """The memories with these ids, in their order, or a page of those the filter lets through.

        Ids count as reads, pages do not.
        """
        checked_by("batch_read", by)
        wanted = checked_filter("batch_read", where)
        if ids is not None:
            return self._by_ids(scope, by, ids, where)
        others = dataclasses.replace(wanted, types=())
        seen = And(seen_from_here(scope, by, wanted), others.predicate(clock.now()))
        page = read_page(self._storage, scope, seen, sort, limit, offset, cursor, wanted.types)
        self._audit.record_read("memory", [memory.id for memory in page.memories], by)
        return page

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
        checked_by("bulk_delete", by)
        with self._tried("bulk_delete", by):
            wanted = checked_filter("bulk_delete", where)
            if older_than is None and not wanted.narrows:
                raise ValidationError("bulk_delete", "where", where, "must say what to delete: a type, tags, an age …")
            parts = [visible(scope, by), wanted.predicate(clock.now())]
            if older_than is not None:
                parts.append(Compare("created_at", "lt", age_limit(older_than)))
            gone = delete_many(self._storage, scope, And(*parts), because_of(by, reason), hard=hard, dry_run=dry_run)
            if hard and gone.ids and not dry_run:
                self._traces.clear()
            return gone

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

        `routed` lets the question's words choose the layers that are looked into. By meaning alone, the setting
        `semantic_search_threshold` is the least similarity once somebody has chosen it, unless another is given.
        """
        checked_by("search", by)
        if mode == "semantic" and min_similarity is None:
            min_similarity = self._chosen_threshold(scope, by)
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
        """What a session (a scope or filter that names it) or a time range was about.

        The most telling sentences, or what a language model makes of them where the journal has one.
        """
        checked_by("summarize", by)
        wanted = checked_filter("summarize", where)
        # Whoever names a session wants what it alone has.
        seen = And(visible(scope, by), wanted.predicate(clock.now()))
        newest = self._storage.find(Memory, scope, seen, (Order("created_at", "desc"),), _MOST_SUMMARIZED)
        return summarize(newest, max_tokens, self._llm, self._redactor)

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
        return self._promotions.promote(scope, checked_by("promote", by), memory_ids, dry_run=dry_run)

    def demote(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, reason: str | None = None) -> Memory:
        """Take a memory's last promotion back: its layers are again exactly what they were.

        It also counts as saying that the memory did not help, so that it does not rise again by itself.
        """
        with self._tried("demote", checked_by("demote", by), memory_id):
            return self._promotions.demote(memory_id, scope, by, reason)

    def mark_helpful(self, memory_id: str, scope: Scope, *, by: Attribution = ANONYMOUS, helpful: bool = True) -> None:
        """Say that a memory helped, or did not; it counts towards its promotion."""

        def judge(tx: Transaction) -> None:
            self._held(tx, memory_id, scope, by, READABLE)
            add_judgement(tx, memory_id, helpful, by.session_id)

        with self._tried("mark_helpful", checked_by("mark_helpful", by), memory_id):
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
        if git is not None and not isinstance(git, GitContext):
            raise ValidationError("get_context", "git", git, "must be a GitContext, as read_git_context gives one")
        if git is None and directory is not None:
            git = read_git_context(directory)
        found = self._context.read(
            scope, by, activity, files, git_branch or (git.branch if git is not None else None), max_tokens, git
        )
        ids = [item.record.id for item in found.items if isinstance(item.record, Memory)]
        self.record_reads(ids, by)
        self._audit.record_read("memory", ids, by, request={"activity": activity, "files": list(files)})
        return found

    def _chosen_threshold(self, scope: Scope, by: Attribution) -> float | None:
        # What is documented was made for another model: with ours it would hide most of what means the same.
        chosen = SystemSettings(self._storage).in_force("semantic_search_threshold", viewer(scope, by))
        return None if chosen.source == "default" else float(chosen.value)

    def _by_ids(self, scope: Scope, by: Attribution, ids: Iterable[str], where: MemoryFilter | None) -> Page:
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise ValidationError("batch_read", "ids", ids, "must be a list of ids")
        wanted = list(dict.fromkeys(ids))
        seen = And(In("id", wanted), visible(scope, by), (where or READABLE).predicate(clock.now()))
        found = {memory.id: memory for memory in self._storage.find(Memory, scope, seen)}
        self.record_reads(found, by)
        self._audit.record_read("memory", found, by)
        return Page(tuple(found[key] for key in wanted if key in found))
