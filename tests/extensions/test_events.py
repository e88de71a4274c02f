"""Who is told when memories change, and what happens when they fail."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.bootstrap import open_storage
from alma.core import ALMA
from alma.errors import ValidationError
from alma.events import EventEmitter, MemoryEvent, MemoryEventType, get_emitter
from alma.memory.archive import Archive
from alma.model.governance import Attribution
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make

SHOP = Scope(project_id="shop")


@pytest.fixture
def emitter() -> Iterator[EventEmitter]:
    with EventEmitter() as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StorageBackend]:
    """One store stands for all: that each tells of its commits is part of the storage contract."""
    with open_storage(str(tmp_path / "alma.db")) as storage:
        yield storage


@pytest.fixture
def told(emitter: EventEmitter, store: StorageBackend) -> list[MemoryEvent]:
    """Every event of the store, from the start of the test."""
    events: list[MemoryEvent] = []
    emitter.watch(store)
    emitter.subscribe_all(events.append)
    return events


def an_event(event_type: str = "created") -> MemoryEvent:
    return MemoryEvent(MemoryEventType(event_type), "heuristic", "h1", project_id="shop")


def summary(events: list[MemoryEvent]) -> list[tuple[str, str, str]]:
    return [(str(event.event_type), event.memory_type, event.memory_id) for event in events]


# ---------------------------------------------------------------------- where events come from


def test_every_kind_of_write_is_told_once_and_in_order(store: StorageBackend, told: list[MemoryEvent]) -> None:
    store.save_heuristic(make.a_heuristic(id="h1"))
    store.batch_save_outcomes([make.an_outcome(id="o1"), make.an_outcome(id="o2")])
    store.update_heuristic("h1", {"confidence": 0.5})
    store.increment_heuristic_occurrence("h1", success=True)
    store.delete_outcome("o1")
    assert summary(told) == [
        ("created", "heuristic", "h1"),
        ("created", "outcome", "o1"),
        ("created", "outcome", "o2"),
        ("updated", "heuristic", "h1"),
        ("updated", "heuristic", "h1"),
        ("deleted", "outcome", "o1"),
    ]


def test_an_event_says_whose_the_memory_is_and_who_wrote_it(store: StorageBackend, told: list[MemoryEvent]) -> None:
    store.save(make.a_memory(id="m1", session_id="s1"), Attribution(user_id="ben", reason="tidying up"))
    event = told[0]
    assert (event.project_id, event.user_id, event.session_id) == ("shop", "ana", "s1")
    assert (event.author, event.reason) == ("ben", "tidying up")


def test_what_is_deleted_along_is_told_too(store: StorageBackend, told: list[MemoryEvent]) -> None:
    first, second = make.a_memory(id="m1"), make.a_memory(id="m2")
    store.save_many([first, second])
    store.save(make.a_relationship(first, second, id="r1"))
    told.clear()
    store.delete(type(first), ["m1"], SHOP)
    assert sorted(summary(told)) == [("deleted", "memory", "m1"), ("deleted", "memory_relationship", "r1")]


def test_watching_twice_tells_once_and_unwatching_tells_nothing(
    emitter: EventEmitter, store: StorageBackend, told: list[MemoryEvent]
) -> None:
    end = emitter.watch(store)
    store.save(make.a_heuristic())
    assert len(told) == 1
    end()
    store.save(make.a_heuristic())
    assert len(told) == 1


def test_a_store_is_listened_to_only_while_someone_is_subscribed(emitter: EventEmitter, store: StorageBackend) -> None:
    emitter.watch(store)
    listening = [len(store._listeners)]
    end = emitter.subscribe("created", lambda _: None)
    listening.append(len(store._listeners))
    end()
    listening.append(len(store._listeners))
    assert listening == [0, 1, 0]


def test_a_watched_store_is_not_kept_alive(emitter: EventEmitter, tmp_path: Path) -> None:
    emitter.subscribe_all(lambda _: None)
    store = open_storage(f"{tmp_path}/short.db")
    emitter.watch(store)
    store.close()
    alive = weakref.ref(store)
    del store
    gc.collect()
    assert alive() is None


def test_a_handler_may_write_to_the_store_it_hears_of(emitter: EventEmitter, store: StorageBackend) -> None:
    emitter.watch(store)
    emitter.subscribe("deleted", lambda event: store.save(make.some_knowledge(fact=f"{event.memory_id} is gone")))
    store.save(make.a_heuristic(id="h1"))
    store.delete_heuristic("h1")
    assert [fact.fact for fact in store.get_domain_knowledge("shop")] == ["h1 is gone"]


def test_what_goes_to_the_archive_and_comes_back_is_told_as_that(
    store: StorageBackend, told: list[MemoryEvent]
) -> None:
    store.save(make.a_heuristic(id="h1"))
    archive = Archive(store)
    archive.put(Heuristic, "h1", SHOP)
    archive.restore("h1", SHOP)
    assert [str(event.event_type) for event in told] == ["created", "archived", "restored"]


# ---------------------------------------------------------------------- subscribing


def test_a_subscription_gets_only_its_types(emitter: EventEmitter) -> None:
    deleted: list[MemoryEvent] = []
    changed: list[MemoryEvent] = []
    emitter.subscribe(MemoryEventType.DELETED, deleted.append)
    emitter.subscribe(["created", "updated"], changed.append)
    for event_type in ("created", "updated", "deleted"):
        emitter.emit(an_event(event_type))
    assert [str(event.event_type) for event in deleted] == ["deleted"]
    assert [str(event.event_type) for event in changed] == ["created", "updated"]


def test_unsubscribing_says_whether_there_was_something_to_end(emitter: EventEmitter) -> None:
    seen: list[MemoryEvent] = []
    handler = seen.append
    emitter.subscribe("created", handler)
    emitter.subscribe_all(handler)
    assert emitter.unsubscribe("created", handler)
    assert not emitter.unsubscribe("created", handler)
    assert emitter.unsubscribe_all(handler)
    emitter.emit(an_event())
    assert seen == []
    assert not emitter.has_subscribers


def test_an_unknown_type_and_something_that_cannot_be_called_are_refused(emitter: EventEmitter) -> None:
    with pytest.raises(ValidationError, match=r"event.event_type must be one of created, updated, deleted"):
        emitter.subscribe("vanished", print)
    with pytest.raises(ValidationError, match="subscribe_all takes them all"):
        emitter.subscribe([], print)
    with pytest.raises(ValidationError, match="must be a function"):
        emitter.subscribe("created", "print")  # type: ignore[arg-type]


def test_a_failing_handler_is_logged_and_the_next_one_still_runs(
    emitter: EventEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[MemoryEvent] = []

    def fail(_: MemoryEvent) -> None:
        raise RuntimeError("no")

    emitter.subscribe("created", fail)
    emitter.subscribe("created", seen.append)
    emitter.emit(an_event())
    assert len(seen) == 1
    assert "a handler of events failed" in caplog.text


def test_a_background_handler_runs_on_another_thread_in_order(emitter: EventEmitter) -> None:
    seen: list[tuple[str, bool]] = []

    def note(event: MemoryEvent) -> None:
        seen.append((event.memory_id, threading.current_thread() is threading.main_thread()))

    emitter.subscribe("created", note, background=True)
    for number in range(50):
        emitter.emit(MemoryEvent(MemoryEventType.CREATED, "heuristic", f"h{number}"))
    assert emitter.drain()
    assert seen == [(f"h{number}", False) for number in range(50)]


def test_a_failing_background_handler_does_not_end_the_thread(
    emitter: EventEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[MemoryEvent] = []

    def fail_once(event: MemoryEvent) -> None:
        seen.append(event)
        if len(seen) == 1:
            raise RuntimeError("no")

    emitter.subscribe("created", fail_once, background=True)
    emitter.emit(an_event())
    emitter.emit(an_event())
    assert emitter.drain()
    assert len(seen) == 2
    assert "a handler of events failed" in caplog.text


def test_a_coroutine_handler_runs_without_an_event_loop(emitter: EventEmitter) -> None:
    seen: list[str] = []

    async def note(event: MemoryEvent) -> None:
        await asyncio.sleep(0)
        seen.append(event.memory_id)

    emitter.subscribe("created", note)
    emitter.emit(an_event())
    assert emitter.drain()
    assert seen == ["h1"]


def test_a_coroutine_handler_runs_on_the_loop_it_was_subscribed_in(emitter: EventEmitter) -> None:
    async def main() -> bool:
        here = asyncio.get_running_loop()
        was_here: asyncio.Future[bool] = here.create_future()

        async def note(_: MemoryEvent) -> None:
            was_here.set_result(asyncio.get_running_loop() is here)

        emitter.subscribe("created", note)
        await asyncio.to_thread(emitter.emit, an_event())
        return await asyncio.wait_for(was_here, 5)

    assert asyncio.run(main())


def test_a_coroutine_handler_whose_loop_is_gone_is_logged(
    emitter: EventEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    async def note(_: MemoryEvent) -> None:
        raise AssertionError("there is no loop to run in")

    async def subscribe() -> None:
        emitter.subscribe("created", note)

    asyncio.run(subscribe())
    emitter.emit(an_event())
    assert emitter.drain()
    assert "a handler of events failed" in caplog.text


def test_events_beyond_the_queue_are_dropped_and_counted_and_the_writer_does_not_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entered, let_go = threading.Event(), threading.Event()
    seen: list[MemoryEvent] = []

    def hold(event: MemoryEvent) -> None:
        seen.append(event)
        entered.set()
        let_go.wait(10)

    with EventEmitter(queue_size=2) as emitter:
        emitter.subscribe("created", hold, background=True)
        emitter.emit(an_event())
        assert entered.wait(10)
        for _ in range(5):
            emitter.emit(an_event())
        assert emitter.dropped == 3
        let_go.set()
    assert len(seen) == 3
    assert "an event was dropped" in caplog.text


def test_closing_handles_what_is_queued_and_then_tells_no_one() -> None:
    seen: list[MemoryEvent] = []
    emitter = EventEmitter()
    emitter.subscribe_all(seen.append, background=True)
    for _ in range(20):
        emitter.emit(an_event())
    emitter.close()
    emitter.emit(an_event())
    assert len(seen) == 20


def test_a_process_that_ends_tells_what_waits(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from alma.events import MemoryEvent, get_emitter

def note(event):
    with Path({str(tmp_path / "told")!r}).open("a") as file:
        file.write(event.memory_id)

get_emitter().subscribe("created", note, background=True)
for number in range(5):
    get_emitter().emit(MemoryEvent("created", "heuristic", str(number)))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "told").read_text() == "01234"


def test_the_shared_emitter_is_one_and_hears_of_what_any_alma_learns(tmp_path: Path) -> None:
    told: list[MemoryEvent] = []
    assert get_emitter() is get_emitter()
    end = get_emitter().subscribe_all(told.append)
    with ALMA.quickstart(tmp_path / "quick.db", "shop", embedding_provider="mock") as alma:
        alma.learn("helena", "test the form", "success", "field by field")
        end()
        alma.learn("helena", "test the form", "success", "field by field")
    assert summary(told) == [("created", "outcome", told[0].memory_id)]
    assert (told[0].agent, told[0].project_id) == ("helena", "shop")


def test_an_event_becomes_json_without_the_text_of_the_memory(store: StorageBackend, told: list[MemoryEvent]) -> None:
    store.save(make.a_heuristic(id="h1", strategy="whisper the password"))
    document = told[0].to_dict()
    assert document["event_type"] == "created"
    assert document["memory_id"] == "h1"
    assert "whisper" not in str(document)
