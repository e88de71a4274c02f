"""Coming and going by command: what is printed, what it exits with, what is there afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alma.bootstrap import open_existing, open_storage
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.testing import builders as make
from tests.support.command_line import run as alma

EVERYWHERE = Scope.everywhere()


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    path = tmp_path / "contexts.jsonl"
    rows = [{"context_id": f"c{n}", "context_data": {"text": f"fact {n}"}, "embedding": [0.1, 0.2]} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    return path


def test_import_counts_what_came_and_names_what_could_not(contexts: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "alma.db")
    shown = alma("import", str(contexts), "--from", "contextual-memory", "--into", store, "--project", "shop")
    assert shown.returncode == 0, shown.stderr
    assert "could not come: line 4: malformed JSON" in shown.stdout
    with open_storage(store, embedding_model="all-MiniLM-L6-v2") as storage:
        assert storage.count(Memory, Scope(project_id="shop")) == 3
        storage.save(make.a_memory(embedding=[0.0] * 383 + [1.0]))
    again = alma("import", str(contexts), "--from", "contextual-memory", "--into", store, "--project", "shop", "--json")
    report = json.loads(again.stdout)
    assert (report["new"], report["unchanged"], report["rejected"][0]["where"]) == ({}, {"memory": 3}, "line 4")


def test_a_dry_import_makes_no_memory(contexts: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "alma.db")
    shown = alma("import", str(contexts), "--from", "contextual-memory", "--into", store, "--dry-run")
    assert "nothing was changed" in shown.stdout
    assert not Path(store).exists()


def test_export_import_backup_restore_and_merge_go_round(tmp_path: Path) -> None:
    places = {name: str(tmp_path / f"{name}.db") for name in ("one", "two", "three", "four")}
    with open_storage(places["one"], 4, embedding_model="tiny") as storage:
        storage.save(make.a_memory(id="m", embedding=[1, 0, 0, 0]))
    export = str(tmp_path / "all.jsonl.gz")
    steps = [
        ["export", places["one"], export],
        ["import", export, "--from", "jsonl", "--into", places["two"]],
        ["backup", places["two"], str(tmp_path / "backup.db")],
        ["restore", str(tmp_path / "backup.db"), places["three"]],
        ["merge", places["three"], places["four"]],
        ["merge", places["three"], f"file://{tmp_path / 'folder'}"],
    ]
    for step in steps:
        ran = alma(*step, "--json")
        assert ran.returncode == 0, ran.stderr
        json.loads(ran.stdout)
    for place in (places["four"], f"file://{tmp_path / 'folder'}"):
        with open_existing(place) as storage:
            assert (storage.embedding_model, storage.embedding_dim) == ("tiny", 4)
            assert list(storage.require(Memory, "m", EVERYWHERE).embedding or ()) == [1, 0, 0, 0]


def test_one_project_is_exported(tmp_path: Path) -> None:
    store = str(tmp_path / "alma.db")
    with open_storage(store) as storage:
        storage.save_many([make.a_memory(project_id="shop"), make.a_memory(project_id="bank")])
    shown = alma("export", store, str(tmp_path / "shop.jsonl"), "--project", "shop", "--json")
    assert json.loads(shown.stdout)["counts"] == {"memory": 1}


def test_conflicts_of_a_merge_are_shown_with_both_values(tmp_path: Path) -> None:
    for name in ("red", "blue"):
        with open_storage(str(tmp_path / f"{name}.db")) as storage:
            storage.save(make.a_memory(id="m", content=f"it is {name}"))
    shown = alma("merge", str(tmp_path / "red.db"), str(tmp_path / "blue.db"), "--dry-run")
    assert "it is red" in shown.stdout
    assert "it is blue" in shown.stdout
    assert "nothing was changed" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["import", "x.json", "--from", "siri", "--into", "a.db"], 2, "choose session-memory-agent"),
        (["import", "x.json", "--from", "mem0", "--into", "a.db"], 2, "there is no file x.json"),
        (["import", "x.json", "--from", "mem0", "--into", "a.db", "--zone", "Mars"], 2, "unknown time zone"),
        (["export", "nowhere.db", "x.jsonl"], 2, "there is no store at nowhere.db"),
        (["backup", "nowhere.db", "x.db"], 2, "there is no store at nowhere.db"),
        (["restore", "nothing.db", "a.db"], 2, "there is no file nothing.db"),
        (["merge", "nowhere.db", "a.db"], 2, "there is no store at nowhere.db"),
        (["merge", "a.db", "a.db"], 2, "into itself"),
    ],
)
def test_mistakes_are_one_sentence_and_an_exit_code(
    arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = alma(*arguments)
    assert ran.returncode == code
    assert said in ran.stderr
    assert not list(tmp_path.iterdir())
    assert len(ran.stderr.strip().splitlines()) == 1


def test_a_restore_over_something_and_a_torn_export_exit_as_storage_errors(tmp_path: Path) -> None:
    store = str(tmp_path / "alma.db")
    with open_storage(store) as storage:
        storage.save(make.a_memory())
    alma("backup", store, str(tmp_path / "b.db"))
    refused = alma("restore", str(tmp_path / "b.db"), store)
    assert (refused.returncode, "--force" in refused.stderr) == (5, True)
    alma("export", store, str(tmp_path / "e.jsonl"))
    (tmp_path / "e.jsonl").write_bytes((tmp_path / "e.jsonl").read_bytes()[:-30])
    torn = alma("import", str(tmp_path / "e.jsonl"), "--from", "jsonl", "--into", store)
    assert (torn.returncode, "line" in torn.stderr) == (5, True)
