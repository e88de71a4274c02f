"""The `alma` command as a person meets it: run, read, exit code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from alma.storage.sqlite_local import SQLiteStorage

OLDER_STORE = Path(__file__).parent.parent / "migrations" / "data" / "alma_memory_0_4.db"


def alma(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "alma", *arguments], capture_output=True, text=True, check=False)


def test_help_and_version_are_there() -> None:
    assert "migrate" in alma("--help").stdout
    assert alma("--version").stdout.startswith("alma-memory ")


def test_status_of_a_store_is_a_table_or_json(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    SQLiteStorage(path).close()
    assert "initial" in alma("migrate", "status", "--store", str(path)).stdout
    row, *_ = json.loads(alma("migrate", "status", "--store", str(path), "--json").stdout)
    assert (row["version"], row["name"]) == (1, "initial")
    assert row["applied_at"]


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
        (["migrate", "status", "--store", "mongodb://x"], 2, "'mongodb' is no store"),
        (["migrate", "status", "--store", "file:///tmp"], 2, "no schema"),
        (["partition", "--store", "alma.db"], 2, "PostgreSQL"),
        (["migrate", "status", "--store", "postgresql://x:y@127.0.0.1:1/z"], 5, "PostgreSQL: connection"),
    ],
)
def test_mistakes_get_one_sentence_and_an_exit_code(arguments: list[str], code: int, said: str) -> None:
    result = alma(*arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
