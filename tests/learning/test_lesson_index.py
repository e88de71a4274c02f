"""What a process remembers of its agents' tasks: it finds what a search of the whole store finds, at a fixed cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from alma import ALMA, AntiPattern, Heuristic, Outcome
from alma.learning.lesson_index import Entry, Floats, VectorTable, unit
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.sqlite_local import SQLiteStorage

SHOP = Scope(project_id="shop", agent="helena")
STRATEGIES = ("restart the queue", "rebuild the index", "never restart the queue", "measure first")
_DIMS = 384


def opened(path: Path | str) -> ALMA:
    return ALMA.quickstart(path, "shop", embedding_provider="mock")


def near(topic: int, seed: int, noise: float = 0.5) -> list[float]:
    """A vector of a topic: those of one topic have a cosine of about 0.8, those of two hardly any."""
    centre = np.random.default_rng(topic).normal(size=_DIMS)
    found: list[float] = (centre + noise * np.random.default_rng(10_000 + seed).normal(size=_DIMS)).tolist()
    return found


def learn(alma: ALMA, n: int, topic: int, strategy: str, success: bool, noise: float = 0.5) -> str | None:
    task = f"task {n} about topic {topic}"
    return alma.learn("helena", task, success, strategy, embedding=near(topic, n, noise)).outcome.lesson_id


def fill_index(alma: ALMA) -> None:
    """Learn so many new things that the process reads all it needs and searches no more."""
    for n in range(12):
        learn(alma, 900 + n, 900 + n, "say hello", True)
    assert alma.learning.planner.index.indexes(SHOP)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_process_that_remembers_learns_what_one_that_searches_everything_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stream = [(n, chance.randrange(7), chance.choice(STRATEGIES), chance.random() < 0.6) for n in range(50)]
    with opened(tmp_path / "one.db") as remembering:
        fill_index(remembering)
        for each in stream:
            learn(remembering, *each)
        ours = learned_by(remembering)
    with opened(tmp_path / "other.db") as alma:
        fill_index(alma)
    for each in stream:
        # A new process has an empty index and searches the whole store.
        with opened(tmp_path / "other.db") as forgetful:
            learn(forgetful, *each)
    with opened(tmp_path / "other.db") as alma:
        assert learned_by(alma) == ours


def learned_by(alma: ALMA) -> tuple[object, ...]:
    storage = alma.storage
    return (
        {each.task_description: each.lesson_id for each in storage.find(Outcome, SHOP)},
        {each.id: (each.strategy, each.success_count, each.occurrence_count) for each in storage.find(Heuristic, SHOP)},
        {each.id: (each.pattern, each.occurrence_count) for each in storage.find(AntiPattern, SHOP)},
    )


def test_what_another_process_learned_since_counts_as_well(place: str) -> None:
    with opened(place) as one, opened(place) as other:
        fill_index(one)
        fill_index(other)
        lessons = {learn(alma, n, 1, "restart the queue", True) for n, alma in enumerate([one, other, one, other])}
        assert len(lessons) == 1
        (rule,) = [each for each in one.storage.find(Heuristic, SHOP) if each.strategy == "restart the queue"]
        assert (rule.success_count, rule.occurrence_count) == (4, 4)
        assert learn(one, 9, 1, "restart the queue", False) == rule.id
        assert other.storage.require(Heuristic, rule.id, SHOP).occurrence_count == 5


def test_a_rule_that_another_process_wrote_is_strengthened(place: str) -> None:
    with opened(place) as one, opened(place) as other:
        fill_index(one)
        rule = Heuristic(
            agent="helena", project_id="shop", condition="t", strategy="restart the queue", embedding=near(5, 0)
        )
        other.storage.save(rule)
        assert learn(one, 1, 5, "restart the queue", True) == rule.id
        other.storage.delete(Heuristic, [rule.id], SHOP)
        other.storage.delete(Outcome, [each.id for each in one.storage.find(Outcome, SHOP)], SHOP)
        assert learn(one, 2, 5, "restart the queue", True) != rule.id


def test_a_lesson_that_was_merged_into_another_is_not_begun_again(place: str) -> None:
    with opened(place) as one, opened(place) as other:
        fill_index(one)
        lesson = learn(one, 1, 5, "restart the queue", True)
        merged = [each for each in other.storage.find(Outcome, SHOP) if each.lesson_id == lesson]
        other.storage.save_many(each.replace(lesson_id="the lesson that stays") for each in merged)
        assert learn(one, 2, 5, "restart the queue", True) == "the lesson that stays"


def test_threads_that_remember_make_one_heuristic(place: str) -> None:
    with opened(place) as alma, ThreadPoolExecutor(4) as threads:
        fill_index(alma)
        list(threads.map(lambda n: learn(alma, n, 1, "restart the queue", n % 4 > 0), range(24)))
        (rule,) = [each for each in alma.storage.find(Heuristic, SHOP) if each.strategy == "restart the queue"]
        assert (rule.success_count, rule.occurrence_count) == (18, 24)


def test_what_is_rolled_back_is_not_remembered(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        with pytest.raises(ZeroDivisionError), alma.storage.transaction():
            learn(alma, 1, 1, "restart the queue", True)
            raise ZeroDivisionError
        learn(alma, 2, 1, "restart the queue", True)
        assert {each.task_description for each in alma.storage.find(Outcome, SHOP)} >= {"task 2 about topic 1"}
        assert learn(alma, 3, 1, "restart the queue", True) is not None
        assert not [each for each in alma.storage.find(Heuristic, SHOP) if each.strategy == "restart the queue"]


def test_what_is_learned_with_given_vectors_needs_no_model(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        for _ in range(3):
            learned = alma.learn("helena", "restore the backup", True, "stop the writers", embedding=near(3, 0))
        assert learned.heuristic is not None
        stored = alma.storage.require(Heuristic, learned.heuristic.id, SHOP).embedding
        assert stored is not None
        assert np.allclose(list(stored), near(3, 0), atol=1e-5)


def test_what_is_made_of_an_outcome_is_indexed_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        for n in range(3):
            learn(alma, n, 1, "restart the queue", True)
        for n in range(4):
            learn(alma, 10 + n, 1, "measure first", False)
        index = alma.learning.planner.index
        with alma.storage.snapshot() as tx:
            assert index.position == tx.vector_position()
        (rule,) = [each for each in alma.storage.find(Heuristic, SHOP) if each.strategy == "restart the queue"]
        vector = unit(Vector(near(1, 0)))
        found = index.near(SHOP, vector, 0.3, (8, 8))
        assert found is not None
        assert rule.id in {entry.id for _, entry in found[1]}
        assert alma.storage.find(AntiPattern, SHOP)


def test_a_warning_says_what_did_better_on_similar_tasks(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        for n in range(3):
            learn(alma, n, 1, "restart the queue", n > 0)
            learn(alma, 20 + n, 1, "rebuild the index", True)
        for n in range(4):
            learn(alma, 10 + n, 1, "measure first", False)
        (warning,) = alma.storage.find(AntiPattern, SHOP)
        assert (warning.pattern, warning.better_alternative) == ("measure first", "rebuild the index")


def test_a_full_table_forgets_what_was_met_longest_ago() -> None:
    table = VectorTable(4)
    for n in range(4):
        table.put(_axis(n), Entry(f"{n}", "s", "l"))
    table.put(_axis(0), Entry("0 again", "s", "l", failed=True), repeats="0")
    table.put(_axis(7), Entry("7", "s", "l"))
    found = {n: [entry.id for _, entry in table.near(_axis(n), 0.9, 4)] for n in (0, 1, 2, 3, 7)}
    assert found == {0: ["0 again"], 1: [], 2: ["2"], 3: ["3"], 7: ["7"]}
    assert table.near(_axis(0), 0.9, 4)[0][1].failed


@pytest.mark.parametrize("dims", [8, _DIMS, 1536])
@pytest.mark.parametrize("noise", [0.2, 0.7, 1.2])
def test_a_table_finds_what_comparing_all_of_it_finds(dims: int, noise: float) -> None:
    rng = np.random.default_rng(dims)
    centres = rng.normal(size=(20, dims))
    vectors = [_of_length_one(centres[n % 20] + noise * rng.normal(size=dims)) for n in range(400)]
    table = VectorTable(400)
    for n, vector in enumerate(vectors):
        table.put(vector, Entry(f"{n}", "s", "l"))
    for asked in vectors[:40]:
        for least in (0.5, 0.65):
            cosines = np.stack(vectors) @ asked
            expected = {f"{n}" for n in range(400) if cosines[n] >= least + 1e-5}
            found = table.near(asked, least, 400)
            assert expected <= {entry.id for _, entry in found}
            assert all(abs(cosine - cosines[int(entry.id)]) < 1e-5 for cosine, entry in found)
            assert [cosine for cosine, _ in found] == sorted((cosine for cosine, _ in found), reverse=True)


@pytest.mark.parametrize("dims", [_DIMS, 1536])
@pytest.mark.parametrize("least", [0.5, 0.65])
def test_what_lies_at_the_limit_is_found(dims: int, least: float) -> None:
    rng = np.random.default_rng(dims)
    asked = _of_length_one(rng.normal(size=dims))
    table = VectorTable(2048)
    for n in range(2048):
        other = rng.normal(size=dims)
        aside = _of_length_one(other - asked * (other @ asked))
        cosine = least + 0.001 if n < 100 else 0.0
        table.put(_of_length_one(cosine * asked + np.sqrt(1 - cosine**2) * aside), Entry(f"{n}", "s", "l"))
    assert {entry.id for _, entry in table.near(asked, least, 2048)} == {f"{n}" for n in range(100)}


def test_what_was_dropped_from_a_table_is_near_nothing() -> None:
    table = VectorTable(4)
    vector = unit(Vector(near(1, 1)))
    table.put(vector, Entry("a", "s", "l"))
    table.drop("a")
    assert table.near(vector, 0.5, 4) == []


def _of_length_one(vector: NDArray[np.float64]) -> Floats:
    made: Floats = (vector / np.linalg.norm(vector)).astype(np.float32)
    return made


def _axis(n: int) -> Floats:
    axis: Floats = np.eye(8, dtype=np.float32)[n]
    return axis


# ---------------------------------------------------------------------- the cost of one learn


@contextmanager
def statements(alma: ALMA) -> Iterator[list[str]]:
    """The statements that are run meanwhile, without those that SQLite runs for itself."""
    run: list[str] = []
    assert isinstance(alma.storage, SQLiteStorage)
    with alma.storage._connections.lent() as connection:
        connection.set_trace_callback(lambda sql: run.append(sql) if not sql.startswith("--") else None)
    yield run
    with alma.storage._connections.lent() as connection:
        connection.set_trace_callback(None)


def test_one_more_success_takes_few_statements(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        for n in range(5):
            learn(alma, n, 1, "restart the queue", True)
        with statements(alma) as run:
            learn(alma, 6, 1, "restart the queue", True)
        assert len(run) <= 20, "\n".join(run)


def test_a_new_task_takes_few_statements_however_much_is_known(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        fill_index(alma)
        taken = []
        for n in range(100, 103):
            with statements(alma) as run:
                learn(alma, n, n, "restart the queue", n % 2 == 0)
            taken.append(len(run))
            for more in range(40):
                learn(alma, 1000 * n + more, 1000 * n + more, "rebuild the index", True)
        assert max(taken) <= 17
        assert len(set(taken)) == 1
