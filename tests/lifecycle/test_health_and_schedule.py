"""Health and cleanup: numbers that are true, and work that one process does."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.errors import StorageError, ValidationError
from alma.learning.health import MemoryHealthMonitor
from alma.learning.pruning import ForgettingEngine, PrunePolicy
from alma.learning.schedule import LAST_RUN, LEASE, CleanupScheduler
from alma.memory.archive import Archive
from alma.model.governance import Setting
from alma.model.learning import Outcome
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing.builders import a_heuristic, a_memory, an_outcome, some_knowledge
from tests.lifecycle.conftest import Opener

EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
HOUR = timedelta(hours=1)


def ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


# ---------------------------------------------------------------------- health


def test_a_report_counts_what_is_not_well(store: StorageBackend) -> None:
    old = ago(400)
    store.save_many(
        [
            a_heuristic(created_at=old, last_validated=old, confidence=0.1, strategy="a thing"),
            a_heuristic(last_validated=ago(1), confidence=0.9, embedding=[1, 0, 0, 0], strategy="another thing"),
            a_heuristic(confidence=0.9, strategy="another thing!"),
            a_memory(access_count=0, expires_at=ago(1)),
            a_memory(access_count=3, content="read before"),
            a_memory(project_id="blog"),
        ]
    )
    Archive(store).add(some_knowledge(), "quarantined")
    report = MemoryHealthMonitor(store).report(SHOP)
    rules, memories = report.of("heuristic"), report.of("memory")
    assert (rules.total, rules.stale, rules.never_validated, rules.low_confidence) == (3, 1, 1, 1)
    assert (rules.without_vector, rules.new_last_30_days) == (2, 2)
    assert rules.duplicates_share == pytest.approx(1 / 3)
    assert (memories.total, memories.never_validated, memories.expired) == (2, 1, 1)
    assert (report.total, report.archived, report.quarantined) == (5, 1, 1)
    assert report.never_validated_share == pytest.approx(2 / 5)
    assert report.stale_share == pytest.approx(1 / 5)
    assert report.duplicates_share == pytest.approx(1 / 5)
    assert report.growth_per_day == pytest.approx(4 / 30)
    assert not report.is_healthy
    assert "1 memory records have expired: prune them" in report.recommendations
    assert any("in quarantine" in each for each in report.recommendations)
    assert any("duplicates: consolidate" in each for each in report.recommendations)


def test_an_agent_is_told_of_its_own_kinds_only(store: StorageBackend) -> None:
    store.save_many([an_outcome(agent="victor"), an_outcome(), a_memory()])
    report = MemoryHealthMonitor(store).report(Scope(project_id="shop", agent="helena"))
    assert (report.total, report.of("outcome").total) == (1, 1)
    with pytest.raises(ValidationError, match="must be among"):
        report.of("memory")


def test_an_empty_store_is_healthy(store: StorageBackend) -> None:
    report = MemoryHealthMonitor(store).report(EVERYWHERE)
    assert report.is_healthy
    assert (report.total, report.stale_share, report.duplicates_share, report.growth_per_day) == (0, 0, 0, 0)


def test_too_many_memories_are_reported(store: StorageBackend) -> None:
    store.save_many([an_outcome(embedding=[1, 0, 0, 0]) for _ in range(3)])
    report = MemoryHealthMonitor(store, PrunePolicy(max_memories=2)).report(SHOP)
    assert report.recommendations == ("there are 3 memories, more than the limit of 2: prune them",)


@pytest.mark.parametrize("days", [math.inf, 1e12, 10**400])
def test_what_never_grows_old_is_reported_as_well(store: StorageBackend, days: float) -> None:
    store.save(an_outcome(embedding=[1, 0, 0, 0], timestamp=ago(5_000)))
    policy = PrunePolicy(stale_after_days={"outcome": days}, ttl_days={"outcome": days})
    assert MemoryHealthMonitor(store, policy).report(SHOP).is_healthy


def test_a_report_tells_what_the_policy_would_forget(store: StorageBackend) -> None:
    store.save_many([an_outcome(embedding=[1, 0, 0, 0], timestamp=ago(days)) for days in (1, 20)])
    policy = PrunePolicy(ttl_days={"outcome": 10})
    report = MemoryHealthMonitor(store, policy).report(SHOP)
    assert report.of("outcome").expired == 1 == ForgettingEngine(store, policy).prune(SHOP, dry_run=True).total
    assert report.recommendations == ("1 outcome records have expired: prune them",)


def test_an_invalid_policy_is_refused(store: StorageBackend) -> None:
    with pytest.raises(ValidationError, match="must be a PrunePolicy"):
        MemoryHealthMonitor(store, {"outcome": 90})  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the scheduler


class Hours:
    """A clock that is turned by hand, and waiting that turns it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.waits: list[float] = []
        self.on_wait: Callable[[], bool] = lambda: True

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += timedelta(seconds=seconds)
        return self.on_wait()


def scheduler(store: StorageBackend, clock: Hours, **options: Any) -> CleanupScheduler:
    engine = ForgettingEngine(store)
    return CleanupScheduler(store, engine, **{"interval": HOUR, "now": clock, "wait": clock.wait, **options})


def test_a_cleanup_forgets_and_purges_and_is_noted(store: StorageBackend) -> None:
    store.save_many([an_outcome(timestamp=ago(100)), an_outcome()])
    clock = Hours()
    run = scheduler(store, clock, retention=timedelta(0)).run_once()
    assert run is not None
    assert (run.forgotten, run.purged, run.error, run.started_at) == (1, 1, None, clock.now)
    other = scheduler(store, clock)
    assert other.last_run == run
    assert other.next_run == clock.now + HOUR
    assert store.get(Setting, LEASE, EVERYWHERE) is None
    assert Archive(store).find(EVERYWHERE) == []


def test_without_a_retention_nothing_is_purged(store: StorageBackend) -> None:
    store.save(an_outcome(timestamp=ago(100)))
    scheduler(store, Hours()).run_once()
    assert Archive(store).count(EVERYWHERE) == 1


def test_a_cleanup_that_is_not_due_is_left_out(store: StorageBackend) -> None:
    clock = Hours()
    mine, theirs = scheduler(store, clock), scheduler(store, clock)
    assert mine.last_run is None
    assert mine.next_run == clock.now
    assert mine.run_if_due() is not None
    clock.now += HOUR / 2
    assert theirs.run_if_due() is None
    clock.now += HOUR / 2
    assert theirs.run_if_due() is not None
    assert mine.run_if_due() is None


def test_one_process_at_a_time_cleans_up(opener: Opener) -> None:
    with opener() as one, opener() as two:
        one.save(an_outcome(timestamp=ago(100)))
        clock = Hours()
        attempts: list[object] = []

        class Watched(ForgettingEngine):
            def prune(self, *args: Any, **kwargs: Any) -> Any:
                attempts.append(scheduler(two, clock).run_once())
                return super().prune(*args, **kwargs)

        run = CleanupScheduler(one, Watched(one), HOUR, now=clock).run_once()
        assert run is not None
        assert attempts == [None]
        assert scheduler(two, clock).run_once() is not None


def test_the_lease_of_a_process_that_died_ends(store: StorageBackend) -> None:
    clock = Hours()

    class Killed(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            raise SystemExit

    with pytest.raises(SystemExit):
        CleanupScheduler(store, Killed(store), HOUR, now=clock).run_once()
    other = scheduler(store, clock)
    assert other.run_once() is None
    clock.now += timedelta(minutes=11)
    assert other.run_once() is not None


def test_a_long_cleanup_keeps_its_lease(store: StorageBackend) -> None:
    store.save_many([an_outcome(timestamp=ago(100)) for _ in range(450)])
    clock = Hours()
    attempts: list[object] = []

    class Slow(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            told = kwargs["progress"]

            def progress(done: int, total: int) -> None:
                clock.now += timedelta(minutes=7)
                told(done, total)
                attempts.append(scheduler(store, clock).run_once())

            return super().prune(*args, **{**kwargs, "progress": progress})

    assert CleanupScheduler(store, Slow(store), HOUR, now=clock).run_once() is not None
    assert attempts == [None, None, None]


def test_an_error_is_noted_and_the_next_cleanup_comes(store: StorageBackend) -> None:
    clock = Hours()
    calls: list[int] = []

    class Broken(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) == 1:
                raise StorageError("the disk is on fire")
            return super().prune(*args, **kwargs)

    cleanup = CleanupScheduler(store, Broken(store), HOUR, now=clock, wait=clock.wait)
    clock.on_wait = lambda: len(calls) >= 2
    cleanup.start()
    while cleanup.is_running:
        time.sleep(0.01)
    last = cleanup.last_run
    assert len(calls) == 2
    assert last is not None
    assert last.error is None
    assert sum(clock.waits) >= HOUR.total_seconds()


def test_a_clock_that_was_ahead_does_not_stop_cleanups(store: StorageBackend) -> None:
    clock = Hours()
    clock.now += timedelta(days=3_650)
    assert scheduler(store, clock).run_once() is not None
    clock.now -= timedelta(days=3_650)
    cleanup = scheduler(store, clock)
    assert cleanup.next_run == clock.now
    assert cleanup.run_if_due() is not None
    assert cleanup.next_run == clock.now + HOUR


def test_a_lease_that_was_taken_by_a_clock_ahead_holds_no_one_off(store: StorageBackend) -> None:
    class Killed(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyboardInterrupt

    clock = Hours()
    clock.now += timedelta(days=3_650)
    with pytest.raises(KeyboardInterrupt):
        CleanupScheduler(store, Killed(store), now=clock).run_once()
    clock.now -= timedelta(days=3_650)
    assert scheduler(store, clock).run_once() is not None


def test_clocks_that_differ_by_seconds_are_no_reason_for_two_cleanups(store: StorageBackend) -> None:
    clock = Hours()
    ahead = scheduler(store, clock, now=lambda: clock.now + timedelta(seconds=30))
    assert ahead.run_once() is not None
    assert scheduler(store, clock).run_if_due() is None


def test_each_scope_is_cleaned_up_when_it_is_due(store: StorageBackend) -> None:
    clock = Hours()
    assert scheduler(store, clock, scope=SHOP).run_if_due() is not None
    assert scheduler(store, clock, scope=Scope(project_id="blog")).run_if_due() is not None
    assert scheduler(store, clock, scope=SHOP).run_if_due() is None


@pytest.mark.parametrize("value", ["never", "{}", "[1]", '{"holder": 1, "until": 5}', '{"started_at": "2026-01-01"}'])
def test_a_note_that_cannot_be_read_does_not_stop_cleanups(store: StorageBackend, value: str) -> None:
    store.save_many([Setting(key=key, value=value) for key in (LEASE, LAST_RUN)])
    assert scheduler(store, Hours()).run_if_due() is not None


def test_an_interval_may_be_longer_than_time(store: StorageBackend) -> None:
    cleanup = scheduler(store, Hours(), interval=timedelta.max)
    assert cleanup.run_if_due() is not None
    assert cleanup.run_if_due() is None


def test_a_secret_in_the_error_of_a_cleanup_is_masked(store: StorageBackend) -> None:
    class Broken(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            raise StorageError("cannot reach postgresql://alma:hunter2hunter2@db/alma")

    run = CleanupScheduler(store, Broken(store)).run_once()
    assert run is not None
    assert "hunter2" not in str(run.error)


def test_the_error_of_a_cleanup_can_be_read(store: StorageBackend) -> None:
    class Broken(ForgettingEngine):
        def prune(self, *args: Any, **kwargs: Any) -> Any:
            raise StorageError("the disk is on fire")

    cleanup = CleanupScheduler(store, Broken(store), HOUR)
    run = cleanup.run_once()
    assert run is not None
    assert run.error == "StorageError: the disk is on fire"
    assert cleanup.last_run == run


def test_the_thread_cleans_up_at_once_and_stops_when_told(store: StorageBackend) -> None:
    store.save(an_outcome(timestamp=ago(100)))
    clock = Hours()
    reached, go_on = threading.Event(), threading.Event()

    def wait() -> bool:
        reached.set()
        return go_on.wait(30)

    clock.on_wait = wait
    cleanup = scheduler(store, clock)
    cleanup.start()
    cleanup.start()
    assert reached.wait(30)
    assert cleanup.is_running
    assert store.count(Outcome, EVERYWHERE) == 0
    go_on.set()
    cleanup.stop()
    lives: bool = cleanup.is_running
    assert not lives
    cleanup.stop()


def test_threads_that_start_it_at_once_start_one_thread(store: StorageBackend) -> None:
    cleanup = CleanupScheduler(store, ForgettingEngine(store), HOUR)
    before, ready = set(threading.enumerate()), threading.Barrier(16)

    def start() -> None:
        ready.wait()
        cleanup.start()

    for _ in range(3):
        with ThreadPoolExecutor(16) as pool:
            for _ in range(16):
                pool.submit(start)
        started = [each for each in set(threading.enumerate()) - before if each.name == "alma-cleanup"]
        cleanup.stop()
        assert len(started) == 1


@pytest.mark.parametrize(
    "options", [{"interval": timedelta(0)}, {"interval": 60}, {"retention": timedelta(days=-1)}, {"retention": 3}]
)
def test_times_that_make_no_sense_are_errors(store: StorageBackend, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="timedelta"):
        scheduler(store, Hours(), **options)


def test_a_scope_that_is_none_is_an_error(store: StorageBackend) -> None:
    with pytest.raises(ValidationError, match="must be a Scope"):
        scheduler(store, Hours(), scope="shop")
