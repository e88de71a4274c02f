"""Server-sent events: changes of any process, in order, of what the key may see, from where a client left off."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from alma import ALMA
from alma.access import ApiKeys
from alma.model.governance import Attribution
from tests.faces.rest import all_at_once, client_of, key_for, memory_at, on_both_stores, served

Event = dict[str, Any]


@contextmanager
def stream(
    address: str, token: str | None = None, since: str | None = None, **params: str
) -> Iterator[Iterator[Event]]:
    """The events of a stream, each with the id to go on behind; it is open when this begins."""
    headers = {} if since is None else {"Last-Event-ID": since}
    with client_of(address, token) as client, client.stream("GET", "/v1/events", headers=headers, params=params) as got:
        assert got.status_code == 200, got.read()
        assert got.headers["content-type"].startswith("text/event-stream")
        lines = got.iter_lines()
        assert next(lines).startswith("retry")
        yield blocks(lines)


def blocks(lines: Iterator[str]) -> Iterator[Event]:
    event: Event = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "data":
            event.update(json.loads(value))
        elif name in ("id", "event"):
            event[f"sse_{name}"] = value
        elif not line:
            if "memory_id" in event:
                yield event
            event = {}


@on_both_stores
def test_a_client_is_told_what_happens_to_a_memory(alma: ALMA) -> None:
    with served(alma) as address, stream(address) as events, client_of(address) as client:
        memory = client.post("/v1/memories", json={"content": "first"}).json()["memory"]
        client.patch(f"/v1/memories/{memory['id']}", json={"content": "second"})
        client.delete(f"/v1/memories/{memory['id']}?hard=true")
        told = [next(events) for _ in range(3)]
    assert [event["event_type"] for event in told] == ["created", "updated", "deleted"]
    assert {event["memory_id"] for event in told} == {memory["id"]}
    assert {event["project_id"] for event in told} == {"shop"}
    assert all(event["sse_event"] == event["event_type"] for event in told)
    assert "first" not in json.dumps(told)


@on_both_stores
def test_what_another_process_did_is_told_too(alma: ALMA, place: str) -> None:
    with served(alma) as address, stream(address) as events, memory_at(place) as other:
        kept = other.journal.create("from elsewhere", project_id="shop")
        assert next(events)["memory_id"] == kept.id
        other.learn("helena", "test the form", "success", "wait")
        assert next(events)["memory_type"] == "outcome"


def test_a_client_that_comes_back_misses_nothing(alma: ALMA) -> None:
    made = []
    with served(alma) as address:
        with stream(address) as events:
            made.append(alma.journal.create("one", project_id="shop").id)
            first = next(events)
        made += [alma.journal.create(f"number {n}", project_id="shop").id for n in range(5)]
        with stream(address, since=first["sse_id"]) as events:
            told = [next(events)["memory_id"] for _ in range(5)]
        assert [first["memory_id"], *told] == made


@on_both_stores
def test_writers_that_come_together_are_all_told_of_once(alma: ALMA) -> None:
    with served(alma) as address, stream(address) as events:
        made = all_at_once(12, lambda n: [alma.journal.create(f"{n} {m}", project_id="shop").id for m in range(3)])
        wanted = sorted(key for each in made for key in each)
        assert sorted(next(events)["memory_id"] for _ in wanted) == wanted


def test_a_key_is_told_only_of_what_it_may_see(alma: ALMA) -> None:
    tokens = {
        "project": key_for(alma, "read", project_id="shop"),
        "user": key_for(alma, "read", user_id="ana", project_id="shop"),
        "agent": key_for(alma, "read", project_id="shop", agent="helena"),
    }
    heard: dict[str, list[str]] = {}
    with served(alma) as address:

        def listen(name: str) -> None:
            with stream(address, tokens[name]) as events:
                ready.wait()
                for event in events:
                    heard.setdefault(name, []).append(event["memory_id"])
                    if event["memory_id"] == last:
                        return

        ready = threading.Barrier(4)
        last = "the-last-one"
        threads = [threading.Thread(target=listen, args=(name,)) for name in tokens]
        for thread in threads:
            thread.start()
        ready.wait()
        for number, (project, user, agent) in enumerate(
            [("bank", "ana", "helena"), ("shop", "bo", "victor"), ("shop", "ana", "victor"), ("shop", "bo", "helena")]
        ):
            by = Attribution(user_id=user, agent=agent)
            alma.journal.create(f"memory {number}", by=by, project_id=project, id=f"memory-{number}")
        private = Attribution(user_id="bo")
        alma.journal.create("secret", by=private, project_id="shop", id="private", is_private=True)
        by = Attribution(user_id="ana", agent="helena")
        alma.journal.create("the end", by=by, project_id="shop", id=last)
        for thread in threads:
            thread.join(30)
    assert heard["project"] == ["memory-1", "memory-2", "memory-3", last]
    assert heard["user"] == ["memory-2", last]
    assert heard["agent"] == ["memory-3", last]


def test_a_stream_ends_when_its_key_is_revoked(alma: ALMA) -> None:
    token = key_for(alma, "read")
    with served(alma) as address, stream(address, token) as events:
        ApiKeys(alma.storage).revoke(ApiKeys(alma.storage).list_all()[0].id)
        assert list(events) == []


def test_a_silent_stream_says_that_it_is_still_there(alma: ALMA) -> None:
    with (
        served(alma, heartbeat_seconds=0.1) as address,
        client_of(address) as client,
        client.stream("GET", "/v1/events") as got,
    ):
        assert any(line == ": still here" for line in got.iter_lines())


def test_streams_end_when_the_service_stops(alma: ALMA) -> None:
    with served(alma) as address:
        client = client_of(address)
        got = client.send(client.build_request("GET", "/v1/events"), stream=True)
    assert got.status_code == 200
    assert got.read()
    client.close()


def test_no_more_streams_are_opened_than_there_may_be(alma: ALMA, caplog: pytest.LogCaptureFixture) -> None:
    with served(alma, max_streams=1) as address, stream(address), client_of(address) as client:
        answer = client.get("/v1/events")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    # A refusal is one line in the log, without a traceback.
    assert "\n" not in caplog.text.strip()
    assert "too many streams are open" in caplog.text


@pytest.mark.parametrize("wrong", ["x", "1.2", "1.2.3-", "9" * 9000, "1.2.3-x"])
def test_an_id_that_no_event_has_is_refused(alma: ALMA, wrong: str) -> None:
    with served(alma) as address, client_of(address) as client:
        answer: httpx.Response = client.get("/v1/events", headers={"Last-Event-ID": wrong})
        assert answer.status_code == 422


def test_events_need_the_right_to_read(alma: ALMA) -> None:
    with served(alma) as address, client_of(address, key_for(alma, "write")) as client:
        assert client.get("/v1/events").status_code == 403
