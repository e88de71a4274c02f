"""Opening a store by path or URL, and errors for unknown addresses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from alma.bootstrap import open_storage
from alma.errors import ConfigurationError, MissingDependencyError
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make


@pytest.mark.parametrize("name", ["alma.db", "a b#c?d%20é漢.db", "deep/er/alma.db"])
def test_a_store_may_be_named_by_a_path_or_by_its_text(tmp_path: Path, name: str) -> None:
    heuristic = make.a_heuristic()
    with open_storage(tmp_path / name) as store:
        store.save(heuristic)
    with open_storage(str(tmp_path / name)) as store:
        assert store.find(Heuristic, Scope.everywhere()) == [heuristic]


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_tilde_is_the_home_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_storage(f"{prefix}~/notes.db") as store:
        store.save(make.a_heuristic())
    assert (tmp_path / "notes.db").exists()


@pytest.mark.parametrize(
    "store",
    [None, 7, b"alma.db", "", " ", "mysql://x", ":memory:", "a\0b.db", "x" * 300, "file://", "file:// ", "sqlite:///"],
)
def test_what_can_be_no_store_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        open_storage(store)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [None, 7, ""])
def test_what_can_be_no_folder_is_refused(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="storage_dir must be the path of a folder"):
        FileBasedStorage(path)


def test_a_folder_is_not_a_database_and_a_file_is_not_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a folder; name a file in it"):
        SQLiteStorage(tmp_path)
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match="is a file; name a folder"):
        FileBasedStorage(tmp_path / "notes")


def test_without_its_package_postgresql_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith(("alma.storage.postgresql", "alma.storage.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDependencyError, match=r"alma-agent-memory\[postgres\]"):
        open_storage("postgresql://nobody@localhost/none")


@pytest.mark.parametrize("password", ["hunter%two", "hunter@two", "hunter/two"])
def test_a_password_that_makes_an_address_unreadable_is_not_shown(password: str) -> None:
    with pytest.raises(ConfigurationError, match="written as %25") as caught:
        open_storage(f"postgresql://ana:{password}@127.0.0.1:1/shop")
    assert "hunter" not in str(caught.value)
    assert "two" not in str(caught.value)


@pytest.mark.parametrize("rest", ["127.0.0.1:port/shop", "127.0.0.1/shop?sslmod=require"])
def test_an_address_with_a_slip_says_how_one_is_written(rest: str) -> None:
    with pytest.raises(ConfigurationError, match="must be like postgresql://user:password@host:5432/database"):
        open_storage(f"postgresql://ana:secret@{rest}")


def test_a_database_of_sqlite_in_memory_is_refused_with_what_to_open_instead() -> None:
    with pytest.raises(ConfigurationError, match="open memory://"):
        open_storage(":memory:")
