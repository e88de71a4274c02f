"""Idempotency keys: a write that is sent again is executed once, in one process or two, before a crash or after."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from alma import ALMA, clock
from alma.errors import StorageError
from alma.model.governance import KeptAnswer
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.rest.idempotency import Idempotency, IdempotentRequest, StoredResponse
from alma.rest.responses import HttpError
from tests.faces.rest import (
    all_at_once,
    client_of,
    key_for,
    on_both_stores,
    served,
    server_process,
)

EVERYWHERE = Scope.everywhere()
BODY = {"agent": "helena", "task": "test the form", "outcome": "success", "strategy_used": "wait"}


def outcomes(alma: ALMA) -> int:
    found: int = alma.get_stats()["outcomes_count"]
    return found


def learn(client: httpx.Client, key: str, **changed: str) -> httpx.Response:
    return client.post("/v1/learn", json={**BODY, **changed}, headers={"Idempotency-Key": key})


@on_both_stores
def test_a_write_that_is_sent_again_is_carried_out_once(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        first, again = learn(client, "a"), learn(client, "a")
        assert again.json() == first.json()
        assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
        assert outcomes(alma) == 1
        other = learn(client, "b")
        assert other.json()["outcome"]["id"] != first.json()["outcome"]["id"]
        assert outcomes(alma) == 2


def test_a_key_is_for_one_request_alone(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        learn(client, "a")
        other = learn(client, "a", task="another task")
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        assert outcomes(alma) == 1


def test_a_memory_keeps_its_tag_and_its_address_when_it_is_answered_again(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        answers = [
            client.post("/v1/memories", json={"content": "once"}, headers={"Idempotency-Key": "m"}) for _ in range(2)
        ]
        assert answers[0].headers["etag"] == answers[1].headers["etag"]
        assert answers[0].headers["location"] == answers[1].headers["location"]
        assert [answer.status_code for answer in answers] == [201, 201]


def test_the_same_name_of_two_callers_means_two_requests(alma: ALMA) -> None:
    tokens = [key_for(alma), key_for(alma)]
    with served(alma) as address:
        for token in tokens:
            with client_of(address, token) as client:
                assert "idempotency-replayed" not in learn(client, "a").headers
    assert outcomes(alma) == 2


def test_what_was_refused_may_be_tried_again(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        assert learn(client, "a", outcome="perhaps").status_code == 409
        assert learn(client, "a").status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
def test_a_key_must_be_short_and_plain(alma: ALMA, key: str) -> None:
    with served(alma) as address, client_of(address) as client:
        assert learn(client, key).status_code == 400


@on_both_stores
def test_copies_that_come_together_are_carried_out_once(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        answers = all_at_once(12, lambda _: learn(client, "a"))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json()["outcome"]["id"] for answer in answers}) == 1
    assert outcomes(alma) == 1


def test_two_processes_carry_it_out_once_and_a_restart_does_not_forget(alma: ALMA, place: str) -> None:
    with served(alma) as here, server_process(place) as other:
        with client_of(here) as one, client_of(other.address) as two:
            answers = all_at_once(8, lambda number: learn((one, two)[number % 2], "a"))
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.text for answer in answers}) == 1
            assert learn(two, "b").status_code == 200
        other.kill()
    with served(alma) as later, client_of(later) as client:
        assert learn(client, "a").text == answers[0].text
        assert learn(client, "b").headers["idempotency-replayed"] == "true"
    assert outcomes(alma) == 2


# ---------------------------------------------------------------------- when the answer is lost


def request_(*, repeatable: bool) -> IdempotentRequest:
    return IdempotentRequest("owner", "key", "digest", repeatable)


def lose_the_answer(alma: ALMA, idempotency: Idempotency, *, repeatable: bool) -> None:
    """Make a change as a process does that ends before it has answered."""

    def work() -> StoredResponse:
        alma.journal.create("kept", project_id="shop")
        raise StorageError("the power is gone")

    with pytest.raises(StorageError):
        idempotency.execute(request_(repeatable=repeatable), work)
    # Its claim is over.
    row = alma.storage.require(KeptAnswer, request_(repeatable=repeatable).id, EVERYWHERE)
    alma.storage.save(row.replace(claimed_until=clock.now()))


@on_both_stores
def test_a_change_whose_answer_was_lost_is_not_made_twice(alma: ALMA) -> None:
    idempotency = Idempotency(alma.storage, timedelta(hours=1))
    lose_the_answer(alma, idempotency, repeatable=False)
    with pytest.raises(HttpError, match="carried out") as refused:
        idempotency.execute(request_(repeatable=False), lambda: pytest.fail("it was done again"))
    (memory,) = alma.storage.find(Memory, EVERYWHERE)
    assert refused.value.status == 409
    assert refused.value.details is not None
    assert f"memory/{memory.id}" in refused.value.details["changed"]


def test_what_does_no_harm_is_done_again_when_the_answer_was_lost(alma: ALMA) -> None:
    idempotency = Idempotency(alma.storage, timedelta(hours=1))
    lose_the_answer(alma, idempotency, repeatable=True)
    assert idempotency.execute(request_(repeatable=True), lambda: StoredResponse(200, "{}")) == StoredResponse(
        200, "{}"
    )
    assert idempotency.execute(request_(repeatable=True), lambda: pytest.fail("again")) == StoredResponse(
        200, "{}", replayed=True
    )


def test_what_is_deleted_for_good_is_not_kept_in_an_answer(alma: ALMA) -> None:
    with served(alma) as address, client_of(address) as client:
        named = {"Idempotency-Key": "m"}
        made = client.post("/v1/memories", json={"content": "the quagga"}, headers=named)
        assert client.delete(f"{made.headers['location']}?hard=true").status_code == 200
        kept = alma.storage.find(KeptAnswer, EVERYWHERE)
        assert [row.answer for row in kept] == [None]
        alma.storage.save(kept[0].replace(claimed_until=clock.now()))
        again = client.post("/v1/memories", json={"content": "the quagga"}, headers=named)
        assert (again.status_code, again.json()["error"]["details"]["carried_out"]) == (409, True)


def test_answers_are_forgotten_after_a_while(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    idempotency = Idempotency(alma.storage, timedelta(hours=1))
    idempotency.execute(request_(repeatable=False), lambda: StoredResponse(200, "1"))
    later = clock.now() + timedelta(hours=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert idempotency.execute(request_(repeatable=False), lambda: StoredResponse(200, "2")).body == "2"
    Idempotency(alma.storage, timedelta(hours=1)).execute(
        IdempotentRequest("owner", "new", "d", False), lambda: StoredResponse(200, "3")
    )
    monkeypatch.setattr(clock, "now", lambda: later + timedelta(hours=2))
    Idempotency(alma.storage, timedelta(hours=1)).execute(
        IdempotentRequest("owner", "newer", "d", False), lambda: StoredResponse(200, "4")
    )
    assert alma.storage.count(KeptAnswer, EVERYWHERE) == 1
