"""The metrics of the service in the Prometheus format: requests, what the store holds, and the engines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.sync.results import EngineStatus

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


_ENGINE_GAUGES = {
    "up": "1 for an engine that the last attempt reached, 0 for another.",
    "lag_seconds": "Age of the oldest change that has not reached an engine.",
    "pending": "Changes that have not reached an engine.",
    "parked": "Records that failed too often and wait for alma sync retry-parked.",
    "verified_timestamp_seconds": "Time of the last verification of an engine.",
    "issues": "Issues that the last verification of an engine found.",
}


Counts = Mapping[tuple[str, str], int]
_Counted = Mapping[str, tuple[type[Record], Predicate]]

_ALIVE = And(Compare("is_active", "eq", True), Compare("is_archived", "eq", False))
_OF_ALL: _Counted = {
    "memory": (Memory, _ALIVE),
    "domain_knowledge": (DomainKnowledge, EVERYTHING),
    "user_preference": (UserPreference, EVERYTHING),
}
_OF_OUTCOMES: _Counted = {
    "success": (Outcome, Compare("success", "eq", True)),
    "failure": (Outcome, Compare("success", "eq", False)),
}
_OF_LESSONS: _Counted = {"rule": (Heuristic, EVERYTHING), "warning": (AntiPattern, EVERYTHING)}
_OF_ARCHIVE: _Counted = {cause: (ArchivedRecord, Compare("cause", "eq", cause)) for cause in ArchiveCause}
_QUARANTINED: _Counted = {"": _OF_ARCHIVE[ArchiveCause.QUARANTINED]}

_STORE_GAUGES: Mapping[str, tuple[str, tuple[str, ...], _Counted]] = {
    "alma_memories": ("Memories, facts and preferences in use.", ("kind",), _OF_ALL),
    "alma_lessons": ("Learned rules, and warnings of what failed.", ("type",), _OF_LESSONS),
    "alma_outcomes": ("Outcomes of tasks that were learned from.", ("outcome",), _OF_OUTCOMES),
    "alma_archived": ("Records in the archive.", ("cause",), _OF_ARCHIVE),
    "alma_quarantined": ("Texts from untrusted sources that wait for a review.", (), _QUARANTINED),
}


class Metrics:
    """The metrics of one service; labels are routes, never values from a request."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        on = self._registry
        self.count = 0
        self._requests = Counter(
            "alma_requests_total", "Requests answered.", ("method", "route", "status"), registry=on
        )
        self._seconds = Histogram(
            "alma_request_seconds", "Request duration.", ("method", "route"), buckets=_SECONDS, registry=on
        )
        self._errors = Counter("alma_errors_total", "Error responses by code.", ("code",), registry=on)
        self.running = Gauge("alma_requests_running", "Requests in progress.", registry=on)
        self.streams = Gauge("alma_event_streams", "Open event streams.", registry=on)
        self._engines = {
            name: Gauge(f"alma_sync_{name}", said, ("engine",), registry=on) for name, said in _ENGINE_GAUGES.items()
        }
        self._store = {
            name: Gauge(name, said, labels, registry=on) for name, (said, labels, _) in _STORE_GAUGES.items()
        }

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        self.count += 1
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def failed(self, code: str) -> None:
        """Count an error response by its code."""
        self._errors.labels(code).inc()

    def engines(self, found: Sequence[EngineStatus]) -> None:
        """Set the gauges of the engines beside the store."""
        for gauge in self._engines.values():
            gauge.clear()
        for each in found:
            self._engines["up"].labels(each.engine).set(each.problem is None)
            self._engines["lag_seconds"].labels(each.engine).set(each.lag_seconds)
            self._engines["pending"].labels(each.engine).set(each.pending)
            self._engines["parked"].labels(each.engine).set(each.parked)
            if each.verified is not None:
                self._engines["verified_timestamp_seconds"].labels(each.engine).set(each.verified.at.timestamp())
                self._engines["issues"].labels(each.engine).set(each.verified.issues)

    def store(self, counted: Counts) -> None:
        """Set the gauges of the store's contents."""
        for (name, label), number in counted.items():
            gauge = self._store[name]
            (gauge.labels(label) if label else gauge).set(number)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)


def count(storage: StorageBackend) -> Counts:
    """The contents of the store, for all projects and users."""
    return {
        (name, label): storage.count(cls, Scope.everywhere(), where)
        for name, (_, _, counted) in _STORE_GAUGES.items()
        for label, (cls, where) in counted.items()
    }
