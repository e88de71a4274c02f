"""Measure full-text search: time and overlap, beside a search for any of the words.

    python bench/fulltext.py                                    # SQLite up to a million records, PostgreSQL 100,000
    python bench/fulltext.py --sizes 10000,100000 --stores sqlite

Two corpora, the same for every store, drawn from a seed, of one project with 100 agents who own one record in a hundred
each. `zipf`: texts of 30 words from a vocabulary of 50,000, the n-th most frequent of which occurs 1/n as often as the
first; a question is eight different words of one of the agent's texts. `template`: texts that share nearly all of their
words ("when testing form 123 …, use strategy 45 …"); a question is such a text with the numbers of one of them.

Every question is asked for the whole project and for its agent alone, with a limit of 100, in two ways: `matching_ids`,
and `OR`, any of its words, which is what the search did before and what is exact. Times are the 50th and the 95th of a
hundred, of the clock and, in brackets, of the processor (SQLite works in this process), which other work on the machine
disturbs less; every question is new, so that counts of words are remembered only where words return. `overlap@10` is
how many of our first ten have a score that belongs to the exact first ten.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

_BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(_BENCH.parent))

from alma.model.learning import Heuristic  # noqa: E402
from alma.model.query import EVERYTHING, In  # noqa: E402
from alma.model.scope import Scope  # noqa: E402
from alma.storage.base import StorageBackend  # noqa: E402
from alma.storage.queries import inside  # noqa: E402
from alma.storage.sql.backend import SqlBackend  # noqa: E402
from alma.text.tokens import query_terms  # noqa: E402

PROJECT, AGENTS, LIMIT = "bench", 100, 100
_VOCABULARY, _WORDS, _ASKED = 50_000, 30, 8
_BATCH = 10_000
_LARGEST_ON_POSTGRES = 100_000
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwz", "aeiou"
_progress = Console(stderr=True)

Found = list[tuple[str, float]]


class Corpus:
    """Texts and queries of one corpus."""

    def __init__(self, name: str, size: int, seed: int = 7) -> None:
        self.name, self.size = name, size
        self._rng = np.random.default_rng(seed)
        if name == "zipf":
            odds = 1 / np.arange(1, _VOCABULARY + 1)
            self._vocabulary = _vocabulary()
            self._texts = self._rng.choice(_VOCABULARY, size=(size, _WORDS), p=odds / odds.sum()).astype(np.int32)

    def records(self) -> Iterator[Heuristic]:
        for number in range(self.size):
            first, second = self._text(number)
            agent = f"agent {number % AGENTS}"
            yield Heuristic(id=f"{number:09d}", agent=agent, project_id=PROJECT, condition=first, strategy=second)

    def questions(self, count: int) -> list[tuple[str, str]]:
        """Agents and their queries."""
        chosen = self._rng.choice(self.size, size=count, replace=False).tolist()
        return [(f"agent {number % AGENTS}", self._question(number)) for number in chosen]

    def _text(self, number: int) -> tuple[str, str]:
        if self.name == "zipf":
            words = [self._vocabulary[pick] for pick in self._texts[number]]
            return " ".join(words[:10]), " ".join(words[10:])
        return (
            f"when testing form {number % 1000} on the checkout page",
            f"use strategy {number % 977} and verify the total of order {number}",
        )

    def _question(self, number: int) -> str:
        if self.name == "zipf":
            different = np.unique(self._texts[number])
            return " ".join(self._vocabulary[pick] for pick in self._rng.permutation(different)[:_ASKED])
        return (
            f"how to test form {number % 1000} on the checkout page with strategy {number % 977} and verify the total?"
        )


def _vocabulary() -> list[str]:
    """Made-up words, the shortest for the most frequent."""
    syllables = [c + v for c in _CONSONANTS for v in _VOWELS]
    longer = (a + b + c for a, b, c in itertools.product(syllables, repeat=3))
    return list(itertools.islice(itertools.chain((a + b for a in syllables for b in syllables), longer), _VOCABULARY))


@dataclass(frozen=True, slots=True)
class Line:
    """The times of one kind of search, in milliseconds."""

    store: str
    corpus: str
    records: int
    asked: str
    way: str
    questions: int
    median: float
    p95: float
    processor_p95: float | None
    overlap_at_10: float | None


# ---------------------------------------------------------------------- any of the words


def any_of_the_words(backend: SqlBackend, question: str, scope: Scope, limit: int, only: Sequence[str] = ()) -> Found:
    """The records with any of the words, each of them scored; where ids are given, the scores of these alone."""
    condition, values = backend.dialect.kind(Heuristic.spec).condition(inside(Heuristic.spec, scope, EVERYTHING))
    if only:
        ids = In("id", only)
        condition, values = backend.dialect.kind(Heuristic.spec).condition(inside(Heuristic.spec, scope, ids))
    words = [f'"{word}"' if backend.dialect.name == "sqlite" else f"'{word}'" for word in query_terms(question)]
    if backend.dialect.name == "sqlite":
        source = "heuristics_fts CROSS JOIN heuristics ON heuristics.seq = heuristics_fts.rowid"
        sql = (
            f"SELECT heuristics.id, -bm25(heuristics_fts, 1.0, 1.0, 0.0) AS score FROM {source} "
            f"WHERE heuristics_fts MATCH :question AND {condition} ORDER BY score DESC, heuristics.id LIMIT :most"
        )
        return backend.rows(sql, {**values, "question": " OR ".join(words), "most": limit})
    sql = (
        "SELECT id, ts_rank(search, %(question)s::tsquery)::float8 AS score FROM alma_heuristics "
        f"WHERE search @@ %(question)s::tsquery AND {condition} ORDER BY score DESC, id LIMIT %(most)s"
    )
    return backend.rows(sql, {**values, "question": " | ".join(words), "most": limit})


def overlap(backend: SqlBackend, ours: Found, question: str, scope: Scope) -> float:
    """The share of our first ten whose exact score is among the ten highest; records of the same score are equal."""
    best = any_of_the_words(backend, question, scope, 10)
    if not best:
        return 1.0
    first = [key for key, _ in ours[:10]]
    scores = dict(any_of_the_words(backend, question, scope, 10, only=first)) if first else {}
    lowest = best[-1][1] * (1 - 1e-6)
    return sum(score >= lowest for score in scores.values()) / len(best)


# ---------------------------------------------------------------------- measuring


def measured(
    store: StorageBackend, name: str, corpus: Corpus, questions: Sequence[tuple[str, str]], exact: int
) -> Iterator[Line]:
    """Both searches, for the whole project and for one agent; the slow one with fewer queries."""
    for asked in ("project", "agent"):
        scopes = [Scope(project_id=PROJECT, agent=agent if asked == "agent" else None) for agent, _ in questions]
        asking = [(question, scope) for (_, question), scope in zip(questions, scopes, strict=True)]
        clocks, processors = _timed(lambda q, s: store.matching_ids(Heuristic, q, s, limit=LIMIT), asking)
        with store.snapshot() as tx:
            assert isinstance(tx.backend, SqlBackend)
            exactly = partial(any_of_the_words, tx.backend)
            found = ((store.matching_ids(Heuristic, q, s, limit=LIMIT), q, s) for q, s in asking[:exact])
            shares = [overlap(tx.backend, *each) for each in found]
            slow, slow_processors = _timed(partial(exactly, limit=LIMIT), asking[:exact])
        share = float(np.mean(shares)) if name == "sqlite" else None
        yield _line(name, corpus, asked, "matching_ids", clocks, processors, share)
        yield _line(name, corpus, asked, "OR", slow, slow_processors, None)


def _timed(ask: Callable[[str, Scope], object], asking: Sequence[tuple[str, Scope]]) -> tuple[list[float], list[float]]:
    clocks, processors = [], []
    for question, scope in asking:
        clock, processor = time.perf_counter(), time.thread_time()
        ask(question, scope)
        clocks.append(1000 * (time.perf_counter() - clock))
        processors.append(1000 * (time.thread_time() - processor))
    return clocks, processors


def _line(
    store: str, corpus: Corpus, asked: str, way: str, clocks: list[float], processors: list[float], share: float | None
) -> Line:
    median, p95 = np.percentile(clocks, [50, 95])
    processor = float(np.percentile(processors, 95)) if store == "sqlite" else None
    return Line(store, corpus.name, corpus.size, asked, way, len(clocks), float(median), float(p95), processor, share)


def load(store: StorageBackend, corpus: Corpus) -> float:
    """Save the whole corpus; returns records per second of the processor's time, records made beforehand."""
    records, spent = corpus.records(), 0.0
    while batch := list(itertools.islice(records, _BATCH)):
        began = time.process_time()
        store.save_many(batch)
        spent += time.process_time() - began
    return corpus.size / spent


# ---------------------------------------------------------------------- running


@contextmanager
def opened(name: str, folder: Path) -> Iterator[StorageBackend]:
    with ExitStack() as stack:
        if name == "sqlite":
            from alma.storage.sqlite_local import SQLiteStorage

            yield stack.enter_context(SQLiteStorage(folder / "alma.db"))
            return
        from tests.support.postgres import PostgresServer

        from alma.storage.postgresql import PostgreSQLStorage

        server = stack.enter_context(PostgresServer())
        yield stack.enter_context(PostgreSQLStorage.from_dsn(server.create_database("fulltext")))


def run(stores: Sequence[str], sizes: Sequence[int], questions: int) -> Iterator[Line]:
    for name, size, sort in itertools.product(stores, sizes, ("zipf", "template")):
        if name == "postgresql" and size > _LARGEST_ON_POSTGRES:
            continue
        corpus = Corpus(sort, size)
        with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as store:
            speed = load(store, corpus)
            _progress.print(f"{name}, {sort}: {size:,} records loaded, {speed:,.0f}/s")
            if name == "postgresql":
                with store.connection() as connection:  # type: ignore[attr-defined]
                    connection.execute("VACUUM ANALYZE")
            exact = max(10, min(questions, 3_000_000 // size))
            yield from measured(store, name, corpus, corpus.questions(questions), exact)


def shown(lines: Sequence[Line]) -> Table:
    table = Table("store", "corpus", "records", "asked for", "way", "median ms", "p95 ms (processor)", "overlap@10")
    for line in lines:
        processor = "" if line.processor_p95 is None else f" ({line.processor_p95:.1f})"
        share = "" if line.overlap_at_10 is None else f"{line.overlap_at_10:.2f}"
        names = (line.store, line.corpus, f"{line.records:,}", line.asked, line.way)
        table.add_row(*names, f"{line.median:.1f}", f"{line.p95:.1f}{processor}", share)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the search by words.")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, default=_BENCH / "results" / "fulltext.json")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    lines: list[Line] = []
    for line in run(options.stores.split(","), sizes, options.questions):
        lines.append(line)
        _progress.print(shown([line]))
    Console().print(shown(lines))
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
