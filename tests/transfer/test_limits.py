"""Files that are larger than they look: refused in one sentence, and nothing of them is imported."""

from __future__ import annotations

import bz2
import gzip
import json
import sqlite3
import subprocess
import sys
import tracemalloc
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alma.errors import ConfigurationError, TransferError, ValidationError
from alma.importers import import_into
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.transfer import Limits, export_store, import_store, restore_store
from tests.transfer.conftest import OpenStore

EVERYWHERE = Scope.everywhere()
SMALL = Limits(row_bytes=20_000, unpacked_bytes=100_000)
ROWS = [{"context_id": f"c{n}", "session_id": "s", "context_data": {"text": f"Note {n}"}} for n in range(3)]
LONG = {"context_id": "long", "session_id": "s", "context_data": {"text": "x" * 700_000}}
CONVERSATION = {"uuid": "u", "name": "n", "created_at": "2024-05-01T10:00:00Z", "chat_messages": []}


@pytest.fixture
def store(new_store: OpenStore) -> StorageBackend:
    return new_store("sqlite")


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def array(path: Path, rows: list[Any]) -> Path:
    path.write_text(json.dumps(rows))
    return path


def database(path: Path, rows: list[Any]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE contexts (context_id, session_id, context_data)")
        values = [(row["context_id"], row["session_id"], json.dumps(row["context_data"])) for row in rows]
        connection.executemany("INSERT INTO contexts VALUES (?, ?, ?)", values)
        connection.commit()
    return path


def dump(path: Path, rows: list[Any]) -> Path:
    with closing(sqlite3.connect(database(path.with_suffix(".tmp"), rows))) as connection:
        path.write_text("".join(f"{line}\n" for line in connection.iterdump()))
    return path


FORMS = {
    "line 4": (lines, "a.jsonl"),
    "item 4": (array, "a.json"),
    "a row behind [23] of table contexts": (database, "a.db"),
    "line 6": (dump, "a.sql"),
}


@pytest.mark.parametrize("where", FORMS)
def test_a_row_that_is_too_long_is_named_and_nothing_of_the_file_comes(
    store: StorageBackend, tmp_path: Path, where: str
) -> None:
    write, name = FORMS[where]
    with pytest.raises(ConfigurationError, match=rf"{name}, {where}.*longer than 20,000 bytes.*--max-row-mb"):
        import_into(store, write(tmp_path / name, [*ROWS, LONG]), "contextual-memory", limits=SMALL, batch_size=1)
    assert store.count(Memory, EVERYWHERE) == 0


@pytest.mark.parametrize("where", FORMS)
def test_a_row_may_be_longer_where_that_is_said(store: StorageBackend, tmp_path: Path, where: str) -> None:
    write, name = FORMS[where]
    report = import_into(store, write(tmp_path / name, [*ROWS, LONG]), "contextual-memory", limits=Limits(1 << 20))
    assert (report.new["memory"], report.rejected) == (4, [])


def test_a_long_file_of_short_rows_comes(store: StorageBackend, tmp_path: Path) -> None:
    rows = [{**ROWS[0], "context_id": f"c{n}"} for n in range(500)]
    for write, name in FORMS.values():
        report = import_into(store, write(tmp_path / name, rows), "contextual-memory", limits=SMALL)
        assert report.rejected == []
    assert store.count(Memory, EVERYWHERE) == 500


def a_zip(path: Path, method: int = zipfile.ZIP_DEFLATED, size: int = 5_000_000) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("conversations.json", json.dumps([CONVERSATION]) + " " * size)
    return path


def test_an_archive_that_unpacks_to_too_much_is_refused(store: StorageBackend, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"conversations.json: it unpacks to more than 100,000 bytes"):
        import_into(store, a_zip(tmp_path / "a.zip"), "claude", limits=SMALL)
    assert store.count(Memory, EVERYWHERE) == 0
    assert import_into(store, a_zip(tmp_path / "b.zip", size=9), "claude", limits=SMALL).rows == 1


def test_an_archive_that_is_packed_in_an_unbounded_way_is_refused(store: StorageBackend, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="pack it again with the deflate method"):
        import_into(store, a_zip(tmp_path / "a.zip", zipfile.ZIP_BZIP2, 9), "claude")
    assert len(bz2.compress(b" " * 50_000_000)) < 4_096


@pytest.mark.parametrize(
    "bomb",
    [
        "INSERT INTO contexts WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 's', 0 FROM n;",
        "INSERT INTO contexts VALUES ('c', 's', zeroblob(900000000));",
    ],
)
def test_a_dump_cannot_make_more_than_it_says(store: StorageBackend, tmp_path: Path, bomb: str) -> None:
    file = tmp_path / "a.sql"
    file.write_text(f"CREATE TABLE contexts (context_id, session_id, context_data);\n{bomb}\n")
    with pytest.raises(ConfigurationError, match=r"line 2: the SQL dump cannot be run"):
        import_into(store, file, "contextual-memory", limits=SMALL)


def an_export(store: StorageBackend, path: Path) -> Path:
    store.save_many([make.a_memory(id=f"m{n}", content=f"Note {n} " + "y" * 40_000 * (n == 2)) for n in range(3)])
    export_store(store, path)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_an_export_with_a_line_that_is_too_long_is_refused(new_store: OpenStore, tmp_path: Path, name: str) -> None:
    file, other = an_export(new_store("sqlite"), tmp_path / name), new_store("sqlite")
    with pytest.raises(TransferError, match=r"line \d+: it is longer than 20,000 bytes.*nothing was imported"):
        import_store(other, file, limits=SMALL)
    assert other.count(Memory, EVERYWHERE) == 0
    assert import_store(other, file).new["memory"] == 3
    restored = new_store("sqlite")
    restore_store(file, restored)
    assert restored.count(Memory, EVERYWHERE) == 3


def test_a_compressed_export_that_unpacks_to_too_much_is_refused(store: StorageBackend, tmp_path: Path) -> None:
    file = tmp_path / "bomb.jsonl.gz"
    with gzip.open(file, "wb", compresslevel=1) as packed:
        for _ in range(64):
            packed.write(b"\x20" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(TransferError, match=r"unpacks to more than 1 MB.*--max-unpacked-mb"):
        import_store(store, file, limits=Limits(row_bytes=8 << 20, unpacked_bytes=1 << 20))
    with pytest.raises(TransferError, match="longer than 8 MB"):
        import_store(store, file, limits=Limits(row_bytes=8 << 20))
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_the_command_line_says_it_in_one_sentence_and_can_allow_more(tmp_path: Path) -> None:
    row = {**LONG, "context_data": {"text": "x" * (900_000)}, "note": "y" * 300_000}
    file = lines(tmp_path / "a.jsonl", [*ROWS, row])
    command = [sys.executable, "-m", "alma", "import", str(file), "--from", "contextual-memory"]
    command += ["--into", str(tmp_path / "alma.db")]
    refused = subprocess.run([*command, "--max-row-mb", "1"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "line 4: it is longer than 1 MB" in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr
    allowed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert allowed.returncode == 0, allowed.stderr
    assert "4 row(s) read" in allowed.stdout + allowed.stderr


@pytest.mark.parametrize("name", ["row_bytes", "unpacked_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "9"])
def test_a_limit_is_a_positive_number(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=f"{name} must be a whole number"):
        Limits(**{name: value})
