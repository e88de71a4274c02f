"""Train the weights of the score, and say how they do on data sets that were left out.

    python bench/score_weights.py              # record features (kept under bench/results/), fit, and report
    python bench/score_weights.py --write      # the same, and write src/alma/retrieval/weights.json
    python bench/score_weights.py --sets locomo,hotpot200

Every question of the open data sets is put to a store of its memories. `explain()` gives the terms of the scores of
what was read; divided by their weights these are the features. The weights are fitted by pairwise logistic regression,
evidence against everything else, with the present weights as the prior. For each data set the report shows the recall
of its evidence with the present weights and with weights fitted on all other sets. The features of context are made
from the present scores, so a change is confirmed with `bench/quality.py` before it is committed.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from alma import Memory
from alma.bootstrap import create_embedder, open_storage
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.query_text import asks_advice
from alma.retrieval.scoring import MEMORY_WEIGHTS
from alma.retrieval.tuning import SCORE
from alma.retrieval.writing import MemoryWriter
from alma_retriever import VECTORS, _memory, _moment
from relevance import DATA, WEIGHTS, Data
from remembered_vectors import RememberedEmbedder

ROWS = Path(__file__).parent / "results" / "score-weights"
SETS = ("locomo", "hotpot200", "factcon")
FEATURES = ("meaning", "words", "length", "conversation", "title", "time", "linked", "question", "when", "passage")
_READ = 30
_SHRINKAGE = 2e-3
Floats = Any


@dataclass
class Row:
    """One question: the features of the memories that were read, the rest of their scores, and which are evidence."""

    features: Floats
    others: Floats
    evidence: Floats


def recorded(data: Data, name: str) -> list[Row]:
    """The rows of a data set, from a former run or from new stores."""
    kept = ROWS / f"{name}.pickle"
    if kept.is_file():
        found: list[Row] = pickle.loads(kept.read_bytes())
        return found
    embedder = RememberedEmbedder(create_embedder("local", cache_size=0), VECTORS)
    rows = [row for haystack in data.haystacks[name] for row in _asked(haystack, embedder)]
    ROWS.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(rows))
    print(f"{name}: {len(rows):,} questions", file=sys.stderr, flush=True)
    return rows


def _asked(haystack: Any, embedder: RememberedEmbedder) -> Iterator[Row]:
    folder = tempfile.mkdtemp(prefix="alma-score-weights-")
    engine = RetrievalEngine(open_storage(f"{folder}/alma.db"), embedder)
    memories = [_memory(turn) for turn in haystack.turns]
    MemoryWriter(engine.storage, engine.embedder).save_many(memories)
    ids = {turn.id: memory.id for turn, memory in zip(haystack.turns, memories, strict=True)}
    for question in haystack.questions:
        options: dict[str, Any] = {"top_k": _READ, "kinds": [Memory], "bypass_cache": True}
        found = engine.retrieve(question.text, "agent", "benchmark", now=_moment(question.now), **options)
        gold = {ids[turn] for turn in question.gold_turns}
        evidence = np.array([memory.id in gold for memory in found.memories], float)
        if evidence.any() and not evidence.all():
            weights = _present(advice=asks_advice(question.text))
            terms = [found.explanation_of(memory.id).terms for memory in found.memories]
            yield Row(*_features(terms, weights), evidence)
    engine.close()
    engine.storage.close()
    shutil.rmtree(folder, ignore_errors=True)


def _present(*, advice: bool = False) -> dict[str, float]:
    """The weight of each feature now; time without a range of its own."""
    weights = {name: SCORE[name] for name in FEATURES}
    return weights | {name: SCORE[f"advice_{name}"] for name in ("meaning", "words") if advice}


def _features(terms: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> tuple[Floats, Floats]:
    """The features behind the terms of each memory, and the sum of its other terms."""
    worth = MEMORY_WEIGHTS.similarity
    features = [[each.get(name, 0.0) / (worth * weights[name]) for name in FEATURES] for each in terms]
    others = [sum(value for name, value in each.items() if name not in FEATURES) / worth for each in terms]
    return np.array(features), np.array(others)


def fitted(rows: Sequence[Sequence[Row]]) -> Floats:
    """Weights by pairwise logistic regression; each data set and each of its questions weighs the same."""
    prior = np.array(list(_present().values()))
    pairs, offsets, worth = [], [], []
    for of_set in rows:
        for row in of_set:
            gold, rest = np.flatnonzero(row.evidence > 0), np.flatnonzero(row.evidence == 0)
            one, other = np.repeat(gold, len(rest)), np.tile(rest, len(gold))
            pairs.append(row.features[one] - row.features[other])
            offsets.append(row.others[one] - row.others[other])
            worth.append(np.full(len(one), 1 / (len(one) * len(of_set))))
    values, offset, share = np.concatenate(pairs), np.concatenate(offsets), np.concatenate(worth)
    share = share / share.sum()
    # The scale of a logistic model is free: ten is about the odds of a difference of 0.1 in the score.
    found, scale = prior.copy(), 10.0
    for _ in range(50):
        probability = 1 / (1 + np.exp(-np.clip(scale * (values @ found + offset), -30, 30)))
        slope = scale * values.T @ (share * (1 - probability)) - _SHRINKAGE * scale**2 * (found - prior)
        curve = scale**2 * ((values.T * (share * probability * (1 - probability))) @ values)
        step = np.linalg.solve(curve + _SHRINKAGE * scale**2 * np.eye(len(found)), slope)
        found = found + step
        if abs(step).max() < 1e-6:
            break
    # The best hit of both sources together counts 1, as the other parts of a score expect.
    return found / (found[0] + found[1])


def recall(rows: Sequence[Row], weights: Floats, most: int) -> float:
    """The share of the evidence that was read which is among the first."""
    shares = []
    for row in rows:
        first = np.argsort(-(row.features @ weights + row.others), kind="stable")[:most]
        shares.append(row.evidence[first].sum() / row.evidence.sum())
    return float(np.mean(shares))


def report(rows: Mapping[str, Sequence[Row]]) -> Table:
    """The recall of each data set with the present weights and with those fitted on all others."""
    table = Table("left out", "questions", "recall@5 now", "left out", "recall@10 now", "left out")
    present = np.array(list(_present().values()))
    for name, own in rows.items():
        others = [each for other, each in rows.items() if other != name]
        weights = fitted(others) if others else present
        cells = [f"{recall(own, each, most):.3f}" for most in (5, 10) for each in (present, weights)]
        table.add_row(name, f"{len(own):,}", *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--write", action="store_true", help="write the weights that are fitted on all of them")
    args = parser.parse_args()
    if not (args.data / "harness").is_dir():
        raise SystemExit(f"there is no data in {args.data}; name the folder that has it with --data")
    data = Data(args.data)
    rows = {name: recorded(data, name) for name in args.sets.split(",")}
    console = Console(width=160)
    console.print(report(rows))
    weights = dict(zip(FEATURES, (round(float(each), 3) for each in fitted(list(rows.values()))), strict=True))
    console.print_json(data=weights)
    if args.write:
        known = json.loads(WEIGHTS.read_text())
        WEIGHTS.write_text(json.dumps({**known, "score": {**known["score"], **weights}}, indent=2) + "\n")


if __name__ == "__main__":
    main()
