"""The files of the mapped index: persistence, sharing, corruption and rebuilding."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import Transaction
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.files import IndexFiles
from alma.vectors.mapped.state import Tuning
from tests.support.small_disk import small_disk

DIMS = 16
EVERYWHERE = Scope.everywhere()
EAGER = Tuning(exact_rows=20, coarse_rows=40, flush_rows=10, inline_rows=50, page_rows=16, sweep_after=5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "alma.db.vectors"


def vector(seed: object) -> list[float]:
    source = random.Random(repr(seed))
    return [source.gauss() for _ in range(DIMS)]


def fill(store: SQLiteStorage, numbers: range, agent: str = "helena") -> None:
    store.save_many([make.a_heuristic(id=f"{agent}{n}", agent=agent, embedding=vector((agent, n))) for n in numbers])


@contextmanager
def an_index(store: SQLiteStorage, folder: Path | None, tuning: Tuning = EAGER) -> Iterator[MappedIndex]:
    """An index with nothing left to do."""
    with closing(MappedIndex(store, folder, tuning=tuning)) as index:
        assert index.settle(30)
        yield index


def kept_rows(folder: Path) -> int:
    feed = json.loads(head_of(folder).read_text())["feed"]
    return IndexFiles(folder, feed, "default", DIMS).load().base.size


def check(store: SQLiteStorage, index: MappedIndex) -> None:
    """The index and the store agree, everywhere and in every scope."""
    for scope in (EVERYWHERE, *(Scope(agent=agent) for agent in ("helena", "victor", "nobody"))):
        for seed in range(5):
            wanted = vector(("wanted", seed))
            assert index.search(Heuristic, wanted, scope, limit=8) == store.nearest_ids(
                Heuristic, wanted, scope, limit=8
            )


def test_an_index_is_opened_from_its_files(store: SQLiteStorage, folder: Path) -> None:
    fill(store, range(100))
    with an_index(store, folder) as index:
        check(store, index)
    assert kept_rows(folder) == 100
    names = {path.suffix for path in folder.rglob("*")}
    assert {".vectors", ".facts", ".names", ".codes"} <= names
    fill(store, range(100, 105), agent="victor")
    with an_index(store, folder) as index:
        check(store, index)
    assert kept_rows(folder) == 105


def test_while_it_is_built_the_store_answers_and_progress_is_told(store: SQLiteStorage, folder: Path) -> None:
    fill(store, range(300))
    told: list[tuple[int, int]] = []
    with closing(
        MappedIndex(store, folder, tuning=EAGER, progress=lambda done, all_: told.append((done, all_)))
    ) as index:
        check(store, index)
        assert index.settle(30)
        check(store, index)
    assert told[-1] == (300, 300)
    assert len(told) > 5
    assert kept_rows(folder) == 300


def test_dead_rows_are_dropped_in_time(store: SQLiteStorage, folder: Path) -> None:
    fill(store, range(400))
    with an_index(store, folder, Tuning(flush_rows=10, sweep_after=5)) as index:
        store.delete(Heuristic, [f"helena{n}" for n in range(300)], EVERYWHERE)
        check(store, index)
        assert index.settle(30)
        assert kept_rows(folder) == 100
        check(store, index)
        fill(store, range(20), agent="victor")
        check(store, index)


def test_dead_rows_are_dropped_from_memory_too(store: SQLiteStorage) -> None:
    fill(store, range(400))
    with an_index(store, None) as index:
        store.delete(Heuristic, [f"helena{n}" for n in range(300)], EVERYWHERE)
        check(store, index)
        assert index.settle(30)
        check(store, index)


def test_two_indexes_share_their_files(store: SQLiteStorage, folder: Path) -> None:
    fill(store, range(60))
    with an_index(store, folder) as one, an_index(store, folder) as two:
        for n in range(6):
            fill(store, range(n * 25, n * 25 + 25), agent="victor")
            check(store, (one, two)[n % 2])
            store.delete(Heuristic, [f"helena{n}", f"victor{n * 25}"], EVERYWHERE)
            check(store, (two, one)[n % 2])
        assert one.settle(30)
        assert two.settle(30)
        check(store, one)
        check(store, two)


def test_a_snapshot_that_is_held_keeps_seeing_what_it_saw(store: SQLiteStorage, folder: Path) -> None:
    fill(store, range(30))
    with an_index(store, folder) as index:
        with store.snapshot():
            before = index.search(Heuristic, vector("x"), EVERYWHERE, limit=5)
            writer = threading.Thread(target=change_everything, args=(store, index))
            writer.start()
            writer.join()
            assert index.search(Heuristic, vector("x"), EVERYWHERE, limit=5) == before
        check(store, index)


def change_everything(store: SQLiteStorage, index: MappedIndex) -> None:
    store.save_many([make.a_heuristic(id=f"helena{n}", embedding=vector(("new", n))) for n in range(30)])
    check(store, index)
    index.settle(30)


def alike(seed: int) -> list[float]:
    """A vector that has most in common with all others, as those of some models have."""
    source = random.Random(seed)
    return [10 + source.gauss() for _ in range(DIMS)]


@pytest.mark.parametrize("from_files", [False, True])
def test_vectors_that_are_all_alike_are_told_apart(store: SQLiteStorage, folder: Path, from_files: bool) -> None:
    store.save_many([make.a_heuristic(id=f"h{n}", embedding=alike(n)) for n in range(4_000)])
    tuning = replace(EAGER, page_rows=1_000, flush_rows=1_000)
    with an_index(store, folder, tuning) as index:
        if not from_files:
            assert recall(store, index) >= 0.98
    if from_files:
        with an_index(store, folder, tuning) as index:
            assert recall(store, index) >= 0.98


def recall(store: SQLiteStorage, index: MappedIndex) -> float:
    """The share of the ten nearest that an index finds, for questions that are like the vectors."""
    found = 0
    for n in range(20):
        exact = store.nearest_ids(Heuristic, alike(-n), EVERYWHERE, limit=10)
        near = {each.record_id for each in index.search(Heuristic, alike(-n), EVERYWHERE, limit=10)}
        found += len(near.intersection(key for key, _ in exact))
    return found / 200


# ---------------------------------------------------------------------- files that cannot be trusted


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def zero_a_tenth(path: Path) -> None:
    content = path.read_bytes()
    middle, size = len(content) // 2, len(content) // 10
    path.write_bytes(content[:middle] + bytes(size) + content[middle + size :])


def head_of(folder: Path) -> Path:
    return next(folder.rglob("head.json"))


def change_head(folder: Path, **changes: object) -> None:
    head = head_of(folder)
    head.write_text(json.dumps({**json.loads(head.read_text()), **changes}))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "vectors cut": lambda folder: cut(next(folder.rglob("*.vectors"))),
    "facts cut": lambda folder: cut(next(folder.rglob("*.facts"))),
    "names cut": lambda folder: cut(next(folder.rglob("*.names"))),
    "vectors gone": lambda folder: next(folder.rglob("*.vectors")).unlink(),
    "facts zeroed": lambda folder: (p := next(folder.rglob("*.facts"))).write_bytes(bytes(p.stat().st_size)),
    "vectors zeroed": lambda folder: (p := next(folder.rglob("*.vectors"))).write_bytes(bytes(p.stat().st_size)),
    "vectors of noise": lambda folder: make_noise(next(folder.rglob("*.vectors"))),
    "facts of noise": lambda folder: make_noise(next(folder.rglob("*.facts"))),
    "vectors zeroed in part": lambda folder: zero_a_tenth(next(folder.rglob("*.vectors"))),
    "facts zeroed in part": lambda folder: zero_a_tenth(next(folder.rglob("*.facts"))),
    "codes cut": lambda folder: cut(next(folder.rglob("*.codes"))),
    "codes zeroed in part": lambda folder: zero_a_tenth(next(folder.rglob("*.codes"))),
    "head cut": lambda folder: cut(head_of(folder)),
    "head of tomorrow": lambda folder: change_head(folder, format=2),
    "head with more": lambda folder: change_head(folder, colour="blue"),
    "head of another model": lambda folder: change_head(folder, model="other"),
    "head ahead of the store": lambda folder: change_head(folder, position=10**9),
    "head with too many rows": lambda folder: change_head(folder, rows=10**6),
    "head with a path": lambda folder: change_head(folder, generation="../../../etc"),
    "head gone": lambda folder: head_of(folder).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_made_anew(store: SQLiteStorage, folder: Path, damage: str) -> None:
    fill(store, range(100))
    with an_index(store, folder):
        pass
    DAMAGE[damage](folder)
    with closing(MappedIndex(store, folder, tuning=EAGER)) as index:
        check(store, index)
        assert index.settle(30)
        check(store, index)
    assert kept_rows(folder) == 100


# A part of what is in use is not looked through again.
@pytest.mark.parametrize("damage", [name for name in DAMAGE if "in part" not in name])
def test_files_that_are_damaged_while_they_are_used_are_made_anew(
    store: SQLiteStorage, folder: Path, damage: str
) -> None:
    fill(store, range(100))
    with an_index(store, folder) as index:
        check(store, index)
        DAMAGE[damage](folder)
        check(store, index)
        fill(store, range(30), agent="victor")
        assert index.settle(30)
        check(store, index)
    with an_index(store, folder) as index:
        check(store, index)
    assert kept_rows(folder) == 130


def test_the_files_of_another_store_are_not_used(store: SQLiteStorage, folder: Path, tmp_path: Path) -> None:
    fill(store, range(100))
    with SQLiteStorage(tmp_path / "other.db", embedding_dim=DIMS) as other:
        fill(other, range(80), agent="victor")
        with an_index(other, tmp_path / "other.vectors"):
            pass
    shutil.copytree(tmp_path / "other.vectors", folder)
    with closing(MappedIndex(store, folder, tuning=EAGER)) as index:
        check(store, index)
        assert index.settle(30)
        check(store, index)
    assert kept_rows(folder) == 100


def test_a_store_that_is_made_anew_with_one_other_text_is_noticed(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "alma.db"
    for changed in range(3):
        path.unlink(missing_ok=True)
        with SQLiteStorage(path, embedding_dim=DIMS) as store:
            vectors = [vector((n, changed) if n == 101 else n) for n in range(200)]
            store.save_many([make.a_heuristic(id=f"h{n}", embedding=each) for n, each in enumerate(vectors)])
            with an_index(store, folder) as index:
                assert index.search(Heuristic, vectors[101], EVERYWHERE, limit=1)[0].record_id == "h101"


def find_in_a_store_made_anew(path: Path, folder: Path, agent: str) -> None:
    path.unlink(missing_ok=True)
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        store.save_many([make.a_heuristic(id=f"h{n}", agent=agent, embedding=vector(n)) for n in range(30)])
        with an_index(store, folder) as index:
            found = index.search(Heuristic, vector(7), Scope(project_id="shop", agent=agent), limit=1)
            assert [each.record_id for each in found] == ["h7"]


def test_files_of_before_feeds_had_names_are_used_and_looked_at(tmp_path: Path, folder: Path) -> None:
    for agent in ("helena", "victor"):
        find_in_a_store_made_anew(tmp_path / "alma.db", folder, agent)
        change_head(folder, feed="")
        assert kept_rows(folder) == 30


def test_a_store_that_is_made_anew_with_the_same_texts_of_others_is_noticed(tmp_path: Path, folder: Path) -> None:
    for agent in ("helena", "victor"):
        find_in_a_store_made_anew(tmp_path / "alma.db", folder, agent)


def test_what_loses_its_session_is_not_a_reason_to_make_the_files_anew(
    store: SQLiteStorage, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.save(Session(id="s1"))
    store.save_many([make.a_memory(id=f"m{n}", session_id="s1", embedding=vector(n)) for n in range(30)])
    with an_index(store, folder):
        pass
    store.delete(Session, ["s1"], EVERYWHERE)
    with an_index(store, folder) as index:
        assert index.search(Memory, vector(7), Scope(session_id="s1"), limit=1) == []
        assert index.search(Memory, vector(7), EVERYWHERE, limit=1)[0].record_id == "m7"
    assert not caplog.records


def test_a_backup_that_is_put_back_is_noticed(tmp_path: Path, folder: Path) -> None:
    path, backup = tmp_path / "alma.db", tmp_path / "backup.db"
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        fill(store, range(60))
    shutil.copy(path, backup)
    with SQLiteStorage(path, embedding_dim=DIMS) as store, an_index(store, folder):
        fill(store, range(60, 90))
    shutil.copy(backup, path)
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        fill(store, range(60), agent="victor")
        with an_index(store, folder) as index:
            check(store, index)
    assert kept_rows(folder) == 120


# ---------------------------------------------------------------------- no files


def test_a_store_that_goes_on_while_it_is_looked_at_is_not_taken_for_another(
    store: SQLiteStorage, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, range(20))
    with an_index(store, folder) as index:
        snapshot = store.snapshot

        @contextmanager
        def overtaken() -> Iterator[Transaction]:
            with snapshot() as tx:
                yield tx
            monkeypatch.undo()
            fill(store, range(20, 25))
            check(store, index)

        monkeypatch.setattr(store, "snapshot", overtaken)
        index._upkeep._check()
        check(store, index)
    assert "does not fit" not in caplog.text


def test_without_a_folder_it_works_from_memory(store: SQLiteStorage, tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("this is no folder")
    for folder in (None, occupied):
        with an_index(store, folder) as index:
            fill(store, range(200))
            check(store, index)
            assert index.settle(30)
            fill(store, range(30), agent="victor")
            check(store, index)


def test_on_a_full_disk_it_goes_on_from_memory(store: SQLiteStorage) -> None:
    with small_disk(1) as disk, closing(MappedIndex(store, disk / "vectors", tuning=EAGER)) as index:
        fill(store, range(100))
        check(store, index)
        assert index.settle(30)
        (disk / "ballast").write_bytes(bytes(_room(disk)))
        for n in range(1, 5):
            fill(store, range(100 * n, 100 * n + 100))
            check(store, index)
            assert index.settle(30)
        check(store, index)


def _room(disk: Path) -> int:
    return shutil.disk_usage(disk).free
