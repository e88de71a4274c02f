"""The audit log: its contents, what it leaves out, and that tampering is detected."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.bootstrap import open_storage, partition_tables
from alma.clock import now
from alma.errors import NotFoundError, ScopeViolationError, StorageError, ValidationError
from alma.memory.audit import AuditTrail, sanitized
from alma.model.governance import Attribution, AuditEvent
from alma.model.memory import Memory
from alma.model.query import Order
from alma.model.scope import Scope
from alma.storage.audit import ChainHead, chained
from alma.storage.base import StorageBackend
from alma.storage.migrations.base import known_migrations
from alma.testing import builders as make
from tests.relations.conftest import Tamper
from tests.support.together import together

EVERYWHERE = Scope.everywhere()
ANA = Attribution(user_id="ana", agent="helena", session_id="s1", ip_address="10.0.0.7", user_agent="tests")


def a_log_of(store: StorageBackend, events: int) -> list[AuditEvent]:
    for n in range(events):
        store.save(make.a_memory(id=f"m{n}"), ANA)
    return store.find(AuditEvent, EVERYWHERE, order=[Order("id")])


def findings(store: StorageBackend) -> list[tuple[str, int | None]]:
    return [(finding.kind, finding.event_id) for finding in AuditTrail(store).verify().findings]


def test_an_untouched_log_is_verified(store: StorageBackend) -> None:
    a_log_of(store, 3)
    store.save_many([make.a_memory() for _ in range(5)], Attribution(reason="a batch"))
    store.update(Memory, "m1", {"title": "other"}, EVERYWHERE)
    store.delete(Memory, ["m2"], EVERYWHERE)
    found = AuditTrail(store).verify()
    assert found.ok
    assert (found.checked, found.unchained, found.first_id) == (6, 0, 1)


def test_a_secret_that_is_a_name_in_a_request_is_masked() -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    assert key not in json.dumps(sanitized({"changes": {f"field {key}": 1}, key: 2}))


def test_a_secret_that_was_asked_for_as_an_id_is_masked(store: StorageBackend) -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    AuditTrail(store).record_failure("get", "memory", NotFoundError("memory", key), resource_id=key)
    assert key not in str(store.find(AuditEvent, EVERYWHERE))


def test_an_empty_log_is_verified(store: StorageBackend) -> None:
    assert AuditTrail(store).verify().ok


@pytest.mark.parametrize(
    "change",
    ["user_id = 'bob'", "action = 'read'", "success = NOT success", "created_at = '2020-01-01T00:00:00.000000Z'"],
)
def test_a_changed_event_is_named(database: StorageBackend, tamper: Tamper, change: str) -> None:
    events = a_log_of(database, 4)
    assert tamper(f"UPDATE audit_log SET {change} WHERE id = {events[1].id}") == 1
    assert findings(database) == [("changed", events[1].id)]


@pytest.mark.parametrize(
    "change",
    [
        "created_at = 'yesterday'",
        "details_json = '{oops'",
        "success = 'perhaps'",
        "success = 5",
        "user_id = x'00ff'",
        "chain_position = 'three'",
    ],
)
def test_an_event_that_cannot_be_read_any_more_is_named(tmp_path: Path, change: str) -> None:
    path = tmp_path / "log.db"
    with open_storage(str(path)) as store:
        a_log_of(store, 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE audit_log SET {change} WHERE id = 3")
    with open_storage(str(path)) as store:
        assert ("changed", 3) in findings(store)


def test_a_row_that_something_else_made_unreadable_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_storage(str(path)) as store:
        store.save(make.a_memory(id="m"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE memories SET created_at = 'yesterday'")
    with open_storage(str(path)) as store, pytest.raises(StorageError, match=r"memory 'm' in memories .* backup"):
        store.find(Memory, EVERYWHERE)


def test_a_removed_event_is_missed_and_its_neighbours_are_named(database: StorageBackend, tamper: Tamper) -> None:
    events = a_log_of(database, 4)
    tamper(f"DELETE FROM audit_log WHERE id = {events[2].id}")
    (finding,) = AuditTrail(database).verify().findings
    assert finding.kind == "removed"
    assert f"between the events {events[1].id} and {events[3].id}" in str(finding)


def test_the_first_event_is_missed(database: StorageBackend, tamper: Tamper) -> None:
    events = a_log_of(database, 2)
    tamper(f"DELETE FROM audit_log WHERE id = {events[0].id}")
    assert findings(database) == [("removed", None)]


def test_an_end_that_was_cut_off_is_missed(database: StorageBackend, tamper: Tamper) -> None:
    events = a_log_of(database, 4)
    tamper(f"DELETE FROM audit_log WHERE id > {events[1].id}")
    (finding,) = AuditTrail(database).verify().findings
    assert str(finding).startswith("2 events were removed from the end")


def test_a_log_that_was_emptied_is_missed(database: StorageBackend, tamper: Tamper) -> None:
    a_log_of(database, 2)
    tamper("DELETE FROM audit_log")
    assert findings(database) == [("removed", None)]


def test_an_inserted_event_is_named(database: StorageBackend, tamper: Tamper) -> None:
    a_log_of(database, 2)
    columns = "user_id, action, resource_type, resource_id, success, created_at"
    tamper(
        f"INSERT INTO audit_log (id, {columns}) SELECT 77, 'bob', action, resource_type, resource_id, success, "
        "created_at FROM audit_log WHERE id = 1"
    )
    tamper(
        f"INSERT INTO audit_log (id, {columns}, chain, chain_position, chain_hash) "
        "SELECT 78, 'eve', action, resource_type, resource_id, success, created_at, "
        "chain, chain_position, chain_hash FROM audit_log WHERE id = 2"
    )
    assert findings(database) == [("inserted", 77), ("inserted", 78)]


def test_an_event_appended_with_a_right_hash_lies_behind_the_head(database: StorageBackend, tamper: Tamper) -> None:
    last = a_log_of(database, 1)[-1]
    forged = {**last.values(), "id": None, "user_id": "eve"}
    (event,), _ = chained([forged], ChainHead(last.chain or 0, last.chain_position or 0, last.chain_hash or ""))
    tamper(
        "INSERT INTO audit_log (id, user_id, session_id, agent_id, action, resource_type, resource_id, success, "
        "ip_address, user_agent, created_at, chain, chain_position, chain_hash) "
        "SELECT 50, 'eve', session_id, agent_id, action, "
        "resource_type, resource_id, success, ip_address, user_agent, created_at, chain, 2, "
        f"'{event['chain_hash']}' FROM audit_log WHERE id = {last.id}"
    )
    assert findings(database) == [("inserted", 50)]


def test_a_log_that_was_redone_as_a_whole_is_told_by_heads_kept_elsewhere(
    database: StorageBackend, tamper: Tamper
) -> None:
    trail = AuditTrail(database)
    events = a_log_of(database, 2)
    kept = trail.heads()
    (only,), head = chained([events[0].values()], ChainHead(events[0].chain or 0))
    tamper(f"DELETE FROM audit_log WHERE id = {events[1].id}")
    chains = "audit_chains" if "alma.db" in str(getattr(database, "path", "")) else "alma_audit_chains"
    tamper(f"UPDATE {chains} SET length = 1, hash = '{head.hash}'")
    assert only["chain_hash"] == head.hash
    assert trail.verify().ok
    assert [finding.kind for finding in trail.verify(anchors=kept).findings] == ["removed"]


def test_writers_at_once_leave_a_log_that_is_verified(place: str) -> None:
    with open_storage(place) as one, open_storage(place) as other:

        def write(store: StorageBackend, name: str) -> None:
            for n in range(15):
                store.save(make.a_memory(id=f"{name}{n}"), Attribution(agent=name))

        assert together(*[lambda s=s, n=n: write(s, n) for n, s in zip("abcd", (one, other) * 2, strict=True)]) == []
        found = AuditTrail(one).verify()
        assert found.ok, found.findings
        assert found.checked == 60


def test_processes_at_once_leave_a_log_that_is_verified(place: str) -> None:
    code = (
        "import sys; from alma.bootstrap import open_storage; from alma.testing import builders as make\n"
        "with open_storage(sys.argv[1]) as s:\n    for n in range(10): s.save(make.a_memory())"
    )
    open_storage(place).close()
    ran = [subprocess.Popen([sys.executable, "-c", code, place]) for _ in range(2)]
    assert [process.wait(60) for process in ran] == [0, 0]
    with open_storage(place) as store:
        found = AuditTrail(store).verify()
        assert (found.ok, found.checked) == (True, 20)


def test_what_was_rolled_back_leaves_no_hole(store: StorageBackend) -> None:
    a_log_of(store, 1)
    with pytest.raises(NotFoundError), store.transaction() as tx:
        tx.save(make.a_memory())
        tx.require(Memory, "nowhere", EVERYWHERE)
    store.save(make.a_memory())
    assert AuditTrail(store).verify().checked == 2


def test_a_log_that_was_split_by_time_is_still_verified(postgres_dsn: str) -> None:
    with open_storage(postgres_dsn) as store:
        a_log_of(store, 2)
    partition_tables(postgres_dsn, ["audit_log"], ahead=1)
    with open_storage(postgres_dsn) as store:
        store.save(make.a_memory())
        found = AuditTrail(store).verify()
        assert (found.ok, found.checked) == (True, 3)


def test_events_from_before_the_chains_are_counted_and_told_from_chained_ones(tmp_path: Path) -> None:

    from alma.storage.sqlite.migrations import SQLiteMigrator

    path = tmp_path / "alma.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        older = tuple(m for m in known_migrations("sqlite") if m.version < 10)
        SQLiteMigrator(path, connection, older).migrate()
        connection.execute(
            "INSERT INTO audit_log (action, resource_type, resource_id, created_at) "
            "VALUES ('create', 'memory', 'm', '2025-01-01T00:00:00.000000Z')"
        )
    with open_storage(str(path)) as store:
        store.save(make.a_memory())
        found = AuditTrail(store).verify()
        assert (found.ok, found.unchained, found.checked, found.first_id) == (True, 1, 1, 2)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM audit_log WHERE id = 1")
    with open_storage(str(path)) as store:
        assert findings(store) == [("removed", None)]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abé"), inner, max_size=3),
    max_leaves=8,
)


def test_whatever_an_event_says_its_hash_survives_the_store(place: str) -> None:
    said: list[dict[str, object]] = []

    @given(details=st.dictionaries(st.sampled_from("xyzß"), json_values, max_size=3))
    def gather(details: dict[str, object]) -> None:
        said.append(details)

    gather()
    # Opened when all is gathered: what a pool of connections does at random would disturb the gathering.
    with open_storage(place) as store:
        for details in said:
            store.save(AuditEvent(action="read", resource_type="memory", resource_id="m", details_json=details))
        store.save_many(
            AuditEvent(action="read", resource_type="memory", resource_id="m", details_json=details) for details in said
        )
        found = AuditTrail(store).verify()
        assert found.ok, found.findings
        assert found.checked == 2 * len(said)


# ---------------------------------------------------------------------- recording and asking


def test_a_refused_write_is_recorded_after_it_failed(store: StorageBackend) -> None:
    trail = AuditTrail(store)
    store.save(make.a_memory(id="m", project_id="shop"))
    request = {"id": "m", "project_id": "other", "content": "a secret plan", "api_key": "sk-1234567890abcdefgh"}
    with pytest.raises(ScopeViolationError), trail.attempt("update", "memory", ANA, resource_id="m", request=request):
        store.save(make.a_memory(id="m", project_id="other"), ANA)
    (event,) = trail.find(EVERYWHERE, success=False)
    assert (event.action, event.resource_id, event.user_id, event.ip_address) == ("update", "m", "ana", "10.0.0.7")
    assert event.error_message is not None
    assert event.error_message.startswith("ScopeViolationError: memory.project_id differs")
    assert event.details_json == {
        "request": {"id": "m", "project_id": "other", "content": "(13 characters)", "api_key": "***"}
    }
    assert trail.verify().ok


def test_a_failure_cannot_be_recorded_inside_the_transaction_that_fails(store: StorageBackend) -> None:
    with pytest.raises(StorageError, match="after the transaction"), store.transaction():
        AuditTrail(store).record_failure("create", "memory", "no", ANA)


def test_reads_are_recorded_when_switched_on(store: StorageBackend) -> None:
    AuditTrail(store).record_read("memory", ["m1"], ANA)
    trail = AuditTrail(store, log_reads=True)
    trail.record_read("memory", ["m1", "m2"], ANA, action="search", request={"query": "where?", "top_k": 5})
    (event,) = trail.find(EVERYWHERE)
    assert (event.action, event.resource_ids) == ("search", ("m1", "m2"))
    assert event.details_json == {"request": {"query": "where?", "top_k": 5}}


def test_every_filter_narrows_the_answer(store: StorageBackend) -> None:
    before = now()
    store.save(make.a_memory(id="one"), ANA)
    store.save_many([make.a_memory(id="two"), make.a_memory(id="three")], Attribution(user_id="bob", agent="victor"))
    store.save(make.a_heuristic(id="h"), ANA)
    trail = AuditTrail(store)

    def ids(scope: Scope = EVERYWHERE, **filters: object) -> list[str]:
        return [event.resource_id for event in trail.find(scope, **filters)]  # type: ignore[arg-type]

    assert ids() == ["h", "*", "one"]
    assert ids(Scope(user_id="ana")) == ["h", "one"]
    assert ids(agent="victor") == ["*"]
    assert ids(resource_type="memory", resource_id="three") == ["*"]
    assert ids(action="delete") == ids(success=False) == []
    assert ids(since=before, until=now() + timedelta(hours=1)) == ["h", "*", "one"]
    assert ids(until=before) == []


def test_pages_follow_each_other_without_gap_or_repetition(store: StorageBackend) -> None:
    a_log_of(store, 5)
    trail = AuditTrail(store)
    seen, before = [], None
    while True:
        page = trail.find(EVERYWHERE, limit=2, before=before)
        seen += [event.resource_id for event in page]
        before = page.next_before
        if before is None:
            break
    assert seen == ["m4", "m3", "m2", "m1", "m0"]


def test_a_limit_must_make_sense(store: StorageBackend) -> None:
    with pytest.raises(ValidationError, match="from 1 to 1,000"):
        AuditTrail(store).find(EVERYWHERE, limit=0)


@pytest.mark.parametrize(
    ("request_", "logged"),
    [
        ({"password": "x", "userToken": "y", "max_tokens": 5},
         {"password": "***", "userToken": "***", "max_tokens": 5}),
        ({"q": "use Bearer abc123def456 now"}, {"q": "use Bearer [redacted:bearer_token] now"}),
        ({"url": "postgresql://ana:hunter2@db/x"}, {"url": "postgresql://ana:[redacted:url_password]@db/x"}),
        ({"nested": {"Authorization": "z", "deep": [{"api_key": "k"}]}},
         {"nested": {"Authorization": "***", "deep": [{"api_key": "***"}]}}),
        ({"text": "long", "embedding": [1.0, 2.0]}, {"text": "(4 characters)", "embedding": "(2 items)"}),
        ({"note": "n" * 500}, {"note": "n" * 199 + "…"}),
        ({"bad": "a\x00b\ud800"}, {"bad": "ab?"}),
    ],
)  # fmt: skip
def test_a_request_is_logged_without_what_must_not_be(request_: dict[str, object], logged: dict[str, object]) -> None:
    assert sanitized(request_) == logged
    json.dumps(sanitized(request_))
