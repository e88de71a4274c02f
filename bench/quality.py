"""Measure retrieval quality on public benchmarks, beside the baselines of their harness.

    python bench/quality.py                                  # every data set, about half an hour the first time
    python bench/quality.py --sets locomo/turn,hotpot200/turn
    python bench/quality.py --data /path/to/data --no-baselines

The data and the harness (`harness/evaluate.py`) lie in a folder beside the checkout, ../shared/data, or where `--data`
says; their licences do not allow redistribution. ALMA takes part through its public API, with its defaults: items
are saved as general memories in an SQLite store, questions go to `RetrievalEngine.retrieve` (bench/alma_retriever.py).
Vectors are computed by the local model and cached under bench/results/, so a second run takes minutes.

The baselines are those of the harness, run here on the same vectors (`pip install bm25s` for them): bm25, the local
model alone (minilm), both by rank (hybrid-rrf), each also with the speaker's name and the day before the text
(-prefix), hybrid-plus, and bm25 with newer versions of a fact first. Recall is the share of the evidence that was
found, hit says whether any was, all whether every piece was; fresh says how often a fact stands before the one that it
overrules. Every category is shown beside every baseline, and the ones where ALMA is below the best of them are listed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from alma_retriever import VECTORS, AlmaRetriever
from remembered_vectors import RememberedEmbedder

SETS = (
    ("locomo", "turn"),
    ("locomo", "turn2session"),
    ("locomo", "session"),
    ("lme-48", "session"),
    ("lme-48", "turn"),
    ("lme-pool", "session"),
    ("factcon", "turn"),
    ("hotpot200", "turn"),
)
TARGETS = (
    ("locomo", "turn", "recall@10", 0.80),
    ("locomo", "turn2session", "recall@10", 0.955),
    ("lme-48", "session", "all@5", 0.90),
    ("lme-48", "turn", "recall@10", 0.86),
    ("lme-pool", "session", "recall@10", 0.80),
    ("factcon", "turn", "fresh@10", 0.90),
    ("factcon", "turn", "recall@5", 0.95),
    ("hotpot200", "turn", "all@10", 0.87),
)
BASELINES = (
    "bm25",
    "bm25-prefix",
    "minilm",
    "minilm-prefix",
    "hybrid-rrf",
    "hybrid-rrf-prefix",
    "hybrid-plus",
    "bm25-newest",
)
COMPARED = ("recall@5", "recall@10", "hit@5", "hit@10", "all@5", "all@10", "fresh@10")
SHOWN = ("recall@5", "recall@10", "hit@5", "hit@10", "all@5", "all@10", "ndcg@10", "fresh@10")
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

Results = dict[str, dict[str, Any]]


def main() -> None:
    options = _options()
    # Wide enough for all baselines side by side, wherever it is printed to.
    console = Console(width=190)
    harness = _harness(options.data, console)
    results: Results = {}
    for dataset, granularity in _chosen(options.sets):
        haystacks = harness.DATASETS[dataset]()
        for name in ("alma", *(() if options.no_baselines else BASELINES)):
            started = time.perf_counter()
            with console.status(f"{dataset}/{granularity}: {name}"):
                found = _measured(harness, haystacks, granularity, name)
            results.setdefault(f"{dataset}/{granularity}", {})[name] = found
            console.print(f"{dataset}/{granularity}: {name} took {time.perf_counter() - started:.0f} s", style="dim")
        console.print(_table(f"{dataset}/{granularity}", results[f"{dataset}/{granularity}"]))
        console.print(_categories(f"{dataset}/{granularity}", results[f"{dataset}/{granularity}"]))
    console.print(_targets(results))
    if not options.no_baselines:
        console.print(_below(results))
    _write(results, options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=_DATA, help="the folder with the data and the harness")
    parser.add_argument("--sets", help="for example locomo/turn,hotpot200/turn; all by default")
    parser.add_argument("--no-baselines", action="store_true", help="measure ALMA alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "quality.json")
    return parser.parse_args()


def _chosen(sets: str | None) -> Sequence[tuple[str, str]]:
    if sets is None:
        return SETS
    known = {f"{dataset}/{granularity}": (dataset, granularity) for dataset, granularity in SETS}
    names = sets.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"there is no set {', '.join(unknown)}; choose from {', '.join(known)}")
    return [known[name] for name in names]


def _harness(data: Path, console: Console) -> ModuleType:
    folder = data / "harness"
    if not (folder / "evaluate.py").is_file():
        console.print(f"{data} has no harness/evaluate.py: the data are absent, so there is nothing to measure.")
        console.print("Name the folder that has them with --data.")
        sys.exit(1)
    os.environ["MEMEVAL_DATA"] = str(data)
    sys.path.insert(0, str(folder))
    return importlib.import_module("evaluate")


def _measured(harness: ModuleType, haystacks: Sequence[Any], granularity: str, name: str) -> dict[str, Any]:
    retriever = AlmaRetriever() if name == "alma" else _baseline(name)
    found: dict[str, Any] = harness.evaluate(retriever, haystacks, granularity)
    if isinstance(retriever, AlmaRetriever):
        retriever.close()
    return found


def _baseline(name: str) -> Any:
    """A retriever of the harness, with our vectors."""
    baselines = importlib.import_module("baselines")
    if not issubclass(baselines.Bm25, _Words):
        _Words.made = baselines.Bm25
        setattr(baselines, "Bm25", _Words)  # noqa: B010 - names of a module that is found at run time
        setattr(baselines, "MiniLM", _Vectors)  # noqa: B010
    return baselines.BASELINES[name]()


class _Words:
    """The harness's Bm25, cached, because several baselines use it."""

    made: Any = None
    _known: ClassVar[dict[tuple[bytes, str], Any]] = {}

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._key = hashlib.blake2b("\0".join(texts).encode()).digest()
        self._index: Any = None

    def scores(self, query: str) -> Any:
        if (self._key, query) not in self._known:
            self._index = self._index or _Words.made(self._texts)
            self._known[self._key, query] = self._index.scores(query)
        return self._known[self._key, query]


class _Vectors:
    """The harness's MiniLM: one vector for each text."""

    def encode(self, texts: list[str]) -> Any:
        import numpy as np

        from alma.bootstrap import create_embedder

        if AlmaRetriever.embedder is None:
            AlmaRetriever.embedder = RememberedEmbedder(create_embedder("local", cache_size=0), VECTORS)
        # Its window is one passage long, and what lies behind it does not count.
        return np.array([passages[0] for passages in AlmaRetriever.embedder.encode_passages(texts)], np.float32)


def _table(title: str, found: Mapping[str, Any]) -> Table:
    table = Table(title=f"{title}, {found['alma']['overall']['n']:,} questions")
    table.add_column("")
    for metric in SHOWN:
        table.add_column(metric, justify="right")
    for name, result in found.items():
        table.add_row(name, *(_number(result["overall"].get(metric)) for metric in SHOWN))
    return table


def _categories(title: str, found: Mapping[str, Any]) -> Table:
    table = Table("category", "", *found, "", title=f"{title} by category")
    for category, own in found["alma"]["by_category"].items():
        for metric in COMPARED:
            if metric in own:
                cells = [_number(result["by_category"][category][metric]) for result in found.values()]
                table.add_row(f"{category} ({own['n']})", metric, *cells, _verdict(found, category, metric))
    return table


def _verdict(found: Mapping[str, Any], category: str, metric: str) -> str:
    own = found["alma"]["by_category"][category][metric]
    others = {name: result["by_category"][category][metric] for name, result in found.items() if name != "alma"}
    best = max(others, key=others.__getitem__, default=None)
    return f"below {best}" if best is not None and own < others[best] else ""


def _below(results: Results) -> Table:
    """Where a baseline is better, and by how many questions."""
    table = Table("set", "category", "metric", "ALMA", "best baseline", title="Below the best baseline")
    for name, found in results.items():
        for category, own in found["alma"]["by_category"].items():
            for metric in COMPARED:
                verdict = _verdict(found, category, metric) if metric in own else ""
                if verdict:
                    best = verdict.removeprefix("below ")
                    theirs = found[best]["by_category"][category][metric]
                    table.add_row(
                        name, f"{category} ({own['n']})", metric, _number(own[metric]), f"{theirs:.3f} {best}"
                    )
    if not table.row_count:
        table.add_row("no category of any set", "", "", "", "")
    return table


def _targets(results: Results) -> Table:
    table = Table("target", "measured", "reached", title="Targets")
    for dataset, granularity, metric, least in TARGETS:
        found = results.get(f"{dataset}/{granularity}")
        if found is not None:
            value = found["alma"]["overall"][metric]
            reached = "yes" if value >= least else "no"
            table.add_row(f"{dataset}/{granularity} {metric} ≥ {least:g}", _number(value), reached)
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _write(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))
    sys.stdout.write(json.dumps({name: found["alma"]["overall"] for name, found in results.items()}) + "\n")


if __name__ == "__main__":
    main()
