"""Forgetting: archives memories by a policy, so that it can be undone."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from alma import clock
from alma.errors import ValidationError
from alma.learning.policy import (
    KIND_FIELDS,
    NOTHING,
    KindFields,
    PrunePolicy,
    PruneReason,
    Verdict,
    checked_policy,
    fits,
    is_pinned,
)
from alma.memory.archive import Archive
from alma.memory.settings import DecaySwitch
from alma.model.governance import ANONYMOUS, ArchiveCause, ArchivedRecord, Attribution
from alma.model.learning import Outcome
from alma.model.query import EVERYTHING, And, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, checked_storage

__all__ = ["Forgotten", "ForgettingEngine", "Pruned", "PrunePolicy", "PruneReason", "PruneSummary"]

Progress = Callable[[int, int], None]

_AT_ONCE = 200
# Each page sorts the candidates by id, so large pages are read faster.
_PAGE = 5_000
_MOST_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class Pruned:
    """A memory that was forgotten, or in a dry run would be, with the reason."""

    kind: str
    id: str
    reason: PruneReason
    rule: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}: {self.reason}, {self.rule}"


@dataclass(frozen=True, slots=True)
class PruneSummary:
    """How many memories of each kind and for each reason were forgotten, and the first 10,000 of them."""

    dry_run: bool
    by_kind: Mapping[str, int]
    by_reason: Mapping[PruneReason, int]
    items: tuple[Pruned, ...]

    @property
    def total(self) -> int:
        """How many memories were forgotten, or in a dry run would be."""
        return sum(self.by_kind.values())

    def __int__(self) -> int:
        return self.total


class Forgotten(int):
    """How many memories were forgotten, or in a dry run would be; `items` says which, and why."""

    summary: PruneSummary

    def __new__(cls, summary: PruneSummary) -> Self:
        made = super().__new__(cls, summary.total)
        made.summary = summary
        return made

    def __getnewargs__(self) -> tuple[PruneSummary]:  # type: ignore[override]
        return (self.summary,)

    @property
    def items(self) -> tuple[Pruned, ...]:
        """The first 10,000 of them, each with its reason."""
        return self.summary.items


class ForgettingEngine:
    """Archives the memories that a policy selects, of any kind.

    It reads the store page by page and archives in small transactions, so other writers do not wait long. A memory that
    was validated, used or pinned in the meantime is kept.
    """

    def __init__(
        self, storage: StorageBackend, policy: PrunePolicy | None = None, archive: Archive | None = None
    ) -> None:
        self.policy = PrunePolicy() if policy is None else checked_policy("forget", policy)
        self._storage = checked_storage("forget", storage)
        self._archive = archive or Archive(storage)

    def prune(
        self,
        scope: Scope,
        policy: PrunePolicy | None = None,
        dry_run: bool = False,
        by: Attribution = ANONYMOUS,
        kinds: Iterable[type[Record]] | type[Record] | None = None,
        progress: Progress | None = None,
        where: Predicate = EVERYTHING,
    ) -> PruneSummary:
        """Forget inside the scope; a dry run returns what and why, and changes nothing.

        Kinds without a field that the scope names are skipped: memories of a project are not an agent's. `where` limits
        the memories. `progress` is called with the number of candidates that were examined, and of all.
        """
        chosen = checked_policy("forget", policy or self.policy)
        run = _Run(self._storage, self._archive, chosen, scope, dry_run, by, progress, where)
        selected = [fields for fields in _chosen_kinds(kinds) if fits(fields.cls, scope)]
        run.judge(selected)
        run.make_room(selected)
        return run.summary()

    def forget(
        self,
        scope: Scope,
        older_than_days: float = 90,
        below_confidence: float = 0.3,
        by: Attribution = ANONYMOUS,
        *,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget outcomes older than that and heuristics with less confidence; returns how many, and which.

        A dry run returns which these would be, and changes nothing.
        """
        policy = PrunePolicy.of_forget(older_than_days, below_confidence)
        return Forgotten(self.prune(scope, policy, dry_run, by))

    def purge(self, retention: timedelta, scope: Scope, by: Attribution = ANONYMOUS) -> int:
        """Delete for good what was forgotten longer ago than the retention; returns how many memories."""
        return self._archive.purge(retention, scope, by, cause=ArchiveCause.FORGOTTEN)


class _Run:
    """One run of forgetting."""

    def __init__(
        self,
        storage: StorageBackend,
        archive: Archive,
        policy: PrunePolicy,
        scope: Scope,
        dry_run: bool,
        by: Attribution,
        progress: Progress | None,
        where: Predicate,
    ) -> None:
        self._storage = storage
        self._where = where
        self._archive = archive
        self._policy = policy
        self._undecayed = policy.without_decay()
        self._decays = DecaySwitch(storage)
        self._scope = scope
        self._dry_run = dry_run
        self._by = by
        self._progress = progress
        self._now = clock.now()
        self._by_kind: Counter[str] = Counter()
        self._by_reason: Counter[PruneReason] = Counter()
        self._items: list[Pruned] = []
        self._seen = 0
        # In a dry run everything is still there when room is made.
        self._dropped: set[tuple[str, str]] = set()

    def judge(self, selected: Sequence[KindFields]) -> None:
        """Forget every memory that the policy selects."""
        candidates = {fields: self._policy.candidates(fields, self._now) for fields in selected}
        wanted = {fields: And(where, self._where) for fields, where in candidates.items() if where != NOTHING}
        total = sum(self._storage.count(fields.cls, self._scope, where) for fields, where in wanted.items())
        for fields, where in wanted.items():
            for page in _pages(self._storage.iterate(fields.cls, self._scope, where, page_size=_PAGE)):
                self._forget(fields, page)
                self._seen += len(page)
                if self._progress is not None:
                    self._progress(self._seen, total)

    def make_room(self, selected: Sequence[KindFields]) -> None:
        """Forget the memories of least value until the rest fits the limits."""
        policy = self._policy
        if policy.max_bytes is None and (policy.max_memories is None or self._count(selected) <= policy.max_memories):
            return
        ranked: list[tuple[float, int, int, str]] = []
        memories = size = 0
        for number, fields in enumerate(selected):
            for record in self._storage.iterate(fields.cls, self._scope, self._where, page_size=_PAGE):
                if (fields.cls.spec.kind, str(record.key)) in self._dropped:
                    continue
                memories, size = memories + 1, size + size_of(record)
                if not is_pinned(record):
                    value = fields.strength(record, self._policy_of(record).decay, self._now)
                    ranked.append((value, number, size_of(record), str(record.key)))
        self._forget_least(selected, sorted(ranked), memories, size)

    def _count(self, selected: Sequence[KindFields]) -> int:
        """How many memories are left."""
        left = sum(self._storage.count(fields.cls, self._scope, self._where) for fields in selected)
        return left - len(self._dropped)

    def _forget_least(
        self,
        selected: Sequence[KindFields],
        ranked: Sequence[tuple[float, int, int, str]],
        memories: int,
        size: int,
    ) -> None:
        policy = self._policy
        leaving: dict[int, list[str]] = defaultdict(list)
        for _, number, weight, key in ranked:
            fewer = policy.max_memories is None or memories <= policy.max_memories
            lighter = policy.max_bytes is None or size <= policy.max_bytes
            if fewer and lighter:
                break
            leaving[number].append(key)
            memories, size = memories - 1, size - weight
        verdict = Verdict(PruneReason.SPACE, "worth least when there was no more room")
        for number, keys in leaving.items():
            fields = selected[number]
            for i in range(0, len(keys), _AT_ONCE):
                self._carry_out(fields, verdict, keys[i : i + _AT_ONCE], lambda record: not is_pinned(record))

    def _forget(self, fields: KindFields, page: Sequence[Record]) -> None:
        under: dict[Verdict, list[str]] = defaultdict(list)
        for record in page:
            verdict = self._verdict(record, fields)
            if verdict is not None:
                under[verdict].append(str(record.key))
        for verdict, keys in under.items():
            self._carry_out(fields, verdict, keys, self._still(fields))

    def _still(self, fields: KindFields) -> Callable[[Record], bool]:
        return lambda record: self._verdict(record, fields) is not None

    def _verdict(self, record: Record, fields: KindFields) -> Verdict | None:
        return self._policy_of(record).verdict(record, fields, self._now)

    def _policy_of(self, record: Record) -> PrunePolicy:
        """The policy, without decay for the memories of users who switched it off."""
        return self._policy if self._decays(record) else self._undecayed

    def _carry_out(
        self, fields: KindFields, verdict: Verdict, keys: Sequence[str], still: Callable[[Record], bool]
    ) -> None:
        kind = fields.cls.spec.kind
        gone = list(keys)
        if self._dry_run:
            self._dropped.update((kind, key) for key in keys)
        else:
            reason_text = f"{verdict.reason}: {verdict.rule}"
            moved = self._archive.put(
                fields.cls, keys, self._scope, ArchiveCause.FORGOTTEN, reason_text, self._by, only_if=still
            )
            if len(moved) < len(keys):
                found = self._storage.get_many(ArchivedRecord, moved, Scope.everywhere())
                gone = [row.record_id for row in found]
        self._by_kind[kind] += len(gone)
        self._by_reason[verdict.reason] += len(gone)
        room = _MOST_LISTED - len(self._items)
        self._items.extend(Pruned(kind, key, verdict.reason, verdict.rule) for key in gone[:room])

    def summary(self) -> PruneSummary:
        return PruneSummary(self._dry_run, dict(+self._by_kind), dict(+self._by_reason), tuple(self._items))


def _pages(records: Iterable[Record]) -> Iterator[list[Record]]:
    page: list[Record] = []
    for record in records:
        page.append(record)
        if len(page) == _AT_ONCE:
            yield page
            page = []
    if page:
        yield page


def size_of(record: Record) -> int:
    """The approximate size of a record: its texts and its vector."""
    name = record.spec.vector_field
    vector = getattr(record, name) if name is not None else None
    return len(record.text().encode()) + (0 if vector is None else 4 * len(vector))


def _chosen_kinds(kinds: Iterable[type[Record]] | type[Record] | None) -> list[KindFields]:
    if kinds is None:
        return list(KIND_FIELDS)
    wanted = list(kinds) if isinstance(kinds, Iterable) else [kinds]
    known = [fields.cls for fields in KIND_FIELDS]
    for cls in wanted:
        if not any(cls is each for each in known):
            raise ValidationError("forget", "kinds", cls, f"must be among {', '.join(c.spec.kind for c in known)}")
    return [fields for fields in KIND_FIELDS if fields.cls in wanted]


MOST_OUTCOMES = 250_000
# Counting takes time in proportion to the number of outcomes. With room left, the next count waits until a part of it
# is filled; without room, until enough new outcomes came to be worth it, or a share of the limit in a small scope.
_LOOK_EVERY = 500
_PART = 8
_ARCHIVE_BATCH = 50
# Twice the number that can have come since the last count, so that a store far above the limit reaches it too.
_MOST_AT_A_LOOK = 1_000
_OLDEST_FIRST = (Order("timestamp"),)


class ForgettingTrigger:
    """Archives the oldest outcomes once there are too many; the rules made from them stay.

    A limited number is archived at each check, so that no call of `learn` waits for a large store.
    """

    def __init__(self, storage: StorageBackend, archive: Archive, most_outcomes: int = MOST_OUTCOMES) -> None:
        if isinstance(most_outcomes, bool) or not isinstance(most_outcomes, int) or most_outcomes < 1:
            wanted = "must be a whole number of at least 1"
            raise ValidationError("learning protocol", "most_outcomes", most_outcomes, wanted)
        self._storage = storage
        self._archive = archive
        self._most = most_outcomes
        self._learned: Counter[Scope] = Counter()
        self._look_after: dict[Scope, int] = {}
        self._lock = threading.Lock()

    def learned(self, scope: Scope) -> int:
        """Count an outcome of this scope; returns how many outcomes were forgotten because of it."""
        with self._lock:
            self._learned[scope] += 1
            # A new process does not know how many outcomes earlier ones stored.
            if self._learned[scope] < self._look_after.get(scope, 1):
                return 0
            self._learned[scope] = 0
        too_many = self._storage.count(Outcome, scope) - self._most
        self._look_after[scope] = max(min(_LOOK_EVERY, self._most // _PART), -too_many // _PART)
        return self._forget(scope, min(too_many, _MOST_AT_A_LOOK)) if too_many > 0 else 0

    def _forget(self, scope: Scope, many: int) -> int:
        oldest = self._storage.values(Outcome, ("id",), scope, order=_OLDEST_FIRST, limit=many)
        ids = [key for (key,) in oldest]
        by = Attribution(reason=f"more than {self._most:,} outcomes")
        reason_text = f"{PruneReason.SPACE}: the oldest when there were too many"
        return sum(
            len(
                self._archive.put(
                    Outcome,
                    ids[i : i + _ARCHIVE_BATCH],
                    scope,
                    ArchiveCause.FORGOTTEN,
                    reason_text,
                    by,
                    only_if=lambda record: not is_pinned(record),
                )
            )
            for i in range(0, len(ids), _ARCHIVE_BATCH)
        )
