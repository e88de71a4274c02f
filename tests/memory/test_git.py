"""Git context: read from the files of real repositories, with nothing ever run that a repository says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from alma.memory.git import GitContext, read_git_context, without_credentials


def git(folder: Path, *arguments: str) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "Ana",
        "GIT_AUTHOR_EMAIL": "ana@example.org",
        "GIT_COMMITTER_NAME": "Ana",
        "GIT_COMMITTER_EMAIL": "ana@example.org",
    }
    ran = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def known(folder: Path) -> GitContext:
    found = read_git_context(folder)
    assert found is not None
    return found


def test_a_clean_repository(repository: Path) -> None:
    found = known(repository)
    assert found == GitContext(str(repository.resolve()), "main", git(repository, "rev-parse", "HEAD"), None, False)
    assert found.to_json() == {"branch": "main", "commit": found.commit, "dirty": False}
    assert not found.is_detached


def test_from_a_folder_inside(repository: Path) -> None:
    inner = repository / "deep" / "er"
    inner.mkdir(parents=True)
    assert known(inner).root == str(repository.resolve())


def test_changes_make_it_dirty(repository: Path) -> None:
    (repository / "a.txt").write_text("b")
    assert known(repository).dirty is True
    assert read_git_context(repository, with_dirty=False) == known(repository).__class__(
        str(repository.resolve()), "main", known(repository).commit, None, None
    )


def test_a_detached_head_has_a_commit_and_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    found = known(repository)
    assert (found.branch, found.is_detached) == (None, True)
    assert found.commit == git(repository, "rev-parse", "HEAD")


def test_a_branch_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    found = known(tmp_path)
    assert (found.branch, found.commit, found.is_detached) == ("trunk", None, False)


def test_packed_refs_are_read(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "feature/one")
    git(repository, "pack-refs", "--all")
    found = known(repository)
    assert (found.branch, found.commit) == ("feature/one", git(repository, "rev-parse", "HEAD"))


def test_a_worktree_has_its_own_branch_and_the_shared_remote(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "https://ana:secret@example.org/shop.git?token=x")
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    found = known(tmp_path / "side")
    assert (found.branch, found.root) == ("side", str((tmp_path / "side").resolve()))
    assert found.commit == git(repository, "rev-parse", "HEAD")
    assert found.remote == "https://example.org/shop.git"


def test_no_repository_is_none(tmp_path: Path) -> None:
    assert read_git_context(tmp_path) is None
    assert read_git_context(tmp_path / "nothing" / "here") is None


def test_without_git_only_the_dirty_state_is_unknown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    found = known(repository)
    assert (found.branch, found.dirty) == ("main", None)
    assert found.commit is not None


@pytest.mark.parametrize(
    "name", ["$(touch pwned)", "a;touch${IFS}pwned", "`touch pwned`", "--upload-pack=x", "日本語", "'\"|&"]
)
def test_a_hostile_branch_name_is_only_a_name(repository: Path, name: str) -> None:
    name = name.replace(" ", "${IFS}")
    (repository / ".git" / "HEAD").write_text(f"ref: refs/heads/{name}\n", encoding="utf-8")
    assert known(repository).branch == name
    assert not list(repository.rglob("pwned"))


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/../../../secret",
        "ref: /etc/passwd",
        "ref: refs/heads/a\x1b[31mred",
        "ref: refs/heads/" + "x" * 500,
        "ref:",
        "nonsense",
        "",
    ],
)
def test_a_hostile_head_tells_nothing(repository: Path, head: str) -> None:
    (repository / ".git" / "secret").write_text("0" * 40)
    (repository / ".git" / "HEAD").write_text(head)
    found = known(repository)
    assert (found.branch, found.commit) == (None, None)


def test_a_filter_of_the_repository_is_not_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    git(repository, "config", "filter.evil.clean", f"touch {mark}; cat")
    git(repository, "config", "core.fsmonitor", f"touch {mark}")
    (repository / ".gitattributes").write_text("*.txt filter=evil\n")
    # Of the same length, so that git has to look inside.
    (repository / "a.txt").write_text("b")
    assert known(repository).dirty is True
    assert not mark.exists()


def test_a_submodule_runs_none_of_its_programs(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "b.txt").write_text("a")
    git(inner, "add", "b.txt")
    git(inner, "commit", "-q", "-m", "inner")
    git(repository, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git(repository, "commit", "-q", "-m", "with a submodule")
    git(inner, "config", "filter.evil.clean", f"touch {mark}; cat")
    (inner / ".git" / "info" / "attributes").write_text("*.txt filter=evil\n")
    (inner / "b.txt").write_text("b")
    assert known(repository).dirty is False
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "value", "url"),
    [
        ("core.sshCommand", "touch {mark}; false", "ssh://host/a"),
        ("remote.origin.uploadpack", "touch {mark}; false", "."),
        ("protocol.ext.allow", "always", "ext::touch {mark}"),
    ],
)
def test_a_partial_clone_fetches_nothing(repository: Path, tmp_path: Path, name: str, value: str, url: str) -> None:
    mark = tmp_path / "ran"
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url.format(mark=mark),
        name: value.format(mark=mark),
    }
    for key, setting in settings.items():
        git(repository, "config", key, setting)
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert known(repository).branch == "main"
    assert not mark.exists()


def test_a_pointer_that_leads_nowhere_is_not_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: ../nowhere\n")
    assert read_git_context(tmp_path) is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ghp_token@github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://user:pass@example.org:8443/a", "https://example.org:8443/a"),
        ("ssh://git:pass@[::1]:22/a", "ssh://[::1]:22/a"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("/srv/git/a.git", "/srv/git/a.git"),
        ("user:pass@host:a", None),
        ("https://a b@x/y", None),
        ("https://[broken/x", None),
    ],
)
def test_credentials_are_taken_out_of_a_remote(url: str, shown: str | None) -> None:
    assert without_credentials(url) == shown
