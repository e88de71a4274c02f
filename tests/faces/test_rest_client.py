"""The typed client: a round trip over every method, the library's errors, and patience with a service in trouble."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator

import pytest

from alma import ALMA
from alma.client import AsyncClient, Client, ServiceError, ServiceUnreachable
from alma.client_calls import Calls
from alma.errors import ConflictError, NotFoundError, PermissionDeniedError, ValidationError
from alma.model.learning import Outcome
from alma.model.memory import Memory
from alma.operations import operation_named
from tests.faces.rest import key_for, served
from tests.support.http_server import Received, Reply, ScriptedServer


@pytest.fixture
def client(alma: ALMA) -> Iterator[Client]:
    with served(alma) as address, Client(address) as made:
        yield made


def test_a_round_trip(client: Client) -> None:
    for _ in range(3):
        learned = client.learn("helena", "test the form", "success", "wait for it")
    assert isinstance(learned.outcome, Outcome)
    assert "wait for it" in client.retrieve("test the form", agent="helena").prompt
    assert client.recommend("test the form", "helena").strategy == "wait for it"
    kept = client.remember("We chose PostgreSQL", memory_type="decision")
    assert isinstance(kept.memory, Memory)
    assert client.get(kept.memory.id).version == kept.version == 1
    assert client.update(kept.memory.id, title="Store", expected_version=1).memory.title == "Store"
    assert [hit.memory.id for hit in client.search("PostgreSQL", mode="keyword").hits] == [kept.memory.id]
    assert [memory.id for memory in client.list(limit=5).memories] == [kept.memory.id]
    assert "PostgreSQL" in client.context("choose a store").prompt
    assert client.add_preference("ana", "style", "no emoji").preference.preference == "no emoji"
    assert client.add_knowledge("helena", "login", "it uses JWT").knowledge.fact == "it uses JWT"
    session = client.create_session("work").session
    assert client.end_session(session.id, summary="done").session.is_active is False
    assert client.delete(kept.memory.id)
    assert not client.delete(kept.memory.id)
    assert client.stats().counts["outcomes_count"] == 3
    assert client.call("health")["status"] == "ok"


def test_errors_are_those_of_the_library(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no memory with id 'nothing'") as missing:
        client.get("nothing")
    assert (missing.value.kind, missing.value.record_id) == ("memory", "nothing")
    with pytest.raises(ValidationError, match="top_k") as wrong:
        client.retrieve("task", "helena", top_k=0)
    assert wrong.value.field == "top_k"
    kept = client.remember("x")
    with pytest.raises(ConflictError, match="version"):
        client.update(kept.memory.id, title="y", expected_version=9)
    with pytest.raises(NotFoundError):
        client.call("no_such_operation")


def test_a_key_goes_along_and_its_limits_are_errors(alma: ALMA) -> None:
    token = key_for(alma, "read", project_id="shop")
    with served(alma) as address:
        with Client(address, token) as client:
            assert client.stats().project_id == "shop"
            with pytest.raises(PermissionDeniedError, match="right to write"):
                client.remember("x")
        with Client(address, "alma_wrong") as stranger, pytest.raises(PermissionDeniedError, match="unknown"):
            stranger.stats()


def test_events_are_told_as_they_happen(client: Client) -> None:
    kept = client.remember("before")
    told: list[str] = []
    events = client.events()

    def write_when_open() -> None:
        for number in range(100):
            if done.wait(0.05):
                return
            client.remember(f"number {number}")

    done = threading.Event()
    writer = threading.Thread(target=write_when_open)
    writer.start()
    event = next(events)
    done.set()
    writer.join()
    told.append(event.memory_id)
    assert kept.memory.id not in told
    assert event.memory_type == "memory"
    last = client.remember("the last one").memory.id
    assert any(each.memory_id == last for each in client.events(since=event.id))


def test_the_same_is_awaited(alma: ALMA) -> None:
    async def main(address: str) -> str:
        async with AsyncClient(address) as client:
            await client.remember("awaited")
            page = await client.list()
            return str(page.memories[0].content)

    with served(alma) as address:
        assert asyncio.run(main(address)) == "awaited"


class _Troubled(ScriptedServer):
    def respond(self, request: Received) -> Reply:
        return Reply(body=b'{"outcome": {}}')


BUSY = Reply(503, b'{"error": {"code": "storage_error", "message": "busy", "request_id": "1"}}')


def test_a_write_is_tried_again_under_the_same_name() -> None:
    with _Troubled() as server, Client(server.url, backoff_seconds=0.001) as client:
        server.script.extend([BUSY, Reply(429, BUSY.body, {"Retry-After": "0"})])
        client.call("learn", agent="a", task="t", outcome="success", strategy_used="s")
        names = {request.headers["idempotency-key"] for request in server.received}
        assert (len(server.received), len(names)) == (3, 1)
        client.call("learn", agent="a", task="t", outcome="success", strategy_used="s")
        assert server.received[-1].headers["idempotency-key"] not in names


def test_after_some_tries_the_last_error_is_raised() -> None:
    from alma.errors import StorageError

    with _Troubled() as server, Client(server.url, attempts=2, backoff_seconds=0.001) as client:
        server.script.extend([BUSY, BUSY])
        with pytest.raises(StorageError, match="busy"):
            client.stats()


def test_another_service_is_not_taken_for_this_one() -> None:
    with _Troubled() as server, Client(server.url) as client:
        server.script.append(Reply(404, b"<html>"))
        with pytest.raises(ServiceError, match="without an ALMA error"):
            client.stats()


def test_a_service_that_is_not_there_is_named() -> None:
    with (
        Client("http://127.0.0.1:9", attempts=2, backoff_seconds=0.001) as client,
        pytest.raises(ServiceUnreachable, match=r"http://127.0.0.1:9 did not answer.*tried 2 times"),
    ):
        client.stats()


def test_every_argument_of_an_operation_is_a_keyword_of_its_method() -> None:
    names = {
        "remember": "create_memory",
        "get": "get_memory",
        "update": "update_memory",
        "delete": "delete_memory",
        "list": "list_memories",
        "search": "search_memories",
        "context": "get_context",
    }
    methods = [name for name in vars(Calls) if not name.startswith("_") and name != "call"]
    assert len(methods) > 10
    for name in methods:
        taken = set(inspect.signature(getattr(Client, name)).parameters) - {"self"}
        assert taken == set(operation_named(names.get(name, name)).input.model_fields), name
