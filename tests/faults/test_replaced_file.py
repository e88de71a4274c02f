"""A store whose file is deleted or replaced under it acknowledges nothing that would be lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from alma.errors import StorageError
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import a_heuristic
from tests.faces.rest import client_of, memory_at, served
from tests.support.command_line import run as command

EVERYWHERE = Scope.everywhere()


def remove(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        if each.is_file():
            each.unlink()


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_service_whose_store_was_deleted_says_so(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    with memory_at(path) as alma, served(alma) as address, client_of(address) as client:
        assert client.post("/v1/memories", json={"content": "kept"}).status_code == 201
        assert client.get("/ready").status_code == 200

        remove(path)

        refused = client.post("/v1/memories", json={"content": "lost"})
        assert refused.status_code >= 500
        assert "was deleted or moved away while this process had it open" in refused.text
        assert "alma restore" in refused.text
        unready = client.get("/ready")
        assert unready.status_code == 503
        assert "alma restore" in unready.text
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("name", ["alma.db", "alma.db-wal"])
def test_nothing_is_stored_once_a_file_is_gone(tmp_path: Path, name: str) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as storage:
        storage.save(a_heuristic(id="a"))
        (tmp_path / name).unlink()
        with pytest.raises(StorageError, match="was deleted"):
            storage.save(a_heuristic(id="b"))
        with pytest.raises(StorageError, match="was deleted"):
            storage.require_in_place()


def test_a_transaction_that_began_before_is_not_committed(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    with SQLiteStorage(path) as storage, pytest.raises(StorageError, match="was deleted"), storage.transaction() as tx:
        tx.save(a_heuristic(id="a"))
        remove(path)


def test_the_replacement_of_a_store_in_use_stays_whole(tmp_path: Path) -> None:
    path, backup = tmp_path / "alma.db", tmp_path / "backup.db"
    storage = SQLiteStorage(path)
    storage.save_many([a_heuristic(id=f"kept-{n}") for n in range(300)])
    storage.copy_to(backup)
    storage.save_many([a_heuristic(id=f"later-{n}", strategy=f"say {n} " * 50) for n in range(2000)])

    backup.replace(path)
    with pytest.raises(StorageError, match="was replaced by another file"):
        storage.save(a_heuristic(id="lost"))
    storage.close()

    with SQLiteStorage(path) as again:
        assert again.count(Heuristic, EVERYWHERE) == 300
        again.save(a_heuristic(id="new"))
    assert is_sound(path)


def test_a_new_store_in_the_same_place_keeps_its_log(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    storage = SQLiteStorage(path)
    storage.save(a_heuristic(id="old"))
    remove(path)
    with SQLiteStorage(path) as new:
        new.save(a_heuristic(id="new"))
        storage.close()
        assert (tmp_path / "alma.db-wal").exists()
        new.save(a_heuristic(id="newer"))
    with SQLiteStorage(path) as again:
        assert again.count(Heuristic, EVERYWHERE) == 2


def test_a_folder_of_files_that_was_removed_takes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with FileBasedStorage(folder) as storage:
        storage.save(a_heuristic(id="a"))
        shutil.rmtree(folder)
        with pytest.raises(StorageError, match="was deleted or moved away"):
            storage.save(a_heuristic(id="b"))
        with pytest.raises(StorageError, match="was deleted or moved away"):
            storage.require_in_place()


def test_the_doctor_runs_a_quick_check(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    with memory_at(path) as alma:
        for number in range(300):
            alma.storage.save(a_heuristic(id=f"h{number}", strategy=f"strategy {number} " * 20))
    sound = command("doctor", "--store", str(path))
    assert "quick_check finds nothing wrong" in sound.stdout
    with path.open("r+b") as file:
        for page in range(20, 40):
            file.seek(8192 * page)
            file.write(b"\x07" * 64)
    damaged = command("doctor", "--store", str(path))
    assert damaged.returncode == 1
    assert "alma restore" in damaged.stdout


def test_another_process_that_comes_and_goes_leaves_the_log_in_place(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    script = "import sys; from alma.storage.sqlite_local import SQLiteStorage; SQLiteStorage(sys.argv[1]).close()"
    with SQLiteStorage(path) as storage:
        storage.save(a_heuristic(id="a"))
        with storage.snapshot(), storage._connections.lent(), storage._connections.lent():
            # Further connections of this process must not let go of the locks that the first ones have.
            pass
        subprocess.run([sys.executable, "-c", script, str(path)], check=True)
        assert (tmp_path / "alma.db-wal").exists()
        storage.save(a_heuristic(id="b"))
