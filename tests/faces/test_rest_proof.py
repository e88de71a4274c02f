"""Proof: many clients, a power cut, garbage on the wire, and a tool that tries what the document allows."""

from __future__ import annotations

import errno
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from alma import ALMA
from alma.model.learning import Outcome
from alma.model.scope import Scope
from tests.faces.rest import all_at_once, client_of, memory_at, on_both_stores, served, server_process
from tests.support.examples import examples

EVERYWHERE = Scope.everywhere()
BODY = {"agent": "helena", "task": "test the form", "outcome": "success", "strategy_used": "wait"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with memory_at(tmp_path_factory.mktemp("rest") / "alma.db") as alma, served(alma) as where:
        yield where


# ---------------------------------------------------------------------- many clients


@on_both_stores
def test_fifty_clients_read_and_write_without_an_error(place: str) -> None:
    with memory_at(place) as alma, served(alma) as address:

        def work(number: int) -> list[int]:
            statuses = []
            with client_of(address) as client:
                for turn in range(2):
                    kept = client.post("/v1/memories", json={"content": f"client {number} turn {turn}"})
                    found = client.get(kept.headers["location"])
                    asked = client.post("/v1/retrieve", json={"agent": f"a{number}", "task": f"turn {turn}"})
                    statuses += [kept.status_code, found.status_code, asked.status_code]
                    assert found.json()["memory"]["content"] == f"client {number} turn {turn}"
            return statuses

        statuses = [status for each in all_at_once(50, work) for status in each]
        assert set(statuses) == {200, 201}
        assert len(statuses) == 50 * 2 * 3


@on_both_stores
def test_after_a_power_cut_every_acknowledged_write_is_there(place: str) -> None:
    acknowledged: list[str] = []
    with server_process(place) as server:

        def write() -> None:
            with client_of(server.address) as client:
                while True:
                    try:
                        answer = client.post("/v1/learn", json=BODY)
                    except httpx.TransportError:
                        return
                    acknowledged.append(answer.json()["outcome"]["id"])

        threads = [threading.Thread(target=write) for _ in range(6)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 30:
            time.sleep(0.01)
        server.kill()
        for thread in threads:
            thread.join()
    with memory_at(place) as alma:
        there = {record.id for record in alma.storage.find(Outcome, EVERYWHERE)}
    assert set(acknowledged) <= there


# ---------------------------------------------------------------------- garbage


def sent_raw(address: str, data: bytes) -> bytes:
    """What comes back when these bytes are sent and the rest never comes."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname or "", where.port or 0), 10) as connection:
        connection.settimeout(10)
        try:
            connection.sendall(data)
            _say_no_more(connection)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            return b""
        return received


def _say_no_more(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as exc:
        # The other side has closed it already, and what it said before can still be read.
        if exc.errno != errno.ENOTCONN:
            raise


# fmt: off
PIECES = (
    b"GET ", b"POST ", b"/v1/learn", b"/v1/memories/", b"%00", b"%ff", b"..", b" HTTP/1.1\r\n", b" HTTP/9.9\r\n",
    b"\r\n", b"Host: localhost\r\n", b"Host: \r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: x\r\n", b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n",
    b"Content-Type: application/json\r\n", b"{", b"}", b'{"agent": ', b"\x00", b"\xff", b"A" * 300,
    b"Authorization: Bearer \xff\r\n", b"Expect: 100-continue\r\n", b"Idempotency-Key: \xe9\r\n",
    b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"If-Match: \x01\r\n",
)
# fmt: on


def test_garbage_on_the_wire_is_refused_and_harms_no_one(address: str) -> None:
    @given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=40), max_size=14).map(b"".join))
    @settings(examples(40), phases=[Phase.generate])
    def garbage(data: bytes) -> None:
        answer = sent_raw(address, data)
        for line in answer.split(b"\r\n"):
            if line.startswith(b"HTTP/1.1 "):
                assert line[9:10] in (b"1", b"2", b"3", b"4"), (data, answer)

    garbage()
    assert httpx.get(f"{address}/health", trust_env=False).status_code == 200


def test_an_endless_head_is_cut_off(address: str) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 1_000_000
    # What was not read is in the way of the answer, which may be lost with the connection.
    answer = sent_raw(address, head)[:40]
    assert answer == b"" or b"400" in answer
    assert b"invalid_request" in sent_raw(address, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_json_of_any_kind_never_makes_the_service_fail(address: str) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    )
    names = st.sampled_from(
        ["content", "task", "agent", "where", "memory_id", "ids", "limit", "query", "session_id", "x"]
    )
    paths = ("/v1/memories", "/v1/retrieve", "/v1/memories/search", "/v1/operations/list_memories", "/v1/sessions")
    with client_of(address) as client:

        @given(st.sampled_from(paths), st.dictionaries(names, values, max_size=4))
        @settings(examples(50), phases=[Phase.generate])
        def anything(path: str, body: dict[str, object]) -> None:
            said = json.dumps(body).encode(errors="surrogatepass")
            answer = client.post(path, content=said, headers={"Content-Type": "application/json"})
            assert answer.status_code < 500, (path, body, answer.text)

        anything()


def test_a_tool_that_tries_what_the_document_allows_finds_nothing(address: str) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    # A stream never ends, so there is nothing to compare.
    known = [each.ok() for each in schema.exclude(path="/v1/events").get_all_operations()]  # type: ignore[union-attr]
    assert len(known) > 90
    for operation in (each for each in known if not each.path.startswith("/v1/operations/")):
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(examples(2), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
            def check(case: schemathesis.Case[Any]) -> None:
                case.call_and_validate(timeout=30)

            if mode is schemathesis.GenerationMode.POSITIVE or operation.body or list(operation.iter_parameters()):
                check()


# ---------------------------------------------------------------------- starting and stopping


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_when_it_is_told_to_and_finishes_what_it_began(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "alma.rest", "--store", str(tmp_path / "alma.db"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        address = said.split()[3]
        answers: list[httpx.Response] = []
        with client_of(address) as client, client.stream("GET", "/v1/events") as stream:
            assert stream.status_code == 200
            # The first one loads the model, which takes a while.
            thread = threading.Thread(target=lambda: answers.append(client.post("/v1/learn", json=BODY)))
            thread.start()
            while b"alma_requests_running 3" not in client.get("/metrics").content and not answers:
                time.sleep(0.005)
            process.send_signal(how)
            thread.join()
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
    assert [answer.status_code for answer in answers] == [200]
    assert "ALMA serves at" in said


def test_a_taken_port_ends_it_with_a_sentence(tmp_path: Path, address: str) -> None:
    port = str(urlsplit(address).port)
    command = [sys.executable, "-m", "alma.rest", "--store", str(tmp_path / "alma.db"), "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_closed_memory_is_not_served_for_ever(tmp_path: Path) -> None:
    alma: ALMA = memory_at(tmp_path / "alma.db")
    with served(alma) as address, client_of(address) as client:
        alma.close()
        answer = client.post("/v1/learn", json=BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_error")
