"""Keys: shown once, kept as a hash, and good for what they were made for until they are revoked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alma import clock
from alma.access import ApiKeys
from alma.bootstrap import open_storage
from alma.errors import NotFoundError, TransferError, ValidationError
from alma.model.governance import ApiKey, AuditEvent
from alma.model.scope import Scope
from alma.operations.access import Grant, Right
from alma.storage.base import StorageBackend
from alma.storage.document import to_document
from alma.transfer import export_store, import_store
from alma.transfer.lines import line_writer, read_lines
from tests.conftest import empty_store
from tests.support.clock import Clock

EVERYWHERE = Scope.everywhere()


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    return empty_store(request, request.param)


@pytest.fixture
def store(place: str) -> Iterator[StorageBackend]:
    with open_storage(place) as storage:
        yield storage


def test_a_key_gives_what_it_was_made_for(store: StorageBackend) -> None:
    keys = ApiKeys(store)
    key, token = keys.create("reports", ["write", "read"], user_id="ana", project_id="shop", agent="helena")
    assert keys.verify(token) == Grant(frozenset({Right.READ, Right.WRITE}), "ana", "shop", "helena", key.id)
    assert ApiKeys(store).verify(token) == keys.verify(token)


def test_the_secret_is_nowhere_in_the_store(store: StorageBackend, tmp_path: Path) -> None:
    key, token = ApiKeys(store).create("reports", ["read"])
    secret = token.removeprefix(key.prefix + "_")
    assert len(secret) >= 43
    kept = [to_document(each) for cls in (ApiKey, AuditEvent) for each in store.find(cls, EVERYWHERE)]
    assert secret not in json.dumps(kept)
    assert secret not in repr(ApiKeys(store).list_all())


@pytest.mark.parametrize(
    "wrong", ["", "alma_", "Bearer x", "alma_0123456789ab_" + "x" * 43, "\0", "alma_0123456789ab_\ud800"]
)
def test_an_invalid_key_opens_nothing(store: StorageBackend, wrong: str) -> None:
    assert ApiKeys(store).verify(wrong) is None


def test_another_secret_behind_the_same_prefix_opens_nothing(store: StorageBackend) -> None:
    key, token = ApiKeys(store).create("reports", ["read"])
    other = f"{key.prefix}_{'A' * 43}"
    assert other != token
    assert ApiKeys(store).verify(other) is None


def test_a_key_that_another_process_revoked_opens_nothing_a_second_later(store: StorageBackend, place: str) -> None:
    clock_ = Clock()
    keys = ApiKeys(store, clock_)
    key, token = keys.create("reports", ["read"])
    assert keys.verify(token) is not None
    with open_storage(place) as other:
        ApiKeys(other).revoke(key.id)
    clock_.seconds += 1
    assert keys.verify(token) is None
    assert [each.revoked_at is not None for each in keys.list_all()] == [True]


def test_a_key_is_revoked_here_at_once_by_id_or_by_prefix(store: StorageBackend) -> None:
    keys = ApiKeys(store)
    for name in ("id", "prefix"):
        key, token = keys.create(name, ["read"])
        assert keys.verify(token) is not None
        ended = keys.revoke(getattr(key, name))
        assert keys.verify(token) is None
        assert keys.revoke(key.id) == ended


def test_a_key_ends_when_it_expires(store: StorageBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ApiKeys(store)
    _, token = keys.create("for a day", ["read"], expires_at=clock.now() + timedelta(days=1))
    assert keys.verify(token) is not None
    tomorrow = clock.now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(clock, "now", lambda: tomorrow)
    assert keys.verify(token) is None


def test_use_is_noted_about_once_a_minute(store: StorageBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_ = Clock()
    keys = ApiKeys(store, clock_)
    _, token = keys.create("reports", ["read"])
    keys.verify(token)
    later = clock.now() + timedelta(minutes=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    clock_.seconds += 10
    keys.verify(token)
    assert keys.list_all()[0].last_used_at == later
    assert [event.action for event in store.find(AuditEvent, EVERYWHERE)] == ["create"]


@pytest.mark.parametrize("rights", [[], ["everything"], "read"])
def test_rights_are_the_known_ones(store: StorageBackend, rights: list[str]) -> None:
    with pytest.raises(ValidationError, match="rights"):
        ApiKeys(store).create("reports", rights)


def test_a_key_that_has_expired_already_is_refused(store: StorageBackend) -> None:
    with pytest.raises(ValidationError, match="future"):
        ApiKeys(store).create("reports", ["read"], expires_at=datetime(2020, 1, 1, tzinfo=UTC))


def test_an_unknown_key_cannot_be_revoked(store: StorageBackend) -> None:
    with pytest.raises(NotFoundError):
        ApiKeys(store).revoke("nobody")


def test_whether_there_are_keys_is_known_a_second_later_and_stays(store: StorageBackend) -> None:
    clock_ = Clock()
    keys = ApiKeys(store, clock_)
    assert not keys.any_exist()
    key, _ = ApiKeys(store).create("first", ["read"])
    clock_.seconds += 1
    assert keys.any_exist()
    keys.revoke(key.id)
    assert ApiKeys(store).any_exist()


def test_keys_do_not_travel_and_cannot_be_smuggled_in(store: StorageBackend, tmp_path: Path) -> None:
    ApiKeys(store).create("reports", ["read"])
    path = tmp_path / "all.jsonl"
    export_store(store, path, audit=False)
    assert "alma_" not in path.read_text()
    forged = ApiKey(name="x", prefix="alma_0123456789ab", hash="0" * 64, rights=("admin",))
    lines = [line for _, line in read_lines(path)]
    end = {"end": {"lines": len(lines) + 1, "counts": {**lines[-1]["end"]["counts"], "api_key": 1}}}
    with line_writer(path, packed=False) as forging:
        for line in (*lines[:-1], {"kind": "api_key", "record": to_document(forged)}, end):
            forging.write(line)
    with pytest.raises(TransferError, match="records of kind api_key belong to one store"):
        import_store(store, path)
    assert len(ApiKeys(store).list_all()) == 1
