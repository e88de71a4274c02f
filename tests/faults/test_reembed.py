"""Moving a store to another embedding model: killed, resumed, read and written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from alma.embeddings.base import Passage
from alma.embeddings.mock import MockEmbedder
from alma.errors import EmbeddingError, ModelMismatchError, ValidationError
from alma.model.kinds import KINDS
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import Compare
from alma.model.record import Record
from alma.storage.base import DEFAULT_MODEL, StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync.reembed import Progress, reembed
from alma.testing import builders as make
from tests.faults.processes import Worker
from tests.faults.records import DIMENSIONS, EVERYWHERE, a_heuristic
from tests.faults.stores import files_address, sqlite_address

NEW = MockEmbedder(8)
RECORDS = 300

Open = Callable[..., StorageBackend]


class Counting(MockEmbedder):
    """Knows every text it encoded; `meanwhile` happens while it does."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(8)
        self.encoded: list[str] = []
        self._meanwhile = meanwhile

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        self.encoded += texts
        self._meanwhile()
        return super()._embed(texts)


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "sqlite":
            return sqlite_address(tmp_path / "alma.db")
        case "files":
            return files_address(tmp_path)
        case _:
            dsn: str = request.getfixturevalue("postgres_dsn")
            return dsn


@pytest.fixture
def open_store(address: str) -> Open:
    """Opens the store for the old model, or for another."""

    def opened(embedder: MockEmbedder | None = None) -> StorageBackend:
        scheme, _, rest = address.partition(":")
        model = embedder.model if embedder else DEFAULT_MODEL
        dims = embedder.dimension if embedder else DIMENSIONS
        if scheme == "sqlite":
            return SQLiteStorage(rest, dims, model)
        if scheme == "files":
            return FileBasedStorage(rest, dims, model)
        return PostgreSQLStorage.from_dsn(address, dims, embedding_model=model)

    return opened


@pytest.fixture
def store(open_store: Open) -> Iterator[StorageBackend]:
    with open_store() as opened:
        opened.save_many([a_heuristic(f"h{i:03}") for i in range(RECORDS)])
        yield opened


def check_found(store: StorageBackend, records: Sequence[Record]) -> None:
    """Each of these records is found first by what it says, in the new model."""
    for record in records:
        [hit] = store.search_vector(type(record), NEW.encode(record.embedded_text()), EVERYWHERE, limit=1)
        assert (hit.record.key, round(hit.score, 4)) == (record.key, 1.0)


def test_a_killed_move_goes_on_where_it_was_and_does_nothing_twice(
    address: str, store: StorageBackend, open_store: Open
) -> None:
    for batches in (3, 9):
        with Worker("reembed", address) as worker:
            for _ in range(batches):
                worker.line()
            worker.kill()
    missing = store.without_vector(Heuristic, NEW.model, EVERYWHERE, limit=RECORDS)
    assert 0 < len(missing) <= RECORDS - 100
    counting = Counting()
    assert reembed(store, counting) == len(missing)
    assert sorted(counting.encoded) == sorted(record.text() for record in missing)
    with open_store(NEW) as moved:
        check_found(moved, moved.find(Heuristic, EVERYWHERE))
    assert reembed(store, Counting()) == 0


def test_two_moves_at_once_share_the_work(store: StorageBackend, open_store: Open) -> None:
    """Both encode at the same time, step by step, as long as neither has finished."""
    both = threading.Barrier(2)

    def together() -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait()

    def move(embedder: Counting) -> None:
        with open_store() as opened:
            made.append(reembed(opened, embedder, batch_size=10))
        both.abort()

    made: list[int] = []
    embedders = [Counting(together), Counting(together)]
    threads = [threading.Thread(target=move, args=(each,)) for each in embedders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(made) >= RECORDS / 4
    assert sum(len(each.encoded) for each in embedders) <= 1.6 * RECORDS
    with open_store(NEW) as moved:
        check_found(moved, moved.find(Heuristic, EVERYWHERE))


def test_a_move_does_not_wait_for_one_that_was_killed_beside_it(
    address: str, store: StorageBackend, open_store: Open
) -> None:
    with Worker("reembed", address) as worker:
        worker.line()
        first = iter([worker.kill])
        reembed(store, Counting(lambda: [kill() for kill in first]), batch_size=10)
    assert store.count_without_vector(Heuristic, NEW.model, EVERYWHERE) == 0


def test_every_kind_that_is_embedded_moves(open_store: Open) -> None:
    records: list[Record] = [
        make.a_heuristic(),
        make.an_outcome(strategy_used="wait"),
        make.a_preference(),
        make.some_knowledge(),
        make.an_anti_pattern(),
        make.a_memory(title="a title"),
        make.a_pattern(),
    ]
    assert {type(record) for record in records} == {cls for cls in KINDS if cls.spec.embeds}
    with open_store() as store:
        store.save_many([*records, make.a_session()])
        assert reembed(store, NEW) == len(records)
    with open_store(NEW) as moved:
        check_found(moved, records)


def test_progress_is_told_and_starts_where_the_last_run_ended(store: StorageBackend) -> None:
    texts = {key: store.require(Heuristic, key, EVERYWHERE).text() for key in ("h000", "h001")}
    store.put_vectors(Heuristic, {key: NEW.encode(text) for key, text in texts.items()}, NEW.model)
    told: list[Progress] = []
    reembed(store, NEW, told.append, batch_size=100)
    assert [progress.done for progress in told] == [2, 102, 202, 300, 300]
    assert {progress.total for progress in told} == {RECORDS}


def test_reads_and_searches_go_on_meanwhile(store: StorageBackend, open_store: Open) -> None:
    expected = store.find(Heuristic, EVERYWHERE)[7]
    assert expected.embedding is not None
    stop = threading.Event()
    answers: list[str] = []

    def read() -> None:
        with open_store() as reader:
            while not stop.is_set():
                [hit] = reader.search_vector(Heuristic, expected.embedding, EVERYWHERE, limit=1)
                answers.append(hit.record.id)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert reembed(store, NEW, batch_size=20) == RECORDS
    finally:
        stop.set()
        reader.join()
    assert answers
    assert set(answers) == {expected.id}


def test_what_is_written_meanwhile_is_covered(store: StorageBackend, open_store: Open) -> None:
    """Before the place the move has reached, behind it, and in what is being encoded just then."""
    changes: Iterator[Callable[[], object]] = iter(
        [
            lambda: store.save(make.a_heuristic(id="a new one", embedding=[1] * DIMENSIONS)),
            lambda: store.save(make.a_memory(id="z")),
            lambda: store.update(Heuristic, "h000", {"strategy": "changed after it was encoded"}, EVERYWHERE),
            lambda: store.update(Heuristic, "h190", {"strategy": "changed while it was encoded"}, EVERYWHERE),
            lambda: store.delete(Heuristic, ["h210"], EVERYWHERE),
        ]
    )
    counting = Counting(lambda: [change() for change in islice(changes, 1)])
    reembed(store, counting, batch_size=50)
    assert sum(store.count_without_vector(cls, NEW.model, EVERYWHERE) for cls in (Heuristic, Memory)) == 0
    with open_store(NEW) as moved:
        check_found(moved, [*moved.find(Heuristic, EVERYWHERE), *moved.find(Memory, EVERYWHERE)])


def test_the_new_model_is_refused_before_the_move_and_the_old_one_works_after_it(
    store: StorageBackend, open_store: Open
) -> None:
    with open_store(NEW) as early, pytest.raises(ModelMismatchError, match="have no model name"):
        early.search_vector(Heuristic, NEW.encode("a"), EVERYWHERE)
    reembed(store, NEW)
    record = store.require(Heuristic, "h003", EVERYWHERE)
    assert store.search_vector(Heuristic, record.embedding, EVERYWHERE, limit=1)[0].record == record


def test_a_provider_that_fails_leaves_what_was_done(store: StorageBackend) -> None:
    calls = iter(range(10))

    def fail_later() -> None:
        if next(calls) == 2:
            raise EmbeddingError("the service is down")

    with pytest.raises(EmbeddingError, match="down"):
        reembed(store, Counting(fail_later), batch_size=100)
    assert store.count_without_vector(Heuristic, NEW.model, EVERYWHERE) == 100


@pytest.mark.parametrize("size", [0, True, "many"])
def test_a_batch_must_hold_something(store: StorageBackend, size: int) -> None:
    with pytest.raises(ValidationError, match="batch_size"):
        reembed(store, NEW, batch_size=size)


class Windowed(MockEmbedder):
    """Reads only a few words at a time."""

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        return [[super(Windowed, self)._embed([word])[0][0] for word in text.split()] for text in texts]


def test_the_passages_of_long_texts_move_too(store: StorageBackend, open_store: Open) -> None:
    embedder = Windowed(8)
    store.save(make.a_memory(id="long", content="penguins lighthouse"))
    reembed(store, embedder)
    moved = open_store(embedder)
    for word in ("penguins", "lighthouse"):
        [(key, cosine)] = moved.nearest_ids(Memory, embedder.encode(word), EVERYWHERE, Compare("id", "eq", "long"))
        assert (key, round(cosine, 5)) == ("long", 1.0)
