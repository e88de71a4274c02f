"""The `alma` command as a person meets it: run, read, exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import a_heuristic
from tests.support.command_line import run as alma
from tests.support.command_line import spawn

OLDER_STORE = Path(__file__).parent.parent / "migrations" / "data" / "alma_memory_0_4.db"


def test_help_and_version_are_there() -> None:
    assert "migrate" in spawn("--help").stdout
    assert spawn("--version").stdout.startswith("alma-agent-memory ")


def test_status_of_a_store_is_a_table_or_json(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    SQLiteStorage(path).close()
    assert "initial" in alma("migrate", "status", "--store", str(path)).stdout
    rows = json.loads(alma("migrate", "status", "--store", str(path), "--json").stdout)
    assert [(row["version"], row["name"]) for row in rows[:2]] == [(1, "initial"), (2, "passages")]
    assert all(row["applied_at"] for row in rows)


def test_a_dry_run_shows_the_sql_and_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    shutil.copy(OLDER_STORE, path)
    shown = alma("migrate", "up", "--dry-run", "--store", str(path))
    assert "CREATE TABLE heuristics" in shown.stdout
    assert path.read_bytes() == OLDER_STORE.read_bytes()
    assert alma("migrate", "up", "--store", str(path)).returncode == 0
    assert "pending" not in alma("migrate", "status", "--store", str(path)).stdout


def test_partitions_are_made_by_a_command(postgres_dsn: str) -> None:
    made = alma("partition", "--store", postgres_dsn, "--ahead", "1", "--json")
    assert made.returncode == 0, made.stderr
    names = [row["partition"] for row in json.loads(made.stdout)]
    assert "memories_default" in names
    assert len(names) == 6


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["migrate", "status", "--store", "nowhere.db"], 2, "there is no store at nowhere.db"),
        (["migrate", "status", "--store", "mongodb://x"], 2, "unknown kind of store 'mongodb'"),
        (["migrate", "status", "--store", "file:///tmp"], 2, "no schema"),
        (["partition", "--store", "alma.db"], 2, "PostgreSQL"),
        (["reembed", "--store", "nowhere.db", "--provider", "mock"], 2, "there is no store at nowhere.db"),
        (["reembed", "--store", "nowhere.db", "--provider", "tea"], 2, "unknown embedding provider 'tea'"),
        (["migrate", "status", "--store", "postgresql://x:y@127.0.0.1:1/z"], 5, "PostgreSQL: connection"),
    ],
)
def test_mistakes_get_one_sentence_and_an_exit_code(arguments: list[str], code: int, said: str) -> None:
    result = alma(*arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_store_is_moved_to_another_model_by_a_command(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    with SQLiteStorage(path) as store:
        store.save_many([a_heuristic(embedding=[1.0] * 384), a_heuristic()])
    moved = alma("reembed", "--store", str(path), "--provider", "mock", "--dimensions", "8")
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout == "2 vector(s) created; open the store with embedding_model='mock-8', embedding_dim=8\n"
    assert moved.stderr == ""
    again = alma("reembed", "--store", str(path), "--provider", "mock", "--dimensions", "8")
    assert again.stdout.startswith("0 vector(s) created")


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A configuration that says another model than the one which made the store's vectors."""
    (tmp_path / "st").mkdir()
    with SQLiteStorage(tmp_path / "st" / "alma.db", embedding_model="older") as store:
        store.save(a_heuristic(embedding=[1.0] * 384))
    file = tmp_path / "alma.yaml"
    file.write_text("alma: {project_id: p, storage_dir: st, embedding_provider: mock, embedding_dim: 8}")
    return file


def test_a_store_is_moved_to_the_model_that_its_configuration_says(configured: Path) -> None:
    refused = alma("retrieve", "forms", "--agent", "helena", "--config", str(configured))
    assert "move it to this model with alma reembed and the same --config" in refused.stderr
    moved = alma("reembed", "--config", str(configured))
    assert moved.stdout == "1 vector(s) created; open the store with embedding_model='mock-8', embedding_dim=8\n"
    assert alma("retrieve", "forms", "--agent", "helena", "--config", str(configured)).returncode == 0


def test_what_is_given_to_a_move_counts_before_what_is_configured(configured: Path) -> None:
    moved = alma("reembed", "--config", str(configured), "--provider", "mock", "--dimensions", "5")
    assert "embedding_model='mock-5', embedding_dim=5" in moved.stdout
    assert (
        "'all-MiniLM-L6-v2', embedding_dim=384"
        in alma("reembed", "--config", str(configured), "--provider", "local").stdout
    )


def test_an_import_names_the_configuration_whose_model_is_to_make_the_vectors(configured: Path) -> None:
    source = configured.with_name("mem0.json")
    source.write_text(json.dumps([{"id": "1", "memory": "likes tea", "user_id": "ana"}]))
    said = alma("import", str(source), "--from", "mem0", "--config", str(configured))
    assert f"have no vector yet: alma reembed --config {configured}\n" in said.stdout, said.stderr
    shutil.rmtree(configured.with_name("st"))
    alma("import", str(source), "--from", "mem0", "--config", str(configured), "--embed", "mock")
    assert alma("reembed", "--config", str(configured)).stdout.startswith("0 vector(s) created; ")


def test_an_older_store_is_moved_to_another_model_at_once(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    shutil.copy(OLDER_STORE, path)
    moved = alma("reembed", "--store", str(path), "--provider", "mock", "--dimensions", "16")
    assert moved.returncode == 0, moved.stderr
    for dims, options in ((16, {"embedding_model": "mock-16"}), (8, {})):
        with SQLiteStorage(path, dims, **options) as store:  # type: ignore[arg-type]
            assert store.search_vector(Heuristic, [1.0] * dims, Scope.everywhere())
