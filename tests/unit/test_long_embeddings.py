"""Long texts: bounded cost, all words findable, and short texts are not delayed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from alma import MemoryWriter, RetrievalEngine, Scope
from alma.embeddings.base import MOST_PASSAGES, EmbeddingProvider, Passage, chosen, thinned
from alma.embeddings.local import LocalEmbedder
from alma.embeddings.mock import MockEmbedder
from alma.memory import Journal
from alma.process import ShortestJobFirst
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync.reembed import reembed
from alma.testing import builders as make

WORDS = ("the", "service", "deploys", "every", "release", "after", "tests", "of", "invoices", "and", "customers")


def prose(characters: int, seed: int = 0) -> str:
    source = random.Random(seed)
    words = [source.choice(WORDS) for _ in range(characters // 5)]
    return " ".join(words)[:characters]


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


def passages_of(local: LocalEmbedder, text: str) -> list[list[int]]:
    return local._runtime.get().loaded().passages(text)


@pytest.mark.parametrize("characters", [60_000, 1_000_000])
def test_a_long_text_has_no_more_passages_than_are_allowed(local: LocalEmbedder, characters: int) -> None:
    assert len(passages_of(local, prose(characters))) == MOST_PASSAGES


def test_a_megabyte_is_divided_in_a_moment(local: LocalEmbedder) -> None:
    passages_of(local, "warm")
    text = prose(1_000_000)
    began = time.thread_time()
    passages_of(local, text)
    # As a whole it took half a second.
    assert time.thread_time() - began < 0.3


def test_the_beginning_and_the_end_of_a_long_text_are_embedded(local: LocalEmbedder) -> None:
    text = f"Marmalade is made in Dundee. {prose(300_000)} Albatrosses sleep while they fly."
    [passages] = local.encode_passages([text])
    for part, question in ((0, "where does marmalade come from?"), (-1, "do albatrosses sleep in flight?")):
        wanted = local.encode(question)
        nearest = max(range(len(passages)), key=lambda i: sum(a * b for a, b in zip(wanted, passages[i], strict=True)))
        assert nearest == range(len(passages))[part]


@pytest.mark.parametrize("count", [1, 32, 33, 57, 1_000])
def test_the_first_passages_are_chosen_and_others_evenly_up_to_the_last(count: int) -> None:
    kept = chosen(range(count))
    assert kept == sorted(set(kept))
    assert len(kept) == min(count, MOST_PASSAGES)
    assert kept[:8] == list(range(min(8, count)))
    assert kept[-1] == count - 1
    gaps = {after - before for before, after in pairwise(kept[8:])}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_a_very_long_text_is_thinned_out_and_keeps_its_ends() -> None:
    text = "".join(f"{n:07} " for n in range(200_000))
    kept = thinned(text)
    assert len(kept) < 70_000
    assert kept.startswith(text[:16_000])
    assert kept.endswith("0199999 ")
    assert thinned(text[:65_536]) == text[:65_536]


def test_every_provider_bounds_the_passages() -> None:
    [passages] = MockEmbedder().encode_passages([prose(2_000_000)])
    assert len(passages) == MOST_PASSAGES


def test_what_lies_beyond_the_passages_is_found_by_its_words(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as store:
        engine = RetrievalEngine(store)
        journal = Journal(store, MemoryWriter(store, engine.embedder), engine)
        long = journal.create(f"{prose(100_000)} the zugzwang-4711 incident {prose(100_000, 1)}", project_id="p")
        for n in range(20):
            journal.create(f"Note {n}: {prose(200, n + 2)}", project_id="p")
        found = journal.search("zugzwang-4711", Scope(project_id="p"))
        assert [hit.memory.id for hit in found.hits][:1] == [long.id]


class Failing(EmbeddingProvider):
    """A mock that is interrupted at a text."""

    def __init__(self, at: int) -> None:
        self.inner = MockEmbedder()
        self.left = at
        self.encoded: list[str] = []

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.encoded += texts
        return self.inner._embed(texts)


def test_moving_long_memories_to_another_model_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as store:
        store.save_many([make.a_memory(id=f"m{n}", content=prose(400_000, n)) for n in range(4)])
        first, second = Failing(at=2), Failing(at=-1)
        with pytest.raises(KeyboardInterrupt):
            reembed(store, first, batch_size=1)
        assert reembed(store, second, batch_size=1) == 2
        assert len({*first.encoded, *second.encoded}) == len(first.encoded) + len(second.encoded) == 4


# ---------------------------------------------------------------------- turns


def test_a_short_text_is_embedded_while_long_ones_are(local: LocalEmbedder) -> None:
    local.encode("warm")
    done: list[str] = []
    texts = [prose(16_000, n) for n in range(3)]

    def embed(text: str) -> None:
        local.encode(text)
        done.append(text)

    threads = [threading.Thread(target=embed, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    waits: list[float] = []
    started = time.perf_counter()
    while len(done) < len(threads):
        began = time.perf_counter()
        local.encode(f"how is release {len(waits)} deployed?")
        waits.append(time.perf_counter() - began)
    long_seconds = time.perf_counter() - started
    for thread in threads:
        thread.join()
    waits.sort()
    assert waits[len(waits) // 2] < long_seconds / 10


def test_the_shorter_job_goes_on_and_the_longer_one_waits() -> None:
    turns, order, longer_waits = ShortestJobFirst(1), [], threading.Event()
    with turns.job(10) as take_turn:
        take_turn()

        def long() -> None:
            with turns.job(1_000) as its_turn:
                longer_waits.set()
                its_turn()
                order.append("long")

        thread = threading.Thread(target=long)
        thread.start()
        assert longer_waits.wait(30)
        with turns.job(5) as shortest:
            shortest()
            order.append("shortest")
        take_turn()
        order.append("short")
    thread.join()
    assert order == ["shortest", "short", "long"]


def test_a_job_that_fails_leaves_its_turn_to_the_next() -> None:
    turns = ShortestJobFirst(1)
    with pytest.raises(ValueError, match="damaged"), turns.job(1):
        raise ValueError("damaged")
    with turns.job(9) as take_turn:
        take_turn()
