"""Both HTTP servers against clients that open much and send little: others are served, and the log stays short."""

from __future__ import annotations

import logging
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from alma import ALMA
from alma.access import ApiKeys
from alma.mcp.http import create_server
from alma.mcp.server import Options
from alma.mcp.service import Service
from alma.serving.connections import address_of
from alma.serving.server import LogThrottle
from tests.faces.rest import READY_SECONDS, client_of, memory_at, served
from tests.support.clock import Clock
from tests.support.mcp import configured

SECONDS = 60.0
Serve = Callable[..., Any]


@contextmanager
def rest(folder: Path, **limits: Any) -> Iterator[str]:
    with memory_at(folder / "alma.db") as alma, served(alma, **limits) as address:
        yield address


@contextmanager
def mcp(folder: Path, **limits: Any) -> Iterator[str]:
    """The MCP server on a thread."""
    with Service(Options(config=str(configured(folder)), **limits)) as service, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = create_server(service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(READY_SECONDS)
            assert not thread.is_alive()


on_both_servers = pytest.mark.parametrize("serve", [rest, mcp])
PATHS = {rest: "/v1/memories", mcp: "/mcp"}


def connected(address: str) -> socket.socket:
    where = urlsplit(address)
    return socket.create_connection((where.hostname or "", where.port or 0), SECONDS)


def said(connection: socket.socket) -> bytes:
    """What the server says until it closes the connection."""
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed the connection already."""
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def answered_health(connection: socket.socket) -> None:
    """Send a whole request on a connection that is kept, and read its answer."""
    connection.sendall(HEALTH)
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200")


# ---------------------------------------------------------------------- heads


@on_both_servers
@pytest.mark.parametrize("is_first", [True, False], ids=["first request", "later request"])
@pytest.mark.parametrize("begun", [b"", b"GET /heal", b"\r\n"], ids=["nothing", "half a line", "an empty line"])
def test_a_head_that_does_not_end_is_not_waited_for(serve: Serve, tmp_path: Path, is_first: bool, begun: bytes) -> None:
    with serve(tmp_path, head_seconds=0.3, keep_alive_seconds=0.5) as address, connected(address) as connection:
        if not is_first:
            answered_health(connection)
        connection.sendall(begun)
        answer = said(connection)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


@on_both_servers
def test_a_head_that_comes_byte_by_byte_is_not_waited_for(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path, head_seconds=0.5) as address, connected(address) as connection:
        answered_health(connection)
        with pytest.raises(OSError, match=r"(?i)reset|broken pipe"):
            for _ in range(600):
                connection.sendall(b"G")
                time.sleep(0.05)


@on_both_servers
@pytest.mark.parametrize("is_first", [True, False], ids=["first request", "later request"])
def test_a_head_that_is_too_long_is_refused(serve: Serve, tmp_path: Path, is_first: bool) -> None:
    with serve(tmp_path, max_head_bytes=4096) as address, connected(address) as connection:
        if not is_first:
            answered_health(connection)
        headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 100) for number in range(50))
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
        assert said(connection).startswith(b"HTTP/1.1 431")


@on_both_servers
def test_two_host_headers_are_refused(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path) as address, connected(address) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        answer = said(connection)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"one Host header" in answer


# ---------------------------------------------------------------------- bodies


def dribbled(address: str, path: str, chunked: bool) -> bytes:
    """Send a body byte by byte until the server answers."""
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 100000"
    with connected(address) as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\n%s\r\n\r\n" % (path.encode(), length)
        )
        connection.settimeout(0.05)
        for _ in range(600):
            try:
                return connection.recv(65536)
            except TimeoutError:
                connection.sendall(b"1\r\n \r\n" if chunked else b" ")
    raise AssertionError("the server waited for the body")


@on_both_servers
@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "with a length"])
@pytest.mark.parametrize(
    "limits", [{"body_seconds": 1.0}, {"body_grace_seconds": 0.5, "body_bytes_per_second": 1000}], ids=["time", "rate"]
)
def test_a_body_that_dribbles_in_is_refused(
    serve: Serve, tmp_path: Path, chunked: bool, limits: dict[str, float]
) -> None:
    with serve(tmp_path, **limits) as address:
        assert dribbled(address, PATHS[serve], chunked).startswith(b"HTTP/1.1 408")


@on_both_servers
def test_a_body_that_no_one_reads_any_more_is_not_waited_for_either(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path, body_seconds=0.5) as address, connected(address) as connection:
        connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
        assert said(connection).startswith(b"HTTP/1.1 404")


# ---------------------------------------------------------------------- how many


@on_both_servers
def test_a_connection_that_is_not_used_is_closed(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path, keep_alive_seconds=0.3) as address, connected(address) as connection:
        answered_health(connection)
        assert said(connection) == b""


@on_both_servers
@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_address"])
def test_at_the_limit_half_open_connections_go_first_and_the_oldest_of_them(
    serve: Serve, tmp_path: Path, limit: str
) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(serve(tmp_path, **{limit: 4}))
        kept = stack.enter_context(connected(address))
        answered_health(kept)
        half_open = []
        for _ in range(3):
            half_open.append(stack.enter_context(connected(address)))
            half_open[-1].sendall(b"GET /he")
        for _ in range(2):
            answered_health(stack.enter_context(connected(address)))
        assert [is_closed(each) for each in half_open] == [True, True, False]
        kept.settimeout(SECONDS)
        answered_health(kept)


def test_a_connection_that_is_being_answered_is_not_closed_for_another(tmp_path: Path) -> None:
    with rest(tmp_path, max_connections_per_address=1) as address, client_of(address) as client:
        with client.stream("GET", "/v1/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            with connected(address) as other:
                answer = said(other)
                assert answer.startswith(b"HTTP/1.1 503")
                assert b"retry-after: 1" in answer
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            with connected(address) as other:
                other.sendall(HEALTH)
                if other.recv(65536).startswith(b"HTTP/1.1 200"):
                    return
    raise AssertionError("the stream that ended still counts")


@pytest.mark.parametrize(
    ("client", "counted"),
    [
        (("192.0.2.7", 1), "192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::/64"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("fe80::1%eth0", 1), "fe80::/64"),
        (None, "unknown"),
    ],
)
def test_addresses_are_counted_as_one_client_has_them(client: tuple[str, int] | None, counted: str) -> None:
    assert address_of(client) == counted


# ---------------------------------------------------------------------- whole processes


COMMANDS = {
    "rest": ["-m", "alma.rest", "--port", "0", "--config"],
    "mcp": ["-m", "alma.mcp", "--http", "--port", "0", "--config"],
}


@contextmanager
def process(folder: Path, name: str, files: int | None = None) -> Iterator[tuple[str, Path]]:
    """A server as it is started from a shell, and its log; `files` is how many it may open."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    log = folder / "log"
    with log.open("wb") as written:
        command = [sys.executable, *COMMANDS[name], str(configured(folder))]
        running = subprocess.Popen(
            command, stdout=written, stderr=written, preexec_fn=limit, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        try:
            yield _address_in(log), log
        finally:
            running.terminate()
            running.wait(SECONDS)


def _address_in(log: Path) -> str:
    deadline = time.monotonic() + 2 * SECONDS
    while time.monotonic() < deadline:
        found = [word for word in log.read_text().split() if word.startswith("http://")]
        if found:
            return found[0].removesuffix("/mcp")
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@pytest.mark.parametrize(("name", "files"), [("rest", 256), ("mcp", None)])
def test_health_is_told_while_400_half_open_sockets_are_open(tmp_path: Path, name: str, files: int | None) -> None:
    with process(tmp_path, name, files) as (address, log), ExitStack() as stack:
        before = len(log.read_bytes())
        for number in range(400):
            opened = stack.enter_context(connected(address))
            try:
                opened.sendall(b"GET /health HTTP/1.1\r\n" if number % 2 else b"")
            except OSError:
                continue
        for _ in range(5):
            assert httpx.get(f"{address}/health", timeout=10).status_code == 200
        written = log.read_bytes()[before:]
        assert len(written.splitlines()) <= 6, written.decode()
        # When the ten seconds are over, the log tells how many more there were.
        deadline = time.monotonic() + SECONDS
        while b"more within 10 s" not in log.read_bytes() and time.monotonic() < deadline:
            time.sleep(0.2)
        written = log.read_bytes()[before:]
        assert b"more within 10 s" in written
        assert len(written) < 4000, written.decode()


# ---------------------------------------------------------------------- keys


@on_both_servers
def test_wrong_keys_are_throttled(serve: Serve, tmp_path: Path) -> None:
    with serve(tmp_path) as address:
        database = tmp_path / "alma.db"
        with ALMA.quickstart(database, embedding_provider="mock") as memory:
            right = ApiKeys(memory.storage).create("test", ("read",))[1]
        wrong = {"Authorization": "Bearer alma_0123456789ab_" + "x" * 43}
        answers = [httpx.get(address + PATHS[serve], headers=wrong) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {401}
        # What is allowed grows again with time, so a slow machine needs some more.
        while answers[-1].status_code == 401 and len(answers) < 100:
            answers.append(httpx.get(address + PATHS[serve], headers=wrong))
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        ours = httpx.get(address + PATHS[serve], headers={"Authorization": f"Bearer {right}"})
        assert ours.status_code not in (401, 429)


# ---------------------------------------------------------------------- the log


def test_a_line_that_repeats_is_written_once_and_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    repeated = LogThrottle(clock)
    caplog.handler.addFilter(repeated)
    try:
        refused, other = logging.getLogger("uvicorn.error"), logging.getLogger("alma.learning")
        for number in range(5):
            refused.warning("request %d was invalid", number)
            other.warning("learned")
        repeated.tell_counts()
        assert caplog.messages.count("learned") == 5
        clock.seconds += 11
        repeated.tell_counts()
        refused.warning("request %d was invalid", 9)
        repeated.tell_counts()
    finally:
        caplog.handler.removeFilter(repeated)
    assert [each for each in caplog.messages if each != "learned"] == [
        "request 0 was invalid",
        "4 more within 10 s: request 0 was invalid",
        "request 9 was invalid",
    ]


def test_internal_errors_of_single_requests_are_written(caplog: pytest.LogCaptureFixture) -> None:
    repeated = LogThrottle(Clock())
    caplog.handler.addFilter(repeated)
    try:
        for number in range(10):
            logging.getLogger("alma.rest").error("a request failed", extra={"request_id": str(number)})
    finally:
        caplog.handler.removeFilter(repeated)
    assert len(caplog.messages) == 10
