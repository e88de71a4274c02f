"""`alma bench`: measure saving, learning and retrieving on a temporary store."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from alma.cli.app import single
from alma.cli.output import AsJson, progress_bar, say, show_json, show_table
from alma.core import ALMA
from alma.model.governance import Attribution

_TASKS = (
    "test the login form",
    "deploy the web shop",
    "write the release notes",
    "find the slow query",
    "mend the build",
)
_WAYS = ("wait for the network to be idle", "read the log first", "start from the smallest case", "ask for a review")
_AGENT = "bench"
_PROJECT = "bench"


def bench(
    count: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="The number of operations of each kind.")
    ] = 100,
    embeddings: Annotated[
        Literal["local", "mock"],
        typer.Option(help="The local model, or mock embeddings to measure the store alone."),
    ] = "local",
    as_json: AsJson = False,
) -> None:
    """Measure saving, learning and retrieving on this machine, with a temporary store."""
    with (
        tempfile.TemporaryDirectory(prefix="alma-bench-") as folder,
        ALMA.quickstart(Path(folder) / "alma.db", _PROJECT, embedding_provider=embeddings) as memory,
    ):
        rows = [_measured(name, act, count) for name, act in _acts(memory)]
    if as_json:
        show_json({"embeddings": embeddings, "count": count, "results": rows})
        return
    show_table(("what", "per_second", "median_ms", "p95_ms"), rows, as_json=False)
    say(f"{count} of each on a new SQLite store, {embeddings} embeddings, one process.")


def _acts(memory: ALMA) -> Iterator[tuple[str, Callable[[int], Any]]]:
    by = Attribution(agent=_AGENT)
    yield "remember", lambda n: memory.journal.create(_text(n), by=by, project_id=_PROJECT)
    yield "learn", lambda n: memory.learn(_AGENT, _text(n), n % 4 > 0, _WAYS[n % len(_WAYS)])
    yield "retrieve", lambda n: memory.retrieve(f"how to {_text(n)}", _AGENT)
    # The same query again hits the cache.
    yield "retrieve again", lambda n: memory.retrieve(f"how to {_text(n)}", _AGENT)


def _text(n: int) -> str:
    return f"{_TASKS[n % len(_TASKS)]} of customer {n}"


def _measured(name: str, act: Callable[[int], Any], count: int) -> dict[str, object]:
    # The first operation loads the model.
    act(count)
    took = []
    with _counting(name, count) as tell:
        for n in range(count):
            begun = time.perf_counter()
            act(n)
            took.append((time.perf_counter() - begun) * 1000)
            tell(n + 1)
    took.sort()
    return {
        "what": name,
        "per_second": round(1000 * count / sum(took), 1),
        "median_ms": round(took[count // 2], 2),
        "p95_ms": round(took[min(count - 1, count * 95 // 100)], 2),
    }


@contextmanager
def _counting(name: str, count: int) -> Iterator[Callable[[int], None]]:
    with progress_bar() as bar:
        task = bar.add_task(name, total=count)
        yield lambda done: bar.update(task, completed=done)


app = single(bench, "alma bench --count 10", "alma bench --embeddings mock --count 50 --json")
