"""The audit commands, as a person runs them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from alma.bootstrap import open_storage
from alma.cli.app import app
from alma.errors import ConfigurationError
from alma.memory.audit import AuditTrail
from alma.model.governance import Attribution
from alma.testing import builders as make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "alma.db"
    with open_storage(str(place)) as store:
        store.save(make.a_memory(id="m1"), Attribution(user_id="ana"))
        store.save_many([make.a_memory(id="m2"), make.a_memory(id="m3")], Attribution(agent="helena"))
        AuditTrail(store).record_failure(
            "update", "memory", "not [allowed]", Attribution(user_id="bob"), resource_id="m1"
        )
    return place


def run(*arguments: object) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["audit", *map(str, arguments)], env={"COLUMNS": "200"})
    if isinstance(ran.exception, Exception) and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.output


def test_a_sound_log_is_told_as_such(path: Path) -> None:
    assert run("verify", path) == (0, "the log is unchanged: 3 events checked, chained from event 1 on\n")


def test_a_changed_event_is_named_and_the_exit_code_says_so(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE audit_log SET user_id = 'eve' WHERE id = 1")
    code, printed = run("verify", path)
    assert code == 1
    assert printed.splitlines()[0] == "changed: event 1 is not as it was written"
    told = json.loads(run("verify", path, "--json")[1])
    assert (told["ok"], told["findings"][0]["event_id"]) == (False, 1)


def test_a_head_that_was_kept_is_checked(path: Path, tmp_path: Path) -> None:
    kept = tmp_path / "head.json"
    kept.write_text(run("head", path, "--json")[1])
    assert run("verify", path, "--anchors", kept)[0] == 0
    rows = json.loads(kept.read_text())
    kept.write_text(json.dumps([{**row, "hash": "0" * 64} for row in rows]))
    assert run("verify", path, "--anchors", kept)[0] == 1
    kept.write_text("no heads")
    with pytest.raises(ConfigurationError, match="alma audit head --json"):
        run("verify", path, "--anchors", kept)


def test_events_are_listed_newest_first_and_filtered(path: Path) -> None:
    rows = json.loads(run("list", path, "--json")[1])
    assert [(row["who"], row["action"], row["what"], row["result"]) for row in rows] == [
        ("bob", "update", "memory m1", "not [allowed]"),
        ("helena", "create", "memory 2 records", "done"),
        ("ana", "create", "memory m1", "done"),
    ]
    assert [row["id"] for row in json.loads(run("list", path, "--json", "--record", "m3")[1])] == [2]
    assert [row["id"] for row in json.loads(run("list", path, "--json", "--failed")[1])] == [3]
    assert [row["id"] for row in json.loads(run("list", path, "--json", "--user", "ana")[1])] == [1]
    code, printed = run("list", path, "--limit", 2)
    assert code == 0
    assert "not [allowed]" in printed
    assert printed.splitlines()[-1] == "more with  --before 2"


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no store"):
        run("verify", tmp_path / "nowhere.db")
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_verified_too(postgres_dsn: str) -> None:
    with open_storage(postgres_dsn) as store:
        store.save(make.a_memory())
    assert run("verify", postgres_dsn)[0] == 0
