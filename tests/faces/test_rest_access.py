"""Access to the service: keys, hosts, origins, rate and size limits, and hostile requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from alma import ALMA
from alma.access import ApiKeys
from alma.errors import ConfigurationError, ValidationError
from alma.rest.options import ServiceOptions
from alma.rest.server import serve
from alma.serving.limits import RateLimit
from alma.serving.server import listen
from tests.faces.rest import client_of, key_for, served
from tests.support.clock import Clock


def code_of(answer: httpx.Response) -> str:
    code: str = answer.json()["error"]["code"]
    return code


def test_on_loopback_no_key_is_needed_until_the_first_is_made(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        assert client.get("/v1/memories").status_code == 200
        token = key_for(alma, "read")
        answer = client.get("/v1/memories")
        while answer.status_code == 200:
            answer = client.get("/v1/memories")
        assert (answer.status_code, code_of(answer)) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert client.get("/health").status_code == 200
        assert client.get("/v1/memories", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("settings", [{"require_key": True}, {"host": "0.0.0.0"}])
def test_without_a_key_nothing_but_health_answers_where_one_is_needed(alma: ALMA, settings: dict[str, object]) -> None:
    with served(alma, **settings) as address, client_of(address) as client:
        assert client.get("/health").status_code == 200
        for path in ("/v1/memories", "/openapi.json", "/metrics", "/ready", "/v1/events", "/nowhere", "/mcp"):
            assert client.get(path).status_code == 401, path
        assert client.post("/v1/operations/health", json={}).status_code == 401


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer alma_000000000000_" + "x" * 43, "Basic YTpi", "alma_x", "Bearer \xff"]
)
def test_an_invalid_key_is_refused(alma: ALMA, header: str) -> None:
    with served(alma) as address, client_of(address) as client:
        answer = client.get("/v1/memories", headers=[(b"Authorization", header.encode("latin-1"))])
        assert (answer.status_code, code_of(answer)) == (401, "unauthenticated")


def test_a_key_does_what_it_allows_and_no_more(alma: ALMA) -> None:
    token = key_for(alma, "read")
    with served(alma) as address, client_of(address, token) as client:
        assert client.get("/v1/memories").status_code == 200
        for answer in (
            client.post("/v1/memories", json={"content": "x"}),
            client.delete("/v1/memories/x"),
            client.post("/v1/operations/purge", json={}),
            client.post("/v1/operations/list_audit", json={}),
        ):
            assert (answer.status_code, code_of(answer)) == (403, "permission_denied")


def test_a_key_of_one_project_reaches_no_other(alma: ALMA) -> None:
    token = key_for(alma, project_id="shop")
    with served(alma) as address, client_of(address, token) as client:
        assert client.get("/v1/memories?project_id=shop").status_code == 200
        assert client.get("/v1/memories?project_id=bank").status_code == 403
        assert client.get("/metrics").status_code == 403


def test_a_revoked_key_ends_at_once(alma: ALMA) -> None:
    token = key_for(alma, "read")
    with served(alma) as address, client_of(address, token) as client:
        assert client.get("/v1/memories").status_code == 200
        ApiKeys(alma.storage).revoke(ApiKeys(alma.storage).list_all()[0].id)
        answer = client.get("/v1/memories")
        while answer.status_code == 200:
            answer = client.get("/v1/memories")
        assert answer.status_code == 401


def test_wrong_keys_are_tried_slowly(alma: ALMA) -> None:
    with served(alma) as address, client_of(address, "alma_000000000000_" + "x" * 43) as client:
        statuses = [client.get("/v1/memories").status_code for _ in range(25)]
        assert statuses[0] == 401
        assert statuses[-1] == 429


# ---------------------------------------------------------------------- hosts and origins


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[", "a@b"]
)
def test_a_name_that_a_page_gave_this_machine_does_not_lead_here(alma: ALMA, host: str) -> None:
    with served(alma) as address, client_of(address) as client:
        answer = client.get("/v1/memories", headers={"Host": host})
        assert answer.status_code == 421
        assert code_of(answer) == "invalid_request"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.1:1", "[::1]:8080", "LOCALHOST", "memory.lan"])
def test_the_names_of_this_machine_and_those_allowed_lead_here(alma: ALMA, host: str) -> None:
    with served(alma, allowed_hosts=("memory.lan",)) as address, client_of(address) as client:
        assert client.get("/health", headers={"Host": host}).status_code == 200


def test_pages_may_not_call_unless_they_are_allowed(alma: ALMA) -> None:
    ours, other = {"Origin": "https://app.example"}, {"Origin": "https://evil.example"}
    with served(alma) as address, client_of(address) as client:
        answer = client.get("/v1/memories", headers=ours)
        assert (answer.status_code, code_of(answer)) == (403, "permission_denied")
        assert "access-control-allow-origin" not in answer.headers
        same = f"http://{urlsplit(address).netloc}"
        assert client.get("/v1/memories", headers={"Origin": same}).status_code == 200
    with served(alma, allowed_origins=("https://app.example",)) as address, client_of(address) as client:
        answer = client.get("/v1/memories", headers=ours)
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "Origin" in answer.headers["vary"]
        asked = {**ours, "Access-Control-Request-Method": "PATCH"}
        allowed = client.options("/v1/memories/x", headers=asked)
        assert (allowed.status_code, "PATCH" in allowed.headers["access-control-allow-methods"]) == (204, True)
        assert client.get("/v1/memories", headers=other).status_code == 403
        assert (
            client.options("/v1/memories", headers={**other, "Access-Control-Request-Method": "GET"}).status_code == 403
        )


# ---------------------------------------------------------------------- rates and sizes


def test_too_many_requests_are_told_when_to_come_back(alma: ALMA) -> None:
    with served(alma, requests_per_second=0.5, burst=3) as address, client_of(address) as client:
        answers = [client.get("/v1/memories") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert code_of(answers[-1]) == "rate_limit_exceeded"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
        assert client.get("/health").status_code == 200


def test_each_caller_has_a_bucket_that_fills_again() -> None:
    clock = Clock()
    limit = RateLimit(2, 3, clock)
    assert [limit.take("a") for _ in range(4)] == [None, None, None, 1]
    assert limit.take("b") is None
    clock.seconds += 1
    assert [limit.take("a") for _ in range(3)] == [None, None, 1]


def test_a_body_that_is_too_large_is_refused_before_it_was_read(alma: ALMA) -> None:
    with served(alma, max_body_bytes=1000) as address, client_of(address) as client:
        big = b'{"content": "' + b"x" * 2000 + b'"}'
        answer = client.post("/v1/memories", content=big, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413

        def pieces() -> Iterator[bytes]:
            yield from (big[start : start + 100] for start in range(0, len(big), 100))

        answer = client.post("/v1/memories", content=pieces(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, code_of(answer)) == (413, "invalid_request")


def test_a_body_that_never_comes_is_not_waited_for(alma: ALMA) -> None:
    with served(alma, body_seconds=0.2) as address:
        where = urlsplit(address)
        with socket.create_connection((where.hostname or "", where.port or 0), 10) as connection:
            connection.sendall(
                b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 50\r\n\r\n{"
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_a_caller_that_hangs_up_is_not_a_defect(alma: ALMA, caplog: pytest.LogCaptureFixture) -> None:
    with served(alma) as address, client_of(address) as client:
        where = urlsplit(address)
        with socket.create_connection((where.hostname or "", where.port or 0), 10) as connection:
            connection.sendall(
                b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 50\r\n\r\n{"
            )
        while 'status="499"' not in client.get("/metrics").text:
            pass
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# ---------------------------------------------------------------------- where it listens


def test_a_port_that_is_taken_is_told_with_the_way_out(tmp_path: Path) -> None:
    with listen(ServiceOptions(port=0)) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"port {port} .* is in use.*--port {port + 1}"):
            serve(store=str(tmp_path / "alma.db"), port=port)
    assert not (tmp_path / "alma.db").exists()


@pytest.mark.parametrize("settings", [{"port": -1}, {"port": 70000}, {"burst": 0}, {"allowed_origins": ("app",)}])
def test_options_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ServiceOptions(**settings)  # type: ignore[arg-type]


def test_a_host_that_is_nowhere_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot listen on"):
        serve(host="256.1.1.1", port=0)
