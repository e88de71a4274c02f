"""Two tenants of one store never see or change anything of each other, whatever they ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA
from alma.errors import ALMAError
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.operations import operation_named
from alma.operations.access import Caller, Grant
from alma.operations.base import code_of, to_json
from tests.support.tenants import EVERY_OPERATION, Json, Tenant, damage, done_by, live, read

pytestmark = pytest.mark.slow

PAIRS = {
    "projects": (Grant(project_id="atlantis"), Grant(project_id="babylon"), {}, {}),
    "users": (Grant(user_id="ana"), Grant(user_id="bob"), {"user": "ana"}, {"user": "bob"}),
    "agents": (Grant(agent="helena"), Grant(agent="victor"), {"agent": "helena"}, {"agent": "victor"}),
    "users of projects": (
        Grant(project_id="atlantis", user_id="ana"),
        Grant(project_id="babylon", user_id="ana"),
        {},
        {},
    ),
    "agents of a project": (
        Grant(project_id="atlantis", agent="helena"),
        Grant(project_id="atlantis", agent="victor"),
        {"agent": "helena"},
        {"agent": "victor"},
    ),
    "any user of projects": (
        Grant(project_id="atlantis", user_id="*"),
        Grant(project_id="babylon", user_id="*"),
        {"user": "ana"},
        {"user": "bob"},
    ),
}
USERS_OF_A_PROJECT = (Grant(project_id="atlantis", user_id="ana"), Grant(project_id="atlantis", user_id="bob"))
# What is a user's alone goes with the user from project to project.
CARRIED = {"list_preferences", "get_user", "retrieve", "get_context", "update_user", "list_settings"}


@pytest.fixture
def memory(place: str) -> Iterator[ALMA]:
    with ALMA.quickstart(place, embedding_provider="mock") as alma:
        yield alma


def tenant(memory: ALMA, word: str, grant: Grant, names: dict[str, str], shared: str | None = None) -> Tenant:
    caller = Caller(memory, grant, ip_address="10.0.0.1")

    def call(name: str, arguments: Json) -> Json:
        try:
            return to_json(operation_named(name).perform(caller, json.loads(json.dumps(arguments))))
        except ALMAError as exc:
            return {"error": code_of(exc), "message": str(exc)}

    return Tenant(word, word, call, names, shared)


def leaks(spy: Tenant, word: str) -> list[tuple[str, str]]:
    """The answers that have another's word; what was asked for with that word repeats it at most in what was asked."""
    return [(name, answer) for name, answer in spy.answers if word.lower() in answer.lower()]


@pytest.mark.parametrize("pair", PAIRS)
def test_no_byte_of_one_tenant_reaches_the_other(memory: ALMA, pair: str) -> None:
    first, second, first_names, second_names = PAIRS[pair]
    ours = tenant(memory, "Zanzibar", first, first_names)
    spy = tenant(memory, "Quagga", second, second_names)
    live(ours)
    live(spy)
    read(spy)
    read(spy, ours.ids, like="network")
    damage(spy, ours.ids)
    carries = pair == "users of projects"
    shared = CARRIED if carries else set()
    found = [(name, answer) for name, answer in leaks(spy, "Zanzibar") if name not in shared]
    if carries:
        found = [each for each in found if "zanzibar" in json.dumps(without_preferences(json.loads(each[1]))).lower()]
    assert found == []


def without_preferences(answer: Any) -> Any:
    """An answer without its rows of preferences, which go with a user from project to project."""
    if isinstance(answer, list):
        return [without_preferences(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    row = answer.get("row")
    kinds = (answer.get("kind"), row.get("kind") if isinstance(row, dict) else None)
    return None if "user_preference" in kinds else {name: without_preferences(each) for name, each in answer.items()}


def test_what_belongs_to_a_user_reaches_no_other_user_of_the_same_project_and_agent(memory: ALMA) -> None:
    ana, bob = USERS_OF_A_PROJECT
    ours = tenant(memory, "Zanzibar", ana, {}, shared="Common")
    spy = tenant(memory, "Quagga", bob, {}, shared="Common")
    live(ours)
    read(spy)
    live(spy)
    read(spy)
    read(spy, ours.ids, like="network")
    damage(spy, ours.ids)
    read(spy, ours.ids, like="network")
    assert leaks(spy, "Zanzibar") == []
    assert "Common" in json.dumps(spy.answers), "what agents learned is the project's"


OWN_IDS = ("memory_id", "other_id", "session_id")


def test_ids_of_another_user_of_the_project_are_answered_as_ids_that_do_not_exist(memory: ALMA) -> None:
    ana, bob = USERS_OF_A_PROJECT
    ours = tenant(memory, "Zanzibar", ana, {}, shared="Common")
    live(ours)
    theirs = {name: ours.ids[name] for name in OWN_IDS}
    unknown = {name: made[::-1] for name, made in theirs.items()}
    answers = []
    # The first round leaves what any such round does, as a setting of the caller.
    for ids in (unknown, theirs, unknown):
        spy = tenant(memory, "Quagga", bob, {})
        read(spy, ids, like="network")
        damage(spy, ids)
        named = [(name, _anonymous(text, ids)) for name, text in spy.answers]
        answers.append([_lasting(answer) for answer in named])
    for known, made_up in zip(*answers[1:], strict=True):
        assert known == made_up


def _anonymous(text: str, ids: dict[str, str]) -> str:
    for name, made in ids.items():
        text = text.replace(made, name)
    return text


def test_a_session_id_that_another_user_holds_is_not_found(memory: ALMA) -> None:
    ana, bob = (tenant(memory, "", grant, {}) for grant in USERS_OF_A_PROJECT)
    ana.call("create_session", {"session_id": "sprint-1", "name": "Zanzibar"})
    taken = bob.call("create_session", {"session_id": "sprint-1", "name": "Quagga"})
    under = bob.call("create_session", {"parent_session_id": "sprint-1"})
    read_ = bob.call("get_session", {"session_id": "sprint-1"})
    assert {answer["error"] for answer in (taken, under, read_)} == {"session_not_found"}
    assert taken["message"] == under["message"] == read_["message"]
    again = ana.call("create_session", {"session_id": "sprint-1"})
    assert (again["error"], "exists already" in again["message"]) == ("validation_error", True)
    assert ana.call("get_session", {"session_id": "sprint-1"})["session"]["name"] == "Zanzibar"


def test_a_user_finds_their_own_handoff_behind_newer_ones_of_others(memory: ALMA) -> None:
    ana, bob = (tenant(memory, "", grant, {}) for grant in USERS_OF_A_PROJECT)

    def hand_over(user: Tenant, action: str) -> None:
        session = user.call("create_session", {"agent": "helena"})["session"]["id"]
        user.call("create_handoff", {"agent": "helena", "session_id": session, "last_action": action})

    hand_over(bob, "wrote the test")
    for number in range(120):
        hand_over(ana, f"step {number}")
    assert bob.call("latest_handoff", {"agent": "helena"})["handoff"]["last_action"] == "wrote the test"
    assert ana.call("latest_handoff", {"agent": "helena"})["handoff"]["last_action"] == "step 119"


def test_a_pattern_is_told_to_a_user_only_if_their_own_memories_show_it(memory: ALMA) -> None:
    ana, bob = (tenant(memory, "", grant, {}) for grant in USERS_OF_A_PROJECT)
    for number in range(4):
        made = {"memory_type": "decision", "tags": ["zanzibar"], "context_json": {"files": ["zanzibar.py"]}}
        ana.call("create_memory", {"content": f"Zanzibar: we decided to lock row {number}", **made})
    everybody = tenant(memory, "", Grant(project_id="atlantis"), {})
    mined = everybody.call("mine_patterns", {})["created"]
    assert mined
    for asked in ("Zanzibar decided to lock", *mined):
        assert bob.call("find_similar_patterns", {"pattern": asked, "min_similarity": 0})["patterns"] == []
    assert ana.call("find_similar_patterns", {"pattern": "Zanzibar decided to lock"})["patterns"]


@pytest.mark.parametrize("grant", [Grant(project_id="atlantis"), Grant(project_id="atlantis", user_id="*"), Grant()])
def test_what_is_private_reaches_no_one_else_in_the_project(memory: ALMA, grant: Grant) -> None:
    ana = tenant(memory, "Zanzibar", Grant(project_id="atlantis", user_id="ana"), {})
    session = ana.call("create_session", {"name": "work"})["session"]["id"]
    kept = [
        ana.call("create_memory", {"content": text, "is_private": True, "session_id": session, **more})["memory"]["id"]
        for text, more in (
            ("Zanzibar network: we decided to lock the form", {"memory_type": "decision", "tags": ["zanzibar"]}),
            ("Zanzibar network: the form fails in Zanzibar.py", {"memory_type": "error"}),
            ("Zanzibar network: wait for the form", {"memory_type": "task"}),
        )
    ]
    ana.call("update_memory", {"memory_id": kept[0], "title": "Zanzibar"})
    ana.call("relate_memories", {"from_id": kept[0], "to_id": kept[1], "relation": "resolves", "context": "Zanzibar"})
    held = ana.call("hold_memories", {"session_id": session, "memory_ids": kept[:2]})
    assert "Zanzibar" in held["prompt"]
    memory.archive.put(Memory, kept[2], Scope(user_id="ana"), reason="cold")
    ana.call("end_session", {"session_id": session})
    assert "Zanzibar" in json.dumps(ana.call("list_archived", {}))
    spy = tenant(memory, "Quagga", grant, {"user": "bob"} if grant.user_id or not grant.is_limited else {})
    ids = {"memory_id": kept[0], "other_id": kept[1], "session_id": session}
    for like in ("network", "form"):
        read(spy, ids, like=like)
    damage(spy, ids)
    read(spy, ids, like="network")
    assert leaks(spy, "Zanzibar") == []


@pytest.mark.parametrize("pair", ["projects", "users", "agents of a project"])
def test_nothing_of_one_tenant_is_changed_by_the_other(tmp_path: Path, pair: str) -> None:
    first, second, first_names, second_names = PAIRS[pair]
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as memory:
        ours = tenant(memory, "Zanzibar", first, first_names)
        spy = tenant(memory, "Quagga", second, second_names)
        live(ours)
        before = tenant(memory, "Zanzibar", first, first_names)
        read(before, ours.ids)
        damage(spy, ours.ids)
        after = tenant(memory, "Zanzibar", first, first_names)
        read(after, ours.ids)
    assert [_lasting(answer) for answer in after.answers] == [_lasting(answer) for answer in before.answers]


def test_tenants_use_every_operation(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as memory:
        owner = tenant(memory, "Zanzibar", Grant(), {"user": "ana"})
        live(owner)
        read(owner)
        damage(owner, owner.ids)
    assert done_by(owner) == EVERY_OPERATION


def _lasting(answer: tuple[str, str]) -> tuple[str, object]:
    """An answer without what reading itself changes: counters and clocks."""
    name, text = answer
    return name, _without(json.loads(text))


_PASSING = {
    "access_count",
    "last_accessed_at",
    "last_active_at",
    "updated_at",
    "retrieval_time_ms",
    "accesses",
    "never_read",
    "reads",
    "last_at",
    "handed_to",
    "most_read",
    "events",
    "checked",
    "next_before",
    "explanations",
    "score",
    "why",
    "why_not",
    "prompt",
    "items",
}


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in _PASSING}
    return [_without(each) for each in value] if isinstance(value, list) else value


def test_a_summary_does_not_name_what_an_item_waits_for_to_a_key_of_another_agent(memory: ALMA) -> None:
    everybody = tenant(memory, "", Grant(project_id="atlantis"), {})
    hers = everybody.call("create_work_item", {"title": "Zanzibar", "agent": "helena"})["item"]["id"]
    everybody.call("create_work_item", {"title": "Quagga", "agent": "victor", "blocked_by": [hers]})
    assert "Quagga: waits for Zanzibar" in everybody.call("progress_summary", {"agent": "victor"})["summary"]
    victor = tenant(memory, "", Grant(project_id="atlantis", agent="victor"), {})
    told = victor.call("progress_summary", {})
    assert ("Quagga" in told["summary"], "Zanzibar" in told["summary"], told["total"]) == (True, False, 1)
