"""Measure the gain of learning from outcomes: does an agent with memory choose better strategies?

    python bench/learning.py                                  # every stream and protocol; hours on two cores
    python bench/learning.py --without-store                  # the same choices in about half an hour
    python bench/learning.py --sets aslib-QBF-2011 --protocols logged --seeds 2
    python bench/learning.py --rival alma-memory==0.11.0 --sets aslib-QBF-2011 --protocols logged --seeds 1
    python bench/learning.py --speed                          # how many outcomes are learned in a second

The streams and the harness (`harness/outcomes.py`) lie in ../shared/data, or where `--data` says. ALMA takes part
through its public API: every outcome goes to `alma.learn`, and before a task `alma.recommend(task, agent, among=…)`
chooses a strategy (bench/alma_learner.py). With `--without-store` only what it weighs takes part
(bench/evidence_learner.py), since to store all these outcomes durably takes hours. gain is 0 for the best fixed
strategy in hindsight and 1 for one that is right whenever it can be; pooled gain adds up what was won over the
scenarios, and divides it by what could be.

With `--rival` the published package takes part beside it, installed into an environment of its own: its `learn`, and
the strategy that its confidence engine ranks first (bench/alma_memory_learner.py).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from alma_learner import AlmaLearner, embedder
from alma_memory_learner import AlmaMemoryLearner
from evidence_learner import EvidenceLearner
from rival import install

ASLIB = ("aslib-CSP-MZN-2013", "aslib-QBF-2011", "aslib-ASP-POTASSCO", "aslib-MAXSAT12-PMS", "aslib-SAT12-HAND")
SETS = (*ASLIB, "routerdc7-open")
PROTOCOLS = ("full", "logged", "stream")
# What the data's description prints, so that it need not be run again.
BASELINES = {
    ("aslib", "full"): 0.74,
    ("aslib", "logged"): 0.23,
    ("aslib", "stream"): 0.25,
    ("routerdc7-open", "full"): 0.068,
    ("routerdc7-open", "logged"): -0.05,
    ("routerdc7-open", "stream"): 0.049,
}
TARGETS = {
    ("aslib", "full"): 0.80,
    ("aslib", "logged"): 0.40,
    ("aslib", "stream"): 0.40,
    ("routerdc7-open", "full"): 0.08,
    ("routerdc7-open", "logged"): -0.03,
    ("routerdc7-open", "stream"): 0.06,
}
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

Runs = dict[tuple[str, str], list[dict[str, float]]]


def main() -> None:
    options = _options()
    console = Console()
    if options.speed:
        _write({"speed": _speeds(console)}, options.out)
        return
    harness = _harness(options.data)
    runs: Runs = {}
    theirs: Runs = {}
    rival = _rival(options.rival)
    ours = EvidenceLearner if options.without_store else AlmaLearner
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name in options.sets.split(","):
        rows = _shuffled(harness.load(name)) if options.shuffled else harness.load(name)
        for protocol in options.protocols.split(","):
            started = time.perf_counter()
            runs[name, protocol] = list(_runs(harness, ours, rows, protocol, seeds))
            seconds = time.perf_counter() - started
            console.print(
                f"{name} {protocol}: gain {_mean(runs[name, protocol], 'gain'):+.3f} in {seconds:.0f} s", style="dim"
            )
            if rival is not None:
                theirs[name, protocol] = list(_runs(harness, rival, rows, protocol, seeds))
    console.print(_table(runs, "Learning"))
    console.print(_summary(runs))
    if theirs:
        console.print(_table(theirs, options.rival))
    _write({"ours": _named(runs), "theirs": _named(theirs)}, options.out)


def _rival(requirement: str | None) -> Callable[[], Any] | None:
    if requirement is None:
        return None
    python = install(requirement, Path(__file__).parent / "results" / "environments").python
    return lambda: AlmaMemoryLearner(python, lambda text: list(embedder().encode(text)))


def _named(runs: Runs) -> dict[str, list[dict[str, float]]]:
    return {f"{name}/{protocol}": found for (name, protocol), found in runs.items()}


def _runs(
    harness: Any, make: Callable[[], Any], rows: Sequence[Any], protocol: str, seeds: Sequence[int]
) -> Iterator[dict[str, float]]:
    for seed in seeds:
        memory = make()
        yield {key: float(value) for key, value in harness.run(memory, rows, protocol, seed).items()}
        memory.close()


def _shuffled(rows: Sequence[Any]) -> list[Any]:
    """The tasks with shuffled texts, which then carry no information."""
    texts = [row["text"] for row in rows]
    random.Random(9).shuffle(texts)
    return [{**row, "text": text} for row, text in zip(rows, texts, strict=True)]


def _mean(found: Sequence[dict[str, float]], key: str) -> float:
    return statistics.fmean(each[key] for each in found)


def _table(runs: Runs, title: str) -> Table:
    table = Table("stream", "protocol", "success", "best fixed", "oracle", "gain", "gain, second half", title=title)
    for (name, protocol), found in runs.items():
        second = f"{_mean(found, 'gain_2nd_half'):+.3f}" if protocol == "stream" else ""
        numbers = (f"{_mean(found, key):.3f}" for key in ("success", "best_fixed", "oracle"))
        table.add_row(name, protocol, *numbers, f"{_mean(found, 'gain'):+.3f}", second)
    return table


def _summary(runs: Runs) -> Table:
    table = Table(
        "streams", "protocol", "gain", "target", "best baseline", "success over random", title="Against the targets"
    )
    for protocol in PROTOCOLS:
        pooled = [runs[name, protocol] for name in ASLIB if (name, protocol) in runs]
        if len(pooled) == len(ASLIB):
            _add(table, "aslib", protocol, _pooled(pooled), [each for found in pooled for each in found])
        found = runs.get(("routerdc7-open", protocol))
        if found:
            gain = _mean(found, "gain_2nd_half" if protocol == "stream" else "gain")
            _add(table, "routerdc7-open", protocol, gain, found)
    return table


def _add(table: Table, name: str, protocol: str, gain: float, found: Sequence[dict[str, float]]) -> None:
    key = (name, protocol)
    better = _mean(found, "success") / _mean(found, "mean_strategy") - 1
    table.add_row(name, protocol, f"{gain:+.3f}", f"{TARGETS[key]:+.3f}", f"{BASELINES[key]:+.3f}", f"{better:+.0%}")


def _pooled(scenarios: Sequence[Sequence[dict[str, float]]]) -> float:
    won = sum(_mean(found, "success") - _mean(found, "best_fixed") for found in scenarios)
    return won / sum(_mean(found, "oracle") - _mean(found, "best_fixed") for found in scenarios)


def _speeds(console: Console) -> list[dict[str, Any]]:
    from learning_speed import measured

    folder = Path(tempfile.mkdtemp(prefix="alma-learning-"))
    try:
        found = [
            each
            for size in track((1_000, 10_000, 100_000), "learning", console=console)
            for each in measured(folder, size)
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table = Table("memories", "outcomes", "vectors", "learned per second", title="learn()")
    for each in found:
        table.add_row(f"{each['memories']:,}", each["outcomes"], each["vectors"], f"{each['per_second']:,.0f}")
    console.print(table)
    return found


def _harness(data: Path) -> Any:
    if not (data / "harness" / "outcomes.py").is_file():
        sys.exit(f"there are no outcome streams at {data}; name their folder with --data")
    os.environ.setdefault("MEMEVAL_DATA", str(data))
    sys.path.insert(0, str(data / "harness"))
    return importlib.import_module("outcomes")


def _write(results: Any, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="the first of the orders")
    parser.add_argument("--without-store", action="store_true", help="weigh the outcomes without storing them")
    parser.add_argument("--shuffled", action="store_true", help="deal out the texts by chance: they tell nothing")
    parser.add_argument("--data", type=Path, default=_DATA)
    parser.add_argument("--rival", help="what pip installs to compare with, such as alma-memory==0.11.0")
    parser.add_argument("--speed", action="store_true", help="measure how fast outcomes are learned instead")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "learning.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
