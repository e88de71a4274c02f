"""Fit the weights of relevance and validate them on left-out data sets.

    python bench/relevance.py                  # record features (kept under bench/results/), fit, and report
    python bench/relevance.py --write          # the same, and write src/alma/retrieval/weights.json
    python bench/relevance.py --sets bash,python

Questions of each data set are asked of stores of its memories, whole and as samples of 10, 40 and 150, where the
evidence is known; questions of other data sets, and shell tasks of a store of Python tasks and the other way round,
are *far*: no record is relevant to them. `useful` are the tasks and memories of training/judge/heads.

Every number is reported for weights fitted without that data set: the share of its own questions with a strong, or at
least a weak result, the same share of their evidence, and the share of far questions with a result, which should be 0.
Questions, and stores of a size, have the same weight in every data set.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from alma import Memory, Outcome, clock
from alma.bootstrap import create_embedder, open_storage
from alma.model.record import Record
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.relevance import FEATURES, Match, Query, RelevanceModel, default_relevance, features_of
from alma.retrieval.writing import MemoryWriter
from alma_retriever import VECTORS, _memory, _moment
from remembered_vectors import RememberedEmbedder

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
WEIGHTS = ROOT / "src" / "alma" / "retrieval" / "weights.json"
ROWS = ROOT / "bench" / "results" / "relevance"
SETS = ("locomo", "hotpot200", "factcon", "bash", "python", "useful")
STRONG, WEAK = 0.6, 0.3
# Samples of this size, and how many of each.
SAMPLES = {10: 6, 40: 4, 150: 2}
# How much the memories of a question count that are not its evidence, where its evidence counts 1.
_NOT_EVIDENCE = 0.5
_SHRINKAGE = 1e-3
_WORDS_ONLY = tuple(name for name in FEATURES if "meaning" not in name)
Floats = Any


@dataclass
class Row:
    """One query on one store: the features of the candidates, and which are evidence."""

    set: str
    size: str
    kind: str
    features: Floats
    evidence: Floats


class Recorder(RelevanceModel):
    """Records the features of every candidate and drops none."""

    def assess(self, matches: Sequence[Match], query: Query) -> None:
        SEEN.append((features_of(matches, query), [each.candidate.id for each in matches]))
        for each in matches:
            each.relevance = 1.0


SEEN: list[tuple[list[dict[str, float]], list[str]]] = []


class Stores:
    """Creates stores of records and queries them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._embedder = RememberedEmbedder(create_embedder("local", cache_size=0), VECTORS)
        fields = {field.name: getattr(default_relevance(), field.name) for field in dataclasses.fields(RelevanceModel)}
        self._recorder = Recorder(**fields)

    def ask(
        self,
        name: str,
        size: str,
        records: Sequence[Record],
        own: Iterable[tuple[str, set[str], str]],
        far: Iterable[str],
    ) -> None:
        """Query a store of these records with its own questions and with those of others."""
        folder = tempfile.mkdtemp(prefix="alma-relevance-")
        engine = RetrievalEngine(open_storage(f"{folder}/alma.db"), self._embedder)
        engine.relevance = self._recorder
        MemoryWriter(engine.storage, engine.embedder).save_many(records)
        kind_of = type(records[0])
        asked = [*((text, ids, now, "own") for text, ids, now in own), *((text, set(), "", "far") for text in far)]
        for text, ids, now, kind in asked:
            SEEN.clear()
            engine.retrieve(text, "agent", "benchmark", top_k=10, kinds=[kind_of], bypass_cache=True, now=_moment(now))
            features, read = SEEN[0] if SEEN else ([], [])
            values = np.array([[each[name] for name in FEATURES] for each in features]).reshape(-1, len(FEATURES))
            self.rows.append(Row(name, size, kind, values, np.array([key in ids for key in read], float)))
        engine.close()
        engine.storage.close()
        shutil.rmtree(folder, ignore_errors=True)


class Data:
    """The questions and memories of the data sets."""

    def __init__(self, data: Path) -> None:
        os.environ["MEMEVAL_DATA"] = str(data)
        # The scripts beside this one have some of the harness's names.
        sys.path.insert(0, str(data / "harness"))
        for name in ("howto", "evaluate"):
            sys.modules.pop(name, None)
        self._evaluate, self._howto = importlib.import_module("evaluate"), importlib.import_module("howto")
        self._folder = str(data / "howto")
        self.random = random.Random(1)
        rows = [json.loads(line) for line in (data / "howto" / "howto.jsonl").read_text().splitlines()]
        self.tasks = {
            name: [t for row in rows if row["set"] == name for t in row["ask"]] for name in ("bash", "python")
        }
        self.haystacks = {name: self._evaluate.DATASETS[name]() for name in ("locomo", "hotpot200", "factcon")}
        self.questions = {name: [q.text for h in hs for q in h.questions] for name, hs in self.haystacks.items()}

    def far(self, name: str, each: int) -> list[str]:
        """Questions about other things. HotpotQA and FactConsolidation ask about the same world."""
        tasks = [*self.tasks["bash"], *self.tasks["python"]]
        others: dict[str, Sequence[Sequence[str]]] = {
            "locomo": (tasks, self.questions["hotpot200"], self.questions["factcon"]),
            "hotpot200": (tasks, self.questions["locomo"]),
            "factcon": (tasks, self.questions["locomo"]),
            "bash": (self.tasks["python"], self.tasks["python"], self.questions["locomo"]),
            "python": (self.tasks["bash"], self.tasks["bash"], self.questions["locomo"]),
            "useful": (tasks, self.questions["locomo"]),
        }
        return [text for texts in others[name] for text in self.random.sample(texts, min(each, len(texts)))]

    def stores(self, name: str) -> Iterator[tuple[str, Sequence[Record], Sequence[tuple[str, set[str], str]], int]]:
        """The size of a store, its records, its own questions, and how many questions of each other set it is asked."""
        if name == "useful":
            yield from self._of_useful()
        elif name in self.tasks:
            for size in self._sizes():
                yield self._of_tasks(name, size)
        else:
            for haystack in self.haystacks[name]:
                for size in self._sizes():
                    yield self._of_haystack(haystack, size)

    def _sizes(self) -> list[int | None]:
        return [None, *(size for size, times in SAMPLES.items() for _ in range(times))]

    def _of_haystack(self, haystack: Any, size: int | None) -> Any:
        answerable = [question for question in haystack.questions if question.gold_turns]
        own = self.random.sample(answerable, min(len(answerable), 120 if size is None else max(3, size // 8)))
        turns = haystack.turns
        if size is not None:
            gold = set().union(*(question.gold_turns for question in own))
            others = [turn for turn in turns if turn.id not in gold]
            sampled = self.random.sample(others, max(0, size - len(gold)))
            turns = [*(turn for turn in turns if turn.id in gold), *sampled]
        memories = [_memory(turn) for turn in turns]
        ids = {turn.id: memory.id for turn, memory in zip(turns, memories, strict=True)}
        asked = [(q.text, {ids[turn] for turn in q.gold_turns}, q.now) for q in own]
        return _named(size), memories, asked, 40 if size is None else 6

    def _of_tasks(self, name: str, size: int | None) -> Any:
        learned, topics, asks, _, _ = self._howto.load(self._folder, name)
        if size is not None:
            asks = self.random.sample(asks, max(3, size // 8))
            wanted = {topic for _, topic in asks}
            known = [pair for pair in learned if topics[pair[1]] in wanted][: max(1, size - 2)]
            others = [pair for pair in learned if topics[pair[1]] not in wanted]
            learned = [*known, *self.random.sample(others, max(0, size - len(known)))]
        outcomes = [_outcome(task, strategy) for task, strategy in learned]
        by_topic: dict[str, set[str]] = {}
        for outcome, (_, strategy) in zip(outcomes, learned, strict=True):
            by_topic.setdefault(topics[strategy], set()).add(outcome.id)
        asked = [(task, by_topic.get(topic, set()), "") for task, topic in asks]
        return _named(size), outcomes, asked, 150 if size is None else 12

    def _of_useful(self) -> Iterator[Any]:
        for file in sorted((ROOT / "training" / "judge" / "heads").glob("useful_*.jsonl")):
            pairs = [json.loads(line) for line in file.read_text().splitlines()]
            pairs = [pair for pair in pairs if pair["task"].strip() and pair["memory"].strip()]
            memories = {text: Memory(content=text, project_id="benchmark") for text in {p["memory"] for p in pairs}}
            helpful: dict[str, set[str]] = {}
            for pair in pairs:
                helpful.setdefault(pair["task"], set())
                if pair["useful"]:
                    helpful[pair["task"]].add(memories[pair["memory"]].id)
            asked = [(task, ids, "") for task, ids in helpful.items() if ids]
            yield "150", list(memories.values()), asked, 12


def _named(size: int | None) -> str:
    return "all" if size is None else str(size)


def _outcome(task: str, strategy: str) -> Outcome:
    return Outcome(
        agent="agent",
        project_id="benchmark",
        task_type="general",
        task_description=task,
        success=True,
        strategy_used=strategy,
        timestamp=clock.now(),
    )


def fitted(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    """Weights of these features by logistic regression; each set, store size and kind of question weighs the same."""
    places = [FEATURES.index(name) for name in names]
    counts = Counter((row.set, row.size, row.kind) for row in rows)
    features, wanted, weights = [], [], []
    for row in rows:
        share = 1 / counts[row.set, row.size, row.kind]
        for evidence in (0.0, 1.0):
            own = np.flatnonzero(row.evidence == evidence)[: None if row.kind == "own" else 10]
            if len(own):
                worth = _NOT_EVIDENCE if row.kind == "own" and not evidence else 1.0
                features.append(row.features[own][:, places])
                wanted.append(np.full(len(own), evidence))
                weights.append(np.full(len(own), share * worth / len(own)))
    found = _logistic(np.concatenate(features), np.concatenate(wanted), np.concatenate(weights))
    return dict(zip(("bias", *names), (round(float(value), 3) for value in found), strict=True))


def _logistic(features: Floats, wanted: Floats, weights: Floats) -> Floats:
    """Newton's method; the bias is not shrunk."""
    values = np.c_[np.ones(len(features)), features]
    found = np.zeros(values.shape[1])
    weights = weights / weights.sum()
    shrinkage = _SHRINKAGE * np.r_[0.0, np.ones(features.shape[1])]
    for _ in range(50):
        probability = 1 / (1 + np.exp(-np.clip(values @ found, -30, 30)))
        slope = values.T @ (weights * (wanted - probability)) - shrinkage * found
        curve = (values.T * (weights * probability * (1 - probability))) @ values + np.diag(shrinkage + 1e-9)
        step = np.linalg.solve(curve, slope)
        found += step
        if abs(step).max() < 1e-6:
            break
    return found


def probabilities(row: Row, weights: Mapping[str, float]) -> Floats:
    names = [name for name in weights if name != "bias"]
    log_odds = row.features[:, [FEATURES.index(name) for name in names]] @ np.array([weights[name] for name in names])
    return 1 / (1 + np.exp(-np.clip(weights["bias"] + log_odds, -30, 30)))


def without_vectors(row: Row) -> Row:
    """The row without vectors; words that no record has are ignored."""
    features = row.features.copy()
    known = np.maximum(1e-6, 1 - features[:, FEATURES.index("unknown_words")])
    for name in ("words", "best_words"):
        place = FEATURES.index(name)
        features[:, place] = np.minimum(1.0, features[:, place] / known)
    features[:, FEATURES.index("meaning")] = features[:, FEATURES.index("best_meaning")] = 0.0
    return dataclasses.replace(row, features=features)


def report(rows: Sequence[Row], names: Sequence[str], title: str) -> Table:
    """The results on a data set of weights fitted without it."""
    table = Table("left out", "store", "own strong", "own weak+", "evidence strong", "evidence weak+", title=title)
    for column in ("strong of 10", "far strong", "far weak+", "calibration"):
        table.add_column(column)
    for name in dict.fromkeys(row.set for row in rows):
        weights = fitted([row for row in rows if row.set != name], names)
        for size in dict.fromkeys(row.size for row in rows if row.set == name):
            of_size = [(row, probabilities(row, weights)) for row in rows if row.set == name and row.size == size]
            table.add_row(name, size, *_shares(of_size))
    return table


def _shares(rows: Sequence[tuple[Row, Floats]]) -> Iterator[str]:
    own = [(row, found) for row, found in rows if row.kind == "own"]
    far = [found for row, found in rows if row.kind == "far"]
    evidence = np.concatenate([found[row.evidence > 0] for row, found in own])
    for shares in ([found.max(initial=0) for _, found in own], evidence):
        for least in (STRONG, WEAK):
            yield f"{np.mean(np.array(shares) >= least):.3f}"
    yield f"{np.mean([(found[:10] >= STRONG).sum() for _, found in own]):.1f}"
    for least in (STRONG, WEAK):
        yield f"{np.mean([found.max(initial=0) >= least for found in far]):.3f}"
    yield f"{_calibration_error(own, far):.3f}"


def _calibration_error(own: Sequence[tuple[Row, Floats]], far: Sequence[Floats]) -> float:
    """The expected calibration error, with equal weight for evidence and far records."""
    evidence = np.concatenate([found[row.evidence > 0] for row, found in own])
    others = np.concatenate([found[:10] for found in far])
    values = np.r_[evidence, others]
    wanted = np.r_[np.ones(len(evidence)), np.zeros(len(others))]
    weights = np.r_[np.full(len(evidence), 0.5 / len(evidence)), np.full(len(others), 0.5 / len(others))]
    bins = np.minimum(9, (10 * values).astype(int))
    return float(sum(abs((weights * (wanted - values))[bins == each].sum()) for each in range(10)))


def recorded(data: Data, name: str) -> list[Row]:
    """The rows of a data set, from a former run or from new stores."""
    kept = ROWS / f"{name}.pickle"
    if kept.is_file():
        found: list[Row] = pickle.loads(kept.read_bytes())
        return found
    started, stores = time.perf_counter(), Stores()
    for size, records, own, far in data.stores(name):
        stores.ask(name, size, records, own, data.far(name, far))
    ROWS.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(stores.rows))
    print(f"{name}: {len(stores.rows):,} questions, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return stores.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--write", action="store_true", help="write the weights that are fitted on all of them")
    args = parser.parse_args()
    if not (args.data / "harness").is_dir():
        raise SystemExit(f"there is no data in {args.data}; name the folder that has it with --data")
    data = Data(args.data)
    rows = [row for name in args.sets.split(",") for row in recorded(data, name) if len(row.features)]
    words = list(map(without_vectors, rows))
    console = Console(width=160)
    console.print(report(rows, FEATURES, "With vectors"))
    console.print(report(words, _WORDS_ONLY, "Words only"))
    document = {
        "with_vectors": fitted(rows, FEATURES),
        "words_only": fitted(words, _WORDS_ONLY),
        "strong": STRONG,
        "weak": WEAK,
    }
    console.print_json(data=document)
    if args.write:
        known = json.loads(WEIGHTS.read_text())
        WEIGHTS.write_text(json.dumps({**known, "relevance": document}, indent=2) + "\n")


if __name__ == "__main__":
    main()
