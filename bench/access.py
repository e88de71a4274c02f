"""Measure the cost of counting reads: the same reads with and without it, in turns, on one SQLite file.

    python bench/access.py                  # 10,000 memories, 20,000 reads of each, less than a minute

Both read by id through `Journal.get`. With counting, the counts are flushed in the background while it runs, as often
as by default. Prints a table, a line of JSON, and whether the target holds: at most 5 % more at the median.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from alma.bootstrap import create_embedder, open_storage
from alma.memory.journal import Journal
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter

PROJECT = Scope(project_id="shop")
TURN = 200
MOST = 1.05


def measured(memories: int, reads: int) -> dict[str, list[float]]:
    """How long each read took, in microseconds."""
    took: dict[str, list[float]] = {"without": [], "counted": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(open_storage(str(folder / "alma.db")))
        embedder = create_embedder("mock")
        store.save_many(
            Memory(id=f"m{i}", project_id="shop", content=f"entry number {i} of the shop") for i in range(memories)
        )
        engine = RetrievalEngine(store, embedder)
        stack.callback(engine.close)
        writer = MemoryWriter(store, embedder)
        journals = {
            "without": stack.enter_context(Journal(store, writer, engine, count_reads=False)),
            "counted": stack.enter_context(Journal(store, writer, engine)),
        }
        choose = random.Random(1)
        for turn in range(2 * reads // TURN):
            # In pairs whose order changes, so that neither always comes first.
            name = ("without", "counted", "counted", "without")[turn % 4]
            for _ in range(TURN):
                key = f"m{choose.randrange(memories)}"
                started = time.perf_counter()
                journals[name].get(key, PROJECT)
                took[name].append((time.perf_counter() - started) * 1e6)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--reads", type=int, default=20_000)
    chosen = parser.parse_args()
    took = measured(chosen.memories, chosen.reads)
    table = Table("", "p50 µs", "p95 µs")
    results: dict[str, float] = {}
    for name, values in took.items():
        p50, p95 = statistics.median(values), statistics.quantiles(values, n=20)[-1]
        table.add_row(name, f"{p50:.1f}", f"{p95:.1f}")
        results |= {f"{name}_p50_us": round(p50, 1), f"{name}_p95_us": round(p95, 1)}
    ratio = results["counted_p50_us"] / results["without_p50_us"]
    console = Console()
    console.print(table)
    console.print(f"counting costs {ratio - 1:+.1%} at the median: {'holds' if ratio <= MOST else 'missed'} (5 %)")
    print(json.dumps({**results, "ratio": round(ratio, 4)}))


if __name__ == "__main__":
    main()
