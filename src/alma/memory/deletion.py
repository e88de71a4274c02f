"""Delete a user or a project with all their records, along the documented cascade; no text is left."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from alma.errors import NotFoundError, ValidationError
from alma.memory.archive import Archive
from alma.memory.erasure import Traces, dependents_of, erase, erase_copies, erase_events
from alma.model.common import checked_name
from alma.model.governance import (
    ANONYMOUS,
    ArchiveCause,
    ArchivedRecord,
    Attribution,
    AuditEvent,
    MergeMark,
    audit_event,
)
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import MemoryVersion
from alma.model.query import And, At, Compare, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.model.workspace import Project, Session, User
from alma.paths import file_name_of
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.storage.bundles import unpack
from alma.storage.history import record_of
from alma.storage.tombstones import Because, note_tombstones
from alma.transfer.exporting import export_store

Subject = Literal["user", "project"]

_EVERYWHERE = Scope.everywhere()
_AT_ONCE = 500
_LAST: tuple[type[Record], ...] = (Session, Project, User)
"""Deleted last and in this order: what belongs to an owner is found through these."""

_CONTENT: tuple[type[Record], ...] = tuple(
    cls for cls in KINDS if not cls.spec.append_only and cls not in (*_LAST, ArchivedRecord)
)
_EVERY: tuple[type[Record], ...] = (*_CONTENT, *_LAST, ArchivedRecord)


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """What belongs to a user or a project: how many records of each kind, and the token that confirms the deletion.

    `projects` are deleted with their user. `of_others` counts memories of other users in these projects and sessions.
    """

    subject: Subject
    id: str
    counts: Mapping[str, int]
    projects: Sequence[str]
    of_others: int

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.counts.values())

    @property
    def token(self) -> str:
        """A token of exactly these counts; a deletion with the token of other counts is refused."""
        said = json.dumps([self.subject, self.id, sorted(self.counts.items()), sorted(self.projects)])
        return hashlib.sha256(said.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _Owner:
    """The user that is deleted, if it is one, and the projects and sessions that are deleted with it."""

    user_id: str | None
    projects: tuple[str, ...]
    sessions: tuple[str, ...] = ()

    def predicates(self, spec: RecordSpec) -> Iterator[Predicate]:
        """Queries that together select the owner's records of a kind."""
        own = {"user": [self.user_id] if self.user_id is not None else [], "project": self.projects}
        own["session"] = self.sessions
        for kind, ids in own.items():
            name = spec.key if spec.kind == kind else f"{kind}_id"
            if name in spec.by_name:
                yield from (In(name, part) for part in _parts(ids))

    def versions(self) -> Iterator[Predicate]:
        """Queries for the versions whose record was the owner's."""
        named = {"user_id": [self.user_id] if self.user_id is not None else []}
        for name, ids in (*named.items(), ("project_id", self.projects), ("session_id", self.sessions)):
            yield from (At("record_json", (name,), each) for each in ids)


class Deletions:
    """Deletes users and projects: records of every kind, versions, archive, vectors, audit details and kept answers.

    A user's projects go with the user, and with a project or a session all memories in it, also those of other users.
    What stays is the audit log, in which events keep who did what to which id, without details. `flush` stores what
    this process has yet to write, before it is looked for.
    """

    def __init__(
        self,
        storage: StorageBackend,
        archive: Archive,
        traces: Traces,
        flush: Callable[[], object] = lambda: None,
    ) -> None:
        self._storage = checked_storage("deletion", storage)
        self._archive = archive
        self._traces = traces
        self._flush = flush

    def plan(self, subject: Subject, subject_id: str) -> DeletionPlan:
        """Count what would be deleted; NotFoundError if there is nothing."""
        owner = self._owner(subject, checked_name("deletion", f"{subject}_id", subject_id))
        counts: Counter[str] = Counter()
        others = 0
        with self._storage.snapshot() as tx:
            for cls in _EVERY:
                keys = _keys(tx, cls, owner)
                counts[cls.spec.kind] += len(keys)
                for part in _parts(keys):
                    dependents = dependents_of(tx, cls, part).values()
                    counts.update(each.spec.kind for group in dependents for each in group)
                    others += _of_others(tx, cls, part, owner)
        if not +counts:
            raise NotFoundError(subject, subject_id)
        return DeletionPlan(subject, subject_id, dict(sorted((+counts).items())), owner.projects, others)

    def export(self, plan: DeletionPlan, folder: str | Path) -> list[Path]:
        """Write what would be deleted into a folder, one file for the user and one for each project."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        scopes = {f"project-{file_name_of(each)}": Scope(project_id=each) for each in plan.projects}
        if plan.subject == "user":
            scopes[f"user-{file_name_of(plan.id)}"] = Scope(user_id=plan.id)
        return [export_store(self._storage, place / f"{name}.jsonl.gz", scope).path for name, scope in scopes.items()]

    def delete(self, subject: Subject, subject_id: str, confirm: str, by: Attribution = ANONYMOUS) -> DeletionPlan:
        """Delete what a plan with this token lists; an interrupted deletion can be repeated."""
        plan = self.plan(subject, subject_id)
        if confirm != plan.token:
            reason = "is not the token of what would be deleted now: count again without it, and confirm that token"
            raise ValidationError(f"delete_{subject}", "confirm", confirm, reason)
        self._flush()
        owner = self._owner(subject, subject_id)
        for cls in (*_CONTENT, *_LAST):
            self._each(_keys(self._storage, cls, owner), partial(_erase, cls), by)
        for part in _parts(_keys(self._storage, ArchivedRecord, owner)):
            self._storage.write(lambda tx, part=part: _bury_archived(tx, part), by)  # type: ignore[misc]
            self._archive.purge(timedelta(0), _EVERYWHERE, by, ids=part, scrub=False)
        self._each(self._past(owner), _erase_past, by)
        self._each(self._events_of(owner), _erase_event_details, by)
        counted = audit_event(by, "erase", subject, [subject_id], details_json={"deleted": dict(plan.counts)})
        self._storage.write(lambda tx: tx.save(counted), by)
        self._traces.clear()
        return plan

    # ------------------------------------------------------------------ internals

    def _owner(self, subject: Subject, subject_id: str) -> _Owner:
        with self._storage.snapshot() as tx:
            if subject == "project":
                owner = _Owner(None, (subject_id,))
            else:
                found = tx.values(Project, ("id",), Scope(user_id=subject_id))
                owner = _Owner(subject_id, tuple(str(key) for (key,) in found))
            return _Owner(owner.user_id, owner.projects, tuple(_keys(tx, Session, owner)))

    def _each(self, keys: Sequence[str], change: Callable[[Transaction, Sequence[str]], None], by: Attribution) -> None:
        for part in _parts(keys):
            self._storage.write(lambda tx, part=part: change(tx, part), by)  # type: ignore[misc]

    def _past(self, owner: _Owner) -> list[str]:
        """The versions of records that no longer exist, as kind and id."""
        found: dict[str, None] = {}
        for where in owner.versions():
            for kind, key in self._storage.values(MemoryVersion, ("kind", "memory_id"), _EVERYWHERE, where):
                found[f"{kind}\n{key}"] = None
        return list(found)

    def _events_of(self, owner: _Owner) -> list[str]:
        """The audit events of the user, whose details may quote what the user asked."""
        if owner.user_id is None:
            return []
        return [str(key) for (key,) in self._storage.values(AuditEvent, ("id",), Scope(user_id=owner.user_id))]


def _erase(cls: type[Record], tx: Transaction, keys: Sequence[str]) -> None:
    held = tx.lock(cls, keys, _EVERYWHERE)
    ids = [str(record.key) for record in held]
    note_tombstones(tx, held, Because.ERASED)
    erase(tx, held, _EVERYWHERE)
    tx.delete_where(MergeMark, _EVERYWHERE, And(Compare("kind", "eq", cls.spec.kind), In("record_id", ids)))


def _bury_archived(tx: Transaction, ids: Sequence[str]) -> None:
    """Keep the fingerprints of archived records; what was rejected keeps its own."""
    rows = tx.find(ArchivedRecord, _EVERYWHERE, In("id", list(ids)))
    gone = [unpack(row).record for row in rows if row.cause is not ArchiveCause.REJECTED]
    note_tombstones(tx, gone, Because.ERASED)


def _erase_past(tx: Transaction, keys: Sequence[str]) -> None:
    """Erase the history of records that no longer exist, and what audit events say about them."""
    gone: list[Record] = []
    for each in keys:
        kind, _, key = each.partition("\n")
        cls = kind_named(kind)
        if tx.get(cls, key, _EVERYWHERE) is not None:
            continue
        of_record = And(Compare("kind", "eq", kind), Compare("memory_id", "eq", key))
        found = (record_of(row, cls, None) for row in tx.find(MemoryVersion, _EVERYWHERE, of_record))
        gone += [record for record in found if record is not None]
        tx.erase_history(cls, key)
    erase_copies(tx, gone)


def _erase_event_details(tx: Transaction, keys: Sequence[str]) -> None:
    erase_events(tx, tx.find(AuditEvent, _EVERYWHERE, In("id", [int(key) for key in keys])))


def _keys(reader: StorageBackend | Transaction, cls: type[Record], owner: _Owner) -> list[str]:
    """The ids of an owner's records of a kind."""
    found: dict[str, None] = {}
    for where in owner.predicates(cls.spec):
        found.update((str(key), None) for (key,) in reader.values(cls, (cls.spec.key,), _EVERYWHERE, where))
    return list(found)


def _of_others(tx: Transaction, cls: type[Record], keys: Sequence[str], owner: _Owner) -> int:
    """How many of these records belong to another user."""
    if owner.user_id is None or "user_id" not in cls.spec.by_name:
        return 0
    rows = tx.values(cls, ("user_id",), _EVERYWHERE, In(cls.spec.key, keys))
    return sum(user not in (None, owner.user_id) for (user,) in rows)


def _parts(ids: Iterable[str]) -> Iterator[list[str]]:
    every = list(ids)
    yield from (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))
