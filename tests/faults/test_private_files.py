"""Files of a store are for their user alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.paths import make_directory
from alma.storage.file_based import FileBasedStorage
from alma.testing.builders import a_heuristic
from alma.transfer import backup_store, export_store
from tests.faces.rest import memory_at


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """What is open to others than the user."""
    found = {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    return {name: oct(mode) for name, mode in found.items() if mode & 0o077}


def test_a_store_and_what_is_made_of_it_is_for_its_user_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    with memory_at(shared / ".alma" / "deeper" / "alma.db") as alma:
        alma.learn("helena", "Test the form", "success", "try it")
        alma.journal.create("a note", project_id="shop")
        alma.retrieve("Test the form", agent="helena")
        alma.retrieval.index.compact()  # type: ignore[attr-defined]
        export_store(alma.storage, shared / "export.jsonl")
        export_store(alma.storage, shared / "export.jsonl.gz")
        backup_store(alma.storage, shared / "backup.db")
        assert (shared / ".alma" / "deeper" / "alma.db-wal").exists()
        assert modes(shared) == {}
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_folder_of_files_is_for_its_user_alone(tmp_path: Path) -> None:
    with FileBasedStorage(tmp_path / "store") as storage:
        storage.save(a_heuristic(id="a"))
    assert modes(tmp_path) == {}


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o775)
    make_directory(tmp_path / "there" / "new")
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o775
    assert stat.S_IMODE((tmp_path / "there" / "new").stat().st_mode) == 0o700
