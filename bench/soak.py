"""Load a service for some minutes with honest and hostile clients, and check that it stays stable.

    python bench/soak.py                          # ten minutes
    python bench/soak.py --minutes 1 --no-hostile # honest clients alone; too short to judge what must stay level
    python bench/soak.py --store postgresql://…   # sizes of files are then not measured

`alma serve` runs in a process of its own with its defaults, and has done everything once before the time begins. Honest
clients learn, retrieve, recommend, search, create, delete, hold conversations and work in sessions; `alma export` runs
beside them every half minute. Hostile clients, from an address of their own, send repeated units of up to 1 MB,
half-open connections, slow bodies, wrong keys, huge heads and invisible characters (bench/soak_clients.py). The exit
status is 1 if a bar is missed:

    errors of honest clients and failed probes of /health    0
    /health, p99                                             200 ms
    resident memory, last third over middle third            1.15 times, and 20 MB more
    open descriptors, the same                               1.25 times, and 16 more
    files, the same                                          4 more
    bytes on disk for each KB that was accepted, the same    1.3 times
    log, for each minute                                     1 MB

What must stay level is judged in runs of five minutes and more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

import soak_clients

HEALTH_P99_MS = 200.0
_LEVEL_FROM_MINUTES = 5.0
_SAMPLE_SECONDS, _EXPORT_SECONDS, _TOLD_SECONDS = 2.0, 30.0, 15.0
# What a row weighs beside its text: its vector, words, versions and audit event.
_ROW_KB = 8.0
_MOST_ERRORS_SHOWN = 10
_ADDRESS = re.compile(r"http://[\w.:\[\]-]+")


@dataclass(frozen=True)
class Sample:
    """Resource use of the service at one moment."""

    seconds: float
    memory_mb: float
    descriptors: int
    files: int
    disk_mb: float
    log_mb: float
    accepted_kb: float


@dataclass
class Seen:
    """What the clients reported."""

    health_ms: list[float] = field(default_factory=list)
    answered_ms: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    attacks: Counter[str] = field(default_factory=Counter)
    exports: int = 0
    accepted_kb: float = 0.0

    def take(self, name: str, value: Any) -> None:
        match name:
            case "health":
                self.health_ms.append(1000 * value)
            case "answered":
                self.answered_ms.setdefault(value[0], []).append(1000 * value[1])
            case "error":
                self.errors.append(value)
            case "attacks":
                self.attacks.update(value)
            case "written":
                self.accepted_kb += _ROW_KB + value / 1024


@dataclass(frozen=True)
class Bar:
    """A limit that must hold; `is_met` is None if the run was too short."""

    name: str
    found: str
    wanted: str
    is_met: bool | None


def main() -> None:
    options = _options()
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="alma-soak-"))
    store = options.store or str(folder / "store" / "alma.db")
    (folder / "store").mkdir()
    try:
        with _serving(store, folder / "serve.log") as (address, server):
            seen, samples = _soaked(address, server, store, folder, options, console)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bars = list(_bars(seen, samples, options.minutes))
    console.print(_latencies(seen), _levels(samples), _judged(bars))
    for error, count in Counter(seen.errors).most_common(_MOST_ERRORS_SHOWN):
        console.print(f"{count} × {error}", style="red", markup=False)
    for attack, count in sorted(seen.attacks.items()):
        console.print(f"{attack}: {count}", style="dim", markup=False)
    _write(seen, samples, bars, options)
    sys.exit(int(any(bar.is_met is False for bar in bars)))


@contextmanager
def _serving(store: str, log: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A real service on a store, with its output in a file."""
    command = [sys.executable, "-m", "alma", "serve", "--port", "0", "--store", store, "--project", "soak"]
    with log.open("w") as told, subprocess.Popen(command, stdout=told, stderr=told) as process:
        try:
            yield _announced(process, log), psutil.Process(process.pid)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = _ADDRESS.search(log.read_text())
        if found is not None:
            return found[0]
        time.sleep(0.1)
    sys.exit(f"the service did not start: {log.read_text()[-2000:]}")


def _soaked(
    address: str,
    server: psutil.Process,
    store: str,
    folder: Path,
    options: argparse.Namespace,
    console: Console,
) -> tuple[Seen, list[Sample]]:
    """Collect client results and resource use until the time is over."""
    spawned = multiprocessing.get_context("spawn")
    queue = spawned.Queue()
    soak_clients.warm(address)
    begun = time.time()
    until = begun + 60 * options.minutes
    roles = [
        spawned.Process(target=_probing, args=(address, until, queue)),
        spawned.Process(target=_honest, args=(address, until, options.clients, queue)),
    ]
    if options.hostile:
        roles.append(spawned.Process(target=_hostile, args=(address, until, options.attackers, queue)))
    for role in roles:
        role.start()
    seen, samples = Seen(), list[Sample]()
    export: subprocess.Popen[bytes] | None = None
    next_export, next_told = begun + _EXPORT_SECONDS, begun + _TOLD_SECONDS
    while any(role.is_alive() for role in roles) and time.time() < until + 2 * soak_clients.TIMEOUT_SECONDS:
        _drain(queue, seen)
        if time.time() < until:
            samples.append(_sample(server, folder, seen, time.time() - begun))
        if time.time() >= next_export and (export is None or export.poll() is not None):
            _note_export(export, seen)
            export, next_export = _export(store, folder), time.time() + _EXPORT_SECONDS
        if time.time() >= next_told:
            console.print(_progress(seen, samples), style="dim")
            next_told = time.time() + _TOLD_SECONDS
        time.sleep(_SAMPLE_SECONDS)
    _drain(queue, seen)
    for role in roles:
        if role.is_alive():
            seen.errors.append("a client did not come to an end")
            role.kill()
    if export is not None:
        export.wait(120)
        _note_export(export, seen)
    return seen, samples


def _probing(address: str, until: float, queue: Any) -> None:
    soak_clients.probe(address, until, lambda name, value: queue.put((name, value)))


def _honest(address: str, until: float, count: int, queue: Any) -> None:
    report = partial(_reported, queue)
    soak_clients.together([partial(soak_clients.honest, address, until, seed, report) for seed in range(count)])


def _hostile(address: str, until: float, count: int, queue: Any) -> None:
    report = partial(_reported, queue)
    soak_clients.together([partial(soak_clients.hostile, address, until, seed, report) for seed in range(count)])


def _reported(queue: Any, name: str, value: Any) -> None:
    queue.put((name, value))


def _drain(queue: Any, seen: Seen) -> None:
    while not queue.empty():
        seen.take(*queue.get())


def _export(store: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "alma", "export", store, str(folder / "export.jsonl"), "--force"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _note_export(export: subprocess.Popen[bytes] | None, seen: Seen) -> None:
    if export is None:
        return
    _, said = export.communicate()
    seen.exports += 1
    if export.returncode:
        seen.errors.append(f"alma export: {said.decode()[-200:]}")


def _sample(server: psutil.Process, folder: Path, seen: Seen, seconds: float) -> Sample:
    sizes = [each.stat().st_size for each in (folder / "store").rglob("*") if each.is_file()]
    return Sample(
        seconds=round(seconds, 1),
        memory_mb=round(server.memory_info().rss / 2**20, 1),
        descriptors=server.num_fds(),
        files=len(sizes),
        disk_mb=round(sum(sizes) / 2**20, 2),
        log_mb=round((folder / "serve.log").stat().st_size / 2**20, 3),
        accepted_kb=round(seen.accepted_kb, 1),
    )


# ---------------------------------------------------------------------- what came of it


def _bars(seen: Seen, samples: Sequence[Sample], minutes: float) -> Iterator[Bar]:
    yield Bar("errors of honest clients and probes", str(len(seen.errors)), "0", not seen.errors)
    p99 = _quantile(seen.health_ms, 0.99)
    yield Bar("/health p99", f"{p99:.0f} ms", f"≤ {HEALTH_P99_MS:.0f} ms", p99 <= HEALTH_P99_MS)
    is_long = minutes >= _LEVEL_FROM_MINUTES
    middle, last = (samples[len(samples) * part // 3 : len(samples) * (part + 1) // 3] for part in (1, 2))
    if not middle or not last:
        return
    # Memory is what it mostly is; the rest what is left of it where attackers pause and the log of writes was cleared.
    for name, key, usual, times, more in (
        ("resident memory, MB", "memory_mb", statistics.median, 1.15, 20.0),
        ("open descriptors", "descriptors", min, 1.25, 16.0),
        ("files", "files", min, 1.0, 4.0),
    ):
        before, after = (usual([getattr(each, key) for each in part]) for part in (middle, last))
        most = times * before + more
        yield Bar(f"{name}, level", f"{before:g} → {after:g}", f"≤ {most:g}", after <= most if is_long else None)
    before, after = (min(1024 * each.disk_mb / each.accepted_kb for each in part) for part in (middle, last))
    met = after <= 1.3 * before if is_long else None
    yield Bar("KB on disk for each KB accepted", f"{before:.2f} → {after:.2f}", f"≤ {1.3 * before:.2f}", met)
    log = samples[-1].log_mb / minutes
    yield Bar("log for each minute", f"{log:.2f} MB", "≤ 1 MB", log <= 1)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values) or [float("inf")]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _latencies(seen: Seen) -> Table:
    table = Table("request", "answers", "p50 ms", "p95 ms", "p99 ms", "max ms", title="What honest clients waited")
    for name, spent in (("GET /health, probed", seen.health_ms), *sorted(seen.answered_ms.items())):
        numbers = (f"{_quantile(spent, share):.1f}" for share in (0.5, 0.95, 0.99, 1))
        table.add_row(name, f"{len(spent):,}", *numbers)
    return table


def _levels(samples: Sequence[Sample]) -> Table:
    table = Table(
        "minute", "memory MB", "descriptors", "files", "disk MB", "accepted MB", "log MB", title="The service"
    )
    shown = samples[:: max(1, len(samples) // 12)]
    for each in (*shown, *(samples[-1:] if shown[-1:] != samples[-1:] else ())):
        numbers = (each.memory_mb, each.descriptors, each.files, each.disk_mb, each.accepted_kb / 1024, each.log_mb)
        table.add_row(f"{each.seconds / 60:.1f}", *(f"{number:,.1f}".removesuffix(".0") for number in numbers))
    return table


def _judged(bars: Sequence[Bar]) -> Table:
    words = {True: "[green]met[/]", False: "[red]missed[/]", None: "too short to tell"}
    table = Table("bar", "found", "wanted", "", title="Bars")
    for bar in bars:
        table.add_row(bar.name, bar.found, bar.wanted, words[bar.is_met])
    return table


def _progress(seen: Seen, samples: Sequence[Sample]) -> str:
    now, answers = samples[-1], sum(map(len, seen.answered_ms.values()))
    return (
        f"{now.seconds:4.0f} s: {answers:,} answers, {len(seen.errors)} errors, /health p99 "
        f"{_quantile(seen.health_ms, 0.99):.0f} ms, {now.memory_mb:.0f} MB, {now.descriptors} descriptors, "
        f"{now.files} files of {now.disk_mb:.1f} MB"
    )


def _write(seen: Seen, samples: Sequence[Sample], bars: Sequence[Bar], options: argparse.Namespace) -> None:
    spent = {"GET /health, probed": seen.health_ms, **seen.answered_ms}
    quantiles = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    results = {
        "minutes": options.minutes,
        "hostile": options.hostile,
        "latency_ms": {
            name: {"answers": len(each), **{key: round(_quantile(each, share), 2) for key, share in quantiles.items()}}
            for name, each in spent.items()
        },
        "errors": Counter(seen.errors).most_common(100),
        "attacks": dict(seen.attacks),
        "exports": seen.exports,
        "samples": [asdict(each) for each in samples],
        "bars": [asdict(each) for each in bars],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=4, help="how many honest clients there are")
    parser.add_argument("--attackers", type=int, default=4, help="how many hostile clients there are")
    parser.add_argument("--hostile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--store", help="a store to serve instead of a new SQLite file")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "soak.json")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
