"""Verify an engine against the store, in batches, while both are in use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from alma.errors import StorageError
from alma.model.kinds import kind_named
from alma.model.query import In
from alma.model.record import Record
from alma.storage.base import StorageBackend
from alma.sync.projection import Change, Difference, Mismatch, Projection
from alma.sync.reading import EVERYWHERE, changes_of, page_of
from alma.sync.rebuilding import rebuild_of
from alma.sync.results import ConsistencyIssue, EngineReport, KindCount

_PAGE = 500
# A difference may be a change that was committed, or applied, between two looks.
_LOOKS = 4
_PAUSE_SECONDS = 0.05

OnPage = Callable[[int], object]


def verify_engine(storage: StorageBackend, projection: Projection, on_page: OnPage = lambda _: None) -> EngineReport:
    """Compare every entry of an engine with the store: counts, ids and contents."""
    try:
        with storage.snapshot() as tx:
            if projection.name not in tx.projections():
                return EngineReport(projection.name, problem="it was never filled: run  alma sync run")
            is_rebuilding = rebuild_of(tx, projection.name) is not None
        report = _Verification(storage, projection, on_page).report(is_rebuilding)
        if report.is_consistent:
            # It may have lost what no entry shows.
            projection.ping()
        return report
    except StorageError as exc:
        return EngineReport(projection.name, problem=str(exc))


def still_differs(
    storage: StorageBackend, projection: Projection, issues: Iterable[ConsistencyIssue]
) -> list[ConsistencyIssue]:
    """Those of these issues that an engine still has."""
    verification = _Verification(storage, projection, lambda _: None)
    waiting, left = iter(issues), list[ConsistencyIssue]()
    while page := list(islice(waiting, _PAGE)):
        left += verification.recheck(page)
    return left


class _Verification:
    """Compares one engine with the store, and looks again at what differs before it calls it an issue."""

    def __init__(self, storage: StorageBackend, projection: Projection, on_page: OnPage) -> None:
        self._storage = storage
        self._projection = projection
        self._on_page = on_page
        self._behind: set[tuple[str, str]] = set()
        self._checked = 0

    def report(self, is_rebuilding: bool) -> EngineReport:
        # Listing may note strays in the entries of records, which are then found to be stale.
        issues = [
            issue for cls in self._projection.kinds for found in (self._held(cls), self._stored(cls)) for issue in found
        ]
        behind = len(self._behind) + (len(issues) if is_rebuilding else 0)
        with self._storage.snapshot() as tx:
            parked = tx.backlog(self._projection.name).parked
            counts = tuple(
                KindCount(cls.spec.kind, tx.count(cls, EVERYWHERE), self._projection.count(cls))
                for cls in self._projection.kinds
            )
        found = () if is_rebuilding else tuple(dict.fromkeys(issues))
        return EngineReport(self._projection.name, self._checked, behind, parked, counts, found)

    # ------------------------------------------------------------------ the records of the store

    def _stored(self, cls: type[Record]) -> list[ConsistencyIssue]:
        """The records whose entries are missing, stale or corrupted."""
        issues, after = list[ConsistencyIssue](), None
        while page := self._page(cls, after):
            found = self._projection.compare(page)
            issues += self._confirmed([self._issue(cls, each) for each in found])
            after = page[-1].record_id
            self._checked += len(page)
            self._on_page(len(page))
        return issues

    def _page(self, cls: type[Record], after: str | None) -> list[Change]:
        with self._storage.snapshot() as tx:
            return page_of(tx, self._projection, cls, after, _PAGE)

    def _issue(self, cls: type[Record], found: Mismatch) -> ConsistencyIssue:
        return ConsistencyIssue(self._projection.name, cls.spec.kind, found.record_id, found.difference, found.details)

    # ------------------------------------------------------------------ the entries of the engine

    def _held(self, cls: type[Record]) -> list[ConsistencyIssue]:
        """The entries whose records do not exist."""
        issues, after = list[ConsistencyIssue](), None
        while page := self._projection.held(cls, after, _PAGE):
            stored = self._stored_keys(cls, page)
            orphans = [Mismatch(key, Difference.ORPHANED) for key in page if key not in stored]
            issues += self._confirmed([self._issue(cls, each) for each in orphans])
            after = page[-1]
        return issues

    def _stored_keys(self, cls: type[Record], keys: Sequence[str]) -> set[str]:
        key = cls.spec.key
        return {found for (found,) in self._storage.values(cls, (key,), EVERYWHERE, In(key, keys))}

    def _holds(self, cls: type[Record], key: str) -> bool:
        """Whether the engine has an entry with this id; it sorts behind all but its last character."""
        after: str | None = key[:-1] or None
        while page := self._projection.held(cls, after, _PAGE):
            if key in page or page[-1] > key:
                return key in page
            after = page[-1]
        return False

    # ------------------------------------------------------------------ looking again

    def _confirmed(self, issues: Sequence[ConsistencyIssue]) -> list[ConsistencyIssue]:
        """Those that remain when nothing waits for their records."""
        left = list(issues)
        for look in range(_LOOKS):
            left = self._not_waiting(left)
            if not left:
                break
            time.sleep(_PAUSE_SECONDS * look)
            left = self.recheck(left)
        return self._not_waiting(left)

    def _not_waiting(self, issues: Sequence[ConsistencyIssue]) -> list[ConsistencyIssue]:
        if not issues:
            return []
        with self._storage.snapshot() as tx:
            waiting = {
                (kind, mark.record_id)
                for kind in {issue.kind for issue in issues}
                for mark in tx.marks_of(self._projection.name, kind, [i.record_id for i in issues if i.kind == kind])
                if not mark.parked
            }
        self._behind |= waiting
        return [issue for issue in issues if (issue.kind, issue.record_id) not in waiting]

    def recheck(self, issues: Sequence[ConsistencyIssue]) -> list[ConsistencyIssue]:
        """The issues of these records as they are now."""
        with self._storage.snapshot() as tx:
            changes = changes_of(tx, self._projection, [(each.kind, each.record_id) for each in issues])
        differing = {
            (kind, found.record_id): self._issue(kind_named(kind), found)
            for kind in {issue.kind for issue in issues}
            for found in self._projection.compare(
                [change for change in changes if change.cls.spec.kind == kind and change.record is not None]
            )
        }
        for change in changes:
            if change.record is None and self._holds(change.cls, change.record_id):
                orphan = Mismatch(change.record_id, Difference.ORPHANED)
                differing[change.cls.spec.kind, change.record_id] = self._issue(change.cls, orphan)
        return list(differing.values())
