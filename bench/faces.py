"""Measure the faces: cold start, hooks, tokens of MCP, throughput of REST and MCP, and memory of an idle service.

    python bench/faces.py                                       # about ten minutes
    python bench/faces.py --stores sqlite --seconds 2 --clients 1,8
    python bench/faces.py --crowd                               # also 200 clients for a minute

Cold starts are the best of five, from the start of the process; everything runs with the local model on this machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import faces_hooks
import faces_mcp
import faces_rest
from places import STORES, stores_named
from storage import server_for, surroundings

_RESULTS = Path(__file__).parent / "results"
_ALMA = [sys.executable, "-m", "alma"]
_TARGETS = {"alma --help": 0.4, "MCP initialize": 0.5}
_IDLE_MB, _RETRIEVES = 250, 150
_STARTS = 5


def cold_starts(work: Path) -> dict[str, float]:
    """Seconds from the start of a process to its first answer."""
    store = str(work / "cold.db")
    learn = ["learn", "Test the form", "--agent", "helena", "--outcome", "success", "--strategy", "wait"]
    subprocess.run([*_ALMA, *learn, "--store", store], check=True, capture_output=True)
    retrieve = ["retrieve", "Test the form", "--agent", "helena", "--store", store]
    rest = [faces_rest.cold_start_seconds(str(work / "rest.db")) for _ in range(_STARTS)]
    return {
        "alma --help": _best([*_ALMA, "--help"]),
        "alma stats": _best([*_ALMA, "stats", "--store", store]),
        "alma retrieve": _best([*_ALMA, *retrieve]),
        "MCP initialize": min(faces_mcp.cold_initialize(["--store", store]).seconds for _ in range(_STARTS)),
        "REST health": min(each["health"] for each in rest),
        "REST retrieve": min(each["retrieve"] for each in rest),
    }


def loads(store: str, target: str, clients: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    """Throughput of REST and MCP on one store."""
    with faces_rest.serving(target) as server:
        found = [
            {"store": store, "face": "REST", **asdict(each)}
            for each in faces_rest.loads(server, tuple(clients), seconds)
        ]
    for count in clients:
        for each in faces_mcp.throughput(["--store", target, "--project", "bench"], "http", count, seconds):
            found.append({"store": store, "face": "MCP", "operation": each.tool.removeprefix("alma_"), **asdict(each)})
    return found


def _best(command: Sequence[str]) -> float:
    return min(_seconds(command) for _ in range(_STARTS))


def _seconds(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


def show(console: Console, found: dict[str, Any]) -> None:
    """Print the tables, and mark missed targets."""
    starts = Table("cold start to the first answer", "seconds", "target")
    for name, seconds in found["cold_start_seconds"].items():
        target = _TARGETS.get(name)
        starts.add_row(name, f"{seconds:.2f}", "" if target is None else _judged(seconds < target, f"< {target}"))
    console.print(starts)
    memory = Table("memory of an idle service", "MB", "target")
    for name, megabytes in found["idle_memory_mb"].items():
        memory.add_row(name, f"{megabytes:.0f}", _judged(megabytes < _IDLE_MB, f"< {_IDLE_MB}"))
    console.print(memory)
    hooks = Table("hook", "state", "p50 ms", "p95 ms", "processor ms", "target")
    for each in found["hooks"]:
        limit = faces_hooks.LIMIT_MS
        wanted = "" if each["state"] == "interpreter" else _judged(each["p95_ms"] <= limit, f"p95 ≤ {limit}")
        times = [f"{each[name]:.0f}" for name in ("p50_ms", "p95_ms", "processor_ms")]
        hooks.add_row(each["event"], each["state"], *times, wanted)
    console.print(hooks)
    tokens = Table("MCP", "tokens")
    for name, count in found["tokens"].items():
        tokens.add_row(name, f"{count:,}")
    console.print(tokens)
    table = Table("store", "face", "operation", "clients", "a second", "p50 ms", "p99 ms", "errors", "target")
    for each in found["loads"]:
        counted = (each["face"], each["operation"], each["clients"]) == ("REST", "retrieve", 8)
        wanted = _judged(each["per_second"] >= _RETRIEVES, f"≥ {_RETRIEVES}/s") if counted else ""
        cells = (STORES[each["store"]], each["face"], each["operation"], str(each["clients"]))
        numbers = (f"{each['per_second']:,.0f}", f"{each['p50_ms']:.1f}", f"{each['p99_ms']:.1f}", str(each["errors"]))
        table.add_row(*cells, *numbers, wanted)
    console.print(table)
    if crowd := found.get("crowd"):
        console.print(
            f"{crowd['clients']} clients for a minute: {crowd['per_second']:,.0f} retrieves a second, "
            f"p50 {crowd['p50_ms']:.0f} ms, p99 {crowd['p99_ms']:.0f} ms, {crowd['errors']} errors"
        )


def _judged(reached: bool, target: str) -> str:
    return target if reached else f"{target} ✗"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=stores_named, default="sqlite,postgresql")
    parser.add_argument("--clients", type=lambda text: [int(each) for each in text.split(",")], default="1,8,64")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each load lasts")
    parser.add_argument("--crowd", action="store_true", help="also 200 clients for a minute")
    parser.add_argument("--json", type=Path, default=_RESULTS / "faces.json")
    args = parser.parse_args()
    progress = Console(stderr=True)
    _RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-") as folder, server_for(args.stores) as server:
        work = Path(folder)
        with progress.status("cold starts"):
            found: dict[str, Any] = {"cold_start_seconds": cold_starts(work)}
        with progress.status("an idle service"):
            found["idle_memory_mb"] = faces_rest.idle_memory_mb(str(work / "idle.db"))
        with progress.status("hooks, and what MCP costs a model"):
            found["hooks"] = [asdict(each) for each in faces_hooks.latencies(work)]
            found["tokens"] = faces_hooks.tokens(work)
        found["loads"] = []
        for store in args.stores:
            target = str(work / "load.db") if server is None or store == "sqlite" else server.create_database("faces")
            with progress.status(f"loads on {STORES[store]}"):
                found["loads"] += loads(store, target, args.clients, args.seconds)
        if args.crowd:
            with progress.status("a crowd"), faces_rest.serving(str(work / "crowd.db")) as service:
                found["crowd"] = asdict(faces_rest.crowd(service))
    show(Console(width=None if sys.stdout.isatty() else 110), found)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({"surroundings": surroundings(), **found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
