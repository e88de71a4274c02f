"""The REST service: every operation is reached, errors have one shape, and memories have versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from alma import ALMA
from alma.clock import new_id
from alma.operations import OPERATIONS
from alma.operations.base import Face
from alma.rest.responses import CODES
from alma.rest.routes import routes
from tests.faces.rest import client_of, memory_at, on_both_stores, served

Json = dict[str, Any]


@pytest.fixture
def http(alma: ALMA) -> Iterator[httpx.Client]:
    with served(alma) as address, client_of(address) as client:
        yield client


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service on SQLite, for what depends neither on the store nor on what is in it."""
    with (
        memory_at(tmp_path_factory.mktemp("rest") / "local.db") as memory,
        served(memory) as address,
        client_of(address) as client,
    ):
        yield client


def error_in(answer: httpx.Response) -> Json:
    """The error of an answer, which has the documented shape."""
    said = answer.json()
    assert set(said) == {"error"}
    error: Json = said["error"]
    assert {"code", "message", "request_id"} <= set(error) <= {"code", "message", "request_id", "details"}
    assert error["code"] in CODES
    assert error["request_id"] == answer.headers["x-request-id"]
    return error


def kept(http: httpx.Client, content: str | None = None, **further: Any) -> Json:
    content = content or f"Something new: {new_id()}"
    answer = http.post("/v1/memories", json={"content": content, **further})
    assert answer.status_code == 201, answer.text
    memory: Json = answer.json()["memory"]
    return memory


# ---------------------------------------------------------------------- what is offered


def test_every_operation_of_rest_has_an_address() -> None:
    offered = {operation.name for operation in OPERATIONS if Face.REST in operation.faces}
    assert {route.operation.name for route in routes() if route.is_generic} == offered


@on_both_stores
def test_every_example_of_every_operation_is_understood(http: httpx.Client) -> None:
    # From the first key on, the service asks for one.
    for route in sorted(routes(), key=lambda route: route.operation.name == "create_key"):
        if route.is_generic:
            answer = http.post(route.path, json=route.operation.example)
            # This service has no engine beside its store.
            is_understood = answer.status_code in (200, 404, 409) or "no engine is configured" in answer.text
            assert is_understood, (route.path, answer.text)
            if answer.status_code != 200:
                error_in(answer)


@on_both_stores
def test_the_orchestrators_operations_have_addresses_of_their_own(http: httpx.Client) -> None:
    memory = kept(http, "We chose PostgreSQL", memory_type="decision", tags=["database"])
    path = f"/v1/memories/{memory['id']}"
    assert http.get(path).json()["memory"]["content"] == "We chose PostgreSQL"
    assert http.patch(path, json={"title": "Store"}).json()["memory"]["title"] == "Store"
    assert [m["id"] for m in http.get("/v1/memories?types=decision&tags=database").json()["memories"]] == [memory["id"]]
    found = http.post("/v1/memories/search", json={"query": "PostgreSQL", "mode": "keyword"}).json()
    assert [hit["memory"]["id"] for hit in found["hits"]] == [memory["id"]]
    assert "PostgreSQL" in http.post("/v1/memories/summarize", json={}).json()["text"]
    session = http.post("/v1/sessions", json={"name": "work"})
    assert session.status_code == 201
    ended = http.post(f"/v1/sessions/{session.json()['session']['id']}/end", json={"summary": "done"})
    assert ended.json()["session"]["is_active"] is False
    gone = http.post("/v1/memories/bulk-delete", json={"where": {"types": ["decision"]}})
    assert gone.json()["ids"] == [memory["id"]]
    assert error_in(http.get(path))["code"] == "memory_not_found"


@on_both_stores
def test_what_was_learned_is_handed_over(http: httpx.Client) -> None:
    for _ in range(3):
        http.post(
            "/v1/learn",
            json={"agent": "helena", "task": "test the form", "outcome": "success", "strategy_used": "wait for it"},
        ).raise_for_status()
    found = http.post("/v1/retrieve", json={"agent": "helena", "task": "test the form"}).json()
    assert "wait for it" in found["prompt"]
    assert found["heuristics"][0]["agent"] == "helena"
    assert "embedding" not in found["heuristics"][0]


def test_memories_are_read_page_by_page(http: httpx.Client) -> None:
    made = {kept(http, f"memory number {number}")["id"] for number in range(7)}
    seen: list[str] = []
    cursor = None
    while True:
        page = http.get("/v1/memories", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [memory["id"] for memory in page["memories"]]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == made


# ---------------------------------------------------------------------- versions


@on_both_stores
def test_a_memory_that_was_changed_meanwhile_is_not_overwritten(http: httpx.Client) -> None:
    made = http.post("/v1/memories", json={"content": "first"})
    path = made.headers["location"]
    assert http.get(path).headers["etag"] == made.headers["etag"]
    changed = http.patch(path, json={"content": "second"}, headers={"If-Match": made.headers["etag"]})
    assert changed.status_code == 200
    late = http.patch(path, json={"content": "third"}, headers={"If-Match": made.headers["etag"]})
    assert (late.status_code, error_in(late)["code"]) == (412, "precondition_failed")
    assert http.delete(path, headers={"If-Match": made.headers["etag"]}).status_code == 412
    assert http.get(path).json()["memory"]["content"] == "second"
    either = f'"v999", {changed.headers["etag"]}'
    assert http.delete(path, headers={"If-Match": either}).json() == {"deleted": True}
    assert http.delete(path, headers={"If-Match": "*"}).status_code == 404


def test_what_is_remembered_a_second_time_has_the_version_it_has_now(local: httpx.Client) -> None:
    first = local.post("/v1/memories", json={"content": "The same words"})
    again = local.post("/v1/memories", json={"content": "The same words"})
    assert again.headers["location"] == first.headers["location"]
    assert local.get(again.headers["location"]).headers["etag"] == again.headers["etag"]


def test_a_body_can_insist_on_a_version_too(local: httpx.Client) -> None:
    memory = kept(local)
    answer = local.patch(f"/v1/memories/{memory['id']}", json={"title": "x", "expected_version": 7})
    assert (answer.status_code, error_in(answer)["code"]) == (409, "conflict")


@pytest.mark.parametrize(("tag", "status"), [('"v1"', 304), ('W/"v1"', 304), ("*", 304), ('"v2"', 200), ("junk", 200)])
def test_a_memory_that_did_not_change_is_not_sent_again(local: httpx.Client, tag: str, status: int) -> None:
    answer = local.get(f"/v1/memories/{kept(local)['id']}", headers={"If-None-Match": tag})
    assert answer.status_code == status
    assert answer.headers["etag"] == '"v1"'
    assert bool(answer.content) == (status == 200)


@pytest.mark.parametrize("tag", ['W/"v1"', "junk", '"v2"', '""', '"v99999999999999999999"'])
def test_only_the_very_tag_matches(local: httpx.Client, tag: str) -> None:
    answer = local.patch(f"/v1/memories/{kept(local)['id']}", json={"title": "x"}, headers={"If-Match": tag})
    assert answer.status_code == 412


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/v1/operations/nothing", 404, "not_found"),
        ("PUT", "/v1/memories", 405, "method_not_allowed"),
        ("GET", "/v1/memories/search", 405, "method_not_allowed"),
        ("GET", "/v1/memories/unknown", 404, "memory_not_found"),
        ("GET", "/v1/sessions/unknown", 404, "session_not_found"),
        ("DELETE", "/v1/memories/unknown", 404, "memory_not_found"),
        ("GET", "/v1/memories?limit=many", 422, "validation_error"),
        ("GET", "/v1/memories?limit=0", 422, "validation_error"),
        ("GET", "/v1/memories?limit=1&limit=2", 422, "validation_error"),
        ("GET", "/v1/memories?wrong=1", 422, "validation_error"),
        ("GET", "/v1/memories?private=maybe", 422, "validation_error"),
        ("GET", "/v1/memories?created_since=yesterday", 422, "validation_error"),
        ("GET", "/v1/memories?cursor=wrong", 409, "validation_error"),
        ("GET", "/v1/memories/a%00b", 409, "validation_error"),
        ("POST", "/v1/learn?agent=x", 400, "invalid_request"),
        ("TRACE", "/v1/learn", 405, "method_not_allowed"),
    ],
)
def test_errors_have_one_shape(local: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    answer = local.request(method, path)
    assert (answer.status_code, error_in(answer)["code"]) == (status, code)
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"text"', "application/json", 400),
        (b'{"content": NaN}', "application/json", 400),
        (b'{"content": "\\ud800"}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"content": ' + b"[" * 100 + b"]" * 100 + b"}", "application/json", 400),
        (b'{"content": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", "application/json", 400),
        (b'{"content": "x"}', "text/plain", 415),
        (b'{"content": "x"}', "", 415),
        (b"content=x", "application/x-www-form-urlencoded", 415),
        (b'{"content": "a\\u0000b"}', "application/json", 409),
        (b'{"content": {"a\\u0000": 1}}', "application/json", 409),
        (b'{"content": "x", "importance_score": 1e400}', "application/json", 409),
        (b'{"content": ""}', "application/json", 422),
        (b'{"content": "x", "priority": 11}', "application/json", 422),
        (b'{"content": "x", "priority": "5"}', "application/json", 422),
        (b'{"content": "x", "nothing": 1}', "application/json", 422),
        (b'{"content": "x", "expires_at": "5"}', "application/json", 422),
        (b"{}", "application/json", 422),
        (b"", "", 422),
    ],
)
def test_what_cannot_be_understood_is_the_callers_mistake(
    local: httpx.Client, body: bytes, kind: str, status: int
) -> None:
    answer = local.post("/v1/memories", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    error_in(answer)


def test_whole_numbers_may_be_written_with_a_point(local: httpx.Client) -> None:
    assert kept(local, priority=5.0)["priority"] == 5


def test_the_address_and_the_body_must_name_the_same(local: httpx.Client) -> None:
    answer = local.patch("/v1/memories/one", json={"memory_id": "two", "title": "x"})
    assert (answer.status_code, error_in(answer)["code"]) == (400, "invalid_request")


def test_what_went_wrong_inside_is_not_told(local: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from alma.memory.journal import Journal

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(Journal, "create", broken)
    answer = local.post("/v1/memories", json={"content": "x"})
    assert (answer.status_code, error_in(answer)["code"]) == (500, "internal_error")
    assert "secret" not in answer.text


def test_a_request_keeps_the_id_it_came_with_if_that_is_harmless(local: httpx.Client) -> None:
    assert local.get("/health", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert local.get("/health", headers={"X-Request-ID": "a b"}).headers["x-request-id"] != "a b"


# ---------------------------------------------------------------------- what is said about it


def test_the_document_names_every_route_with_an_example(local: httpx.Client) -> None:
    said = local.get("/openapi.json").json()
    assert said["openapi"].startswith("3.1")
    for route in routes():
        described = said["paths"][route.path][route.method.lower()]
        assert described["summary"]
        if route.query is None:
            assert "example" in described["requestBody"]["content"]["application/json"]
    assert said["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    text = json.dumps(said)
    assert text.count("#/components/schemas/Error") > 100


def test_health_readiness_and_metrics_answer(local: httpx.Client) -> None:
    assert local.get("/health").json()["status"] == "ok"
    assert local.get("/ready").json() == {"status": "ready", "engines": []}
    local.get("/v1/memories/unknown")
    text = local.get("/metrics").text
    assert 'alma_requests_total{method="GET",route="/v1/memories/{memory_id}",status="404"}' in text
    assert 'alma_errors_total{code="memory_not_found"}' in text
    assert "unknown" not in text.replace('route="unknown"', "")
    assert "alma_request_seconds_bucket" in text


def test_a_store_that_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    alma = memory_at(tmp_path / "alma.db")
    with served(alma) as address, client_of(address) as client:
        alma.close()
        answer = client.get("/ready")
    assert (answer.status_code, error_in(answer)["code"]) == (503, "storage_error")


def test_answers_are_neither_sniffed_nor_framed_nor_cached(local: httpx.Client) -> None:
    for path in ("/health", "/nowhere", "/v1/memories"):
        headers = local.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
