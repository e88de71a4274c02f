"""Health: statistics about the memories of a store, and recommendations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from alma import clock
from alma.errors import ValidationError
from alma.ingest.deduplication import canonical_text
from alma.learning.policy import KIND_FIELDS, NOTHING, KindFields, PrunePolicy, checked_policy, fits
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.learning import Outcome
from alma.model.memory import Memory
from alma.model.query import And, Compare, Missing, Order, Predicate
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

_SAMPLE = 500
_FEW = 20
_DAYS = 30


@dataclass(frozen=True, slots=True)
class KindHealth:
    """Statistics of one kind.

    `duplicates_share` is of the newest 500. `never_validated` are rules that were never tried and general memories that
    were never read.
    """

    kind: str
    total: int
    stale: int
    never_validated: int
    low_confidence: int
    expired: int
    without_vector: int
    duplicates_share: float
    new_last_30_days: int

    def share(self, count: int) -> float:
        """The share of a count in all."""
        return count / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Statistics of every kind, and recommendations."""

    kinds: tuple[KindHealth, ...]
    archived: int
    quarantined: int
    taken_at: datetime
    recommendations: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many memories there are."""
        return sum(each.total for each in self.kinds)

    @property
    def growth_per_day(self) -> float:
        """How many memories were added per day in the last month, without those that are gone."""
        return sum(each.new_last_30_days for each in self.kinds) / _DAYS

    @property
    def stale_share(self) -> float:
        return _share(sum(each.stale for each in self.kinds), self.total)

    @property
    def never_validated_share(self) -> float:
        return _share(sum(each.never_validated for each in self.kinds), self.total)

    @property
    def duplicates_share(self) -> float:
        weighted = sum(each.duplicates_share * each.total for each in self.kinds)
        return weighted / self.total if self.total else 0.0

    @property
    def is_healthy(self) -> bool:
        """Whether there are no recommendations."""
        return not self.recommendations

    def of(self, kind: str) -> KindHealth:
        """The health of one kind."""
        found = next((each for each in self.kinds if each.kind == kind), None)
        if found is None:
            raise ValidationError("health", "kind", kind, f"must be among {', '.join(e.kind for e in self.kinds)}")
        return found


class MemoryHealthMonitor:
    """Reports the health of memories from counts of the store, which are fast in large stores as well."""

    def __init__(self, storage: StorageBackend, policy: PrunePolicy | None = None) -> None:
        self._storage = checked_storage("health", storage)
        self._policy = PrunePolicy() if policy is None else checked_policy("health", policy)

    def report(self, scope: Scope) -> HealthReport:
        """The health of the memories inside the scope."""
        now = clock.now()
        with self._storage.snapshot() as tx:
            kinds = tuple(self._examined(tx, fields, scope, now) for fields in KIND_FIELDS if fits(fields.cls, scope))
            archived = tx.count(ArchivedRecord, scope)
            quarantined = tx.count(ArchivedRecord, scope, Compare("cause", "eq", ArchiveCause.QUARANTINED))
        advice = (*_advice(kinds, self._policy), *_about_archive(archived, quarantined))
        return HealthReport(kinds, archived, quarantined, now, advice)

    def _examined(self, tx: Transaction, fields: KindFields, scope: Scope, now: datetime) -> KindHealth:
        cls, policy = fields.cls, self._policy

        def count(where: Predicate) -> int:
            return 0 if where == NOTHING else tx.count(cls, scope, where)

        return KindHealth(
            kind=cls.spec.kind,
            total=count(And()),
            stale=count(policy.stale(fields, now)),
            never_validated=count(_never_validated(fields)),
            low_confidence=count(policy.below_confidence(fields)),
            expired=count(policy.past_ttl(fields, now)),
            without_vector=tx.count_without_vector(cls, tx.embedding_model, scope),
            duplicates_share=0.0 if cls is Outcome else _duplicates_share(tx, fields, scope),
            new_last_30_days=count(fields.created_since(now - timedelta(days=_DAYS))),
        )


def _never_validated(fields: KindFields) -> Predicate:
    if fields.cls is Memory:
        return Compare("access_count", "eq", 0)
    return Missing(fields.used) if fields.used != fields.created else NOTHING


def _duplicates_share(tx: Transaction, fields: KindFields, scope: Scope) -> float:
    newest = tx.find(fields.cls, scope, order=(Order(fields.created, "desc"),), limit=_SAMPLE)
    if not newest:
        return 0.0
    owners = ("user_id", "project_id", "session_id", "agent")
    different = {(canonical_text(record), *(getattr(record, name, None) for name in owners)) for record in newest}
    return 1.0 - len(different) / len(newest)


def _advice(kinds: tuple[KindHealth, ...], policy: PrunePolicy) -> Iterator[str]:
    for each in kinds:
        if each.expired:
            yield f"{each.expired:,} {each.kind} records have expired: prune them"
        if each.stale >= _FEW or (each.stale and each.share(each.stale) > 0.2):
            yield f"{each.stale:,} of {each.total:,} {each.kind} records are stale: prune them or validate them again"
        if each.low_confidence and each.share(each.low_confidence) > 0.2:
            least = policy.min_confidence[each.kind]
            yield f"{each.low_confidence:,} {each.kind} records are trusted less than {least:g}: prune them"
        if each.duplicates_share > 0.1:
            yield f"{each.duplicates_share:.0%} of the newest {each.kind} records are duplicates: consolidate them"
        if each.without_vector and each.share(each.without_vector) > 0.01:
            yield f"{each.without_vector:,} {each.kind} records have no vector: run  alma reembed"
    total = sum(each.total for each in kinds)
    if policy.max_memories is not None and total > policy.max_memories:
        yield f"there are {total:,} memories, more than the limit of {policy.max_memories:,}: prune them"


def _about_archive(archived: int, quarantined: int) -> Iterator[str]:
    if quarantined:
        yield f"{quarantined:,} records are in quarantine: look at them and release or purge them"
    if archived - quarantined > 100_000:
        yield f"{archived:,} records are in the archive: purge what is past its retention"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
