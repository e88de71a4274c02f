"""Two tenants on one service: nothing that one may not see is in any byte of any answer, whatever it asks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from alma import ALMA
from alma.rest.routes import Route, routes
from tests.faces.rest import client_of, key_for, served
from tests.support import tenants
from tests.support.tenants import Call

Json = dict[str, Any]
# Asked about with the other's names and ids, in every place where an operation takes one.
NAMES = frozenset({"project_id", "user_id", "agent"})
IDS = frozenset(
    {"memory_id", "id", "session_id", "from_id", "to_id", "item_id", "parent_session_id", "parent_id", "why_not"}
)
LISTS = frozenset({"ids", "memory_ids", "blocked_by"})
TEXTS = ("query", "task", "activity", "context", "text", "content", "pattern")


@dataclass
class Tenant:
    """One of two: a key, the word that all its texts contain, and the ids that it was given."""

    word: str
    names: Mapping[str, str]
    client: httpx.Client
    ids: list[str] = field(default_factory=list)

    def call(self, route: Route, arguments: Json) -> httpx.Response:
        return self.client.post(route.path, json=arguments)

    def note(self, answer: httpx.Response) -> None:
        """Remember the ids of what was made."""
        if answer.status_code == 200:
            self.ids.extend(_ids_in(answer.json()))


PAIRS: tuple[tuple[str, Json, Json], ...] = (
    ("projects", {"project_id": "okapi-project"}, {"project_id": "quagga-project"}),
    ("users", {"user_id": "okapi-user"}, {"user_id": "quagga-user"}),
    (
        "agents",
        {"project_id": "shop", "agent": "okapi-agent"},
        {"project_id": "shop", "agent": "quagga-agent"},
    ),
)


@pytest.mark.parametrize(
    ("place", "pair"),
    [("sqlite", PAIRS[0]), ("sqlite", PAIRS[1]), ("sqlite", PAIRS[2]), ("postgresql", PAIRS[0])],
    indirect=["place"],
    ids=["projects", "users", "agents", "projects-postgresql"],
)
def test_nothing_of_one_tenant_is_in_any_answer_to_the_other(alma: ALMA, pair: tuple[str, Json, Json]) -> None:
    known = [route for route in routes() if route.is_generic]
    with served(alma) as address:
        first, second = (
            Tenant(word, limits, client_of(address, key_for(alma, **limits)))
            for word, limits in zip(("okapi", "quagga"), pair[1:], strict=True)
        )
        with first.client, second.client:
            for tenant in (first, second):
                for route in known:
                    _write(tenant, route)
            assert first.ids
            assert second.ids
            chosen: set[str] = set()
            for route in known:
                for arguments in _questions(route, first, second):
                    answer = first.call(route, arguments)
                    assert answer.status_code < 500, (route.path, arguments, answer.text)
                    if not route.operation.read_only and answer.status_code == 200:
                        # An id that a caller chose for a record of its own, even if another record has it.
                        chosen.update(_strings(arguments))
                    _assert_nothing_of(second, answer, arguments, chosen)
            # What one could not do to the other's things was not done.
            for key in dict.fromkeys(second.ids):
                answer = first.client.get(f"/v1/memories/{key}")
                assert answer.status_code in (403, 404)


def _write(tenant: Tenant, route: Route) -> None:
    """Do what an operation's example does, in the tenant's own words, if it is a write."""
    if route.operation.read_only or route.operation.name in ("delete_session", "bulk_delete", "forget", "purge"):
        return
    said = _in_words(dict(route.operation.example), tenant.word)
    for name in NAMES:
        if name in route.operation.input.model_fields and name in tenant.names:
            said[name] = tenant.names[name]
    for name in IDS:
        if name in said and tenant.ids:
            said[name] = tenant.ids[0]
    tenant.note(tenant.call(route, said))


def _in_words(value: Any, word: str) -> Any:
    """The same with the word in every text."""
    if isinstance(value, dict):
        return {name: _in_words(part, word) if name in _FREE else part for name, part in value.items()}
    if isinstance(value, list):
        return [_in_words(part, word) for part in value]
    return f"{value} {word}" if isinstance(value, str) else value


_FREE = frozenset(
    [
        "content",
        "title",
        "summary",
        "task",
        "strategy_used",
        "fact",
        "preference",
        "text",
        "name",
        "goal",
        "description",
        "last_action",
        "next_steps",
        "reason",
        "state",
        "profile",
        "display_name",
        "context",
        "current_goal",
        "blockers",
        "messages",
    ]
)


def _questions(route: Route, asker: Tenant, other: Tenant) -> Iterator[Json]:
    """What a curious caller would ask: as in the example, with the other's names, with the other's ids."""
    fields = route.operation.input.model_fields
    base = dict(route.operation.example)
    for name in NAMES & base.keys():
        base[name] = asker.names.get(name, base[name])
    if route.operation.read_only:
        base.update({name: f"{other.word} {base[name]}" for name in TEXTS if isinstance(base.get(name), str)})
    yield base
    yield from ({**base, name: other.names[name]} for name in NAMES & fields.keys() & other.names.keys())
    if "where" in fields:
        yield {**base, "where": {"include_archived": True, "include_deleted": True, "include_expired": True}}
    for key in list(dict.fromkeys(other.ids))[:10]:
        yield from ({**base, name: key} for name in IDS & fields.keys())
        yield from ({**base, name: [key]} for name in LISTS & fields.keys())


def _assert_nothing_of(other: Tenant, answer: httpx.Response, arguments: Json, chosen: set[str]) -> None:
    asked = repr(arguments)
    text = answer.text
    if other.word not in asked:
        assert other.word not in text, (answer.request.url, arguments, text)
    else:
        # The question itself may be repeated, and is all there is of the word.
        for said in _strings(arguments):
            text = text.replace(_as_json(said), "")
        assert other.word not in text, (answer.request.url, arguments, answer.text)
    for key in set(other.ids) - chosen:
        assert key in asked or key not in text, (answer.request.url, arguments, answer.text)


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _ids_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "id" and isinstance(part, str) and len(part) == 32:
                yield part
            yield from _ids_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _ids_in(part)


USERS = {"ana": {"project_id": "shop", "user_id": "ana"}, "bob": {"project_id": "shop", "user_id": "bob"}}


def test_what_belongs_to_a_user_reaches_no_other_user_of_the_same_project_and_agent(alma: ALMA) -> None:
    known = {route.operation.name: route for route in routes() if route.is_generic}
    with served(alma) as address:
        clients = {name: client_of(address, key_for(alma, **limits)) for name, limits in USERS.items()}

        def caller(name: str) -> Call:
            return lambda operation, given: dict(clients[name].post(known[operation].path, json=given).json())

        with clients["ana"], clients["bob"]:
            ours = tenants.Tenant("Zanzibar", "Zanzibar", caller("ana"), {}, "Common")
            spy = tenants.Tenant("Quagga", "Quagga", caller("bob"), {}, "Common")
            tenants.live(ours)
            tenants.read(spy)
            tenants.live(spy)
            tenants.read(spy, ours.ids, like="network")
            tenants.damage(spy, ours.ids)
            held = ours.ids["session_id"]
            asked = [
                clients["bob"].post("/v1/sessions", json={"session_id": held}),
                clients["bob"].post("/v1/sessions", json={"parent_session_id": held}),
                clients["bob"].get(f"/v1/sessions/{held}"),
                clients["bob"].post("/v1/memories", json={"content": "x", "session_id": held}),
            ]
    assert [name for name, answer in spy.answers if "zanzibar" in answer.lower()] == []
    assert {answer.status_code for answer in asked} == {404}
    assert {answer.json()["error"]["code"] for answer in asked} == {"session_not_found"}
