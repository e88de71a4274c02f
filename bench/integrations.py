"""Measure what the adapters of frameworks cost per call, beside the frameworks' own SQLite implementations.

    python bench/integrations.py [--calls 200]

Prints processor time per call, and the time that passes, of the store and the checkpointer of LangGraph and of the
session of the OpenAI Agents SDK. ALMA's vectors are made by its local model, or of the words with `--mock`; the SQLite
store of LangGraph makes none.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from agents.memory import SQLiteSession
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from alma import ALMA
from alma.integration.langgraph_checkpoint import ALMASaver
from alma.integration.langgraph_store import ALMAStore
from alma.integration.openai_agents import ALMASession

TEXTS = ("The parcel of customer {} went to Lisbon", "Customer {} likes short answers", "Order {} was paid twice")


class Cost(NamedTuple):
    """Milliseconds per call: of the processor, and passed."""

    cpu: float
    wall: float


def cost(calls: int, call: Callable[[int], object]) -> Cost:
    """What a call costs on average."""
    call(-1)
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(calls):
        call(number)
    return Cost((time.process_time() - cpu) * 1000 / calls, (time.perf_counter() - wall) * 1000 / calls)


def said(number: int) -> str:
    return TEXTS[number % len(TEXTS)].format(number)


def of_store(store: Any, calls: int) -> Iterator[tuple[str, Cost]]:
    """Put, get and search items."""
    yield "store: put", cost(calls, lambda n: store.put(("notes", str(n % 10)), str(n), {"text": said(n), "n": n}))
    yield "store: get", cost(calls, lambda n: store.get(("notes", str(n % 10)), str(n)))
    yield "store: search a folder", cost(calls, lambda n: store.search(("notes", str(n % 10)), limit=5))
    yield "store: search with a filter", cost(calls, lambda n: store.search(("notes",), filter={"n": n}, limit=5))


def of_saver(saver: Any, calls: int) -> Iterator[tuple[str, Cost]]:
    """Put the checkpoints and writes of a thread of twenty messages, and get the last one."""
    messages = [f"{said(n)}, and so on" for n in range(20)]
    state: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

    def put(number: int) -> None:
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"messages": messages}}
        state.update(saver.put(state, checkpoint, {"step": number}, {}))

    yield "checkpointer: put", cost(calls, put)
    yield "checkpointer: put_writes", cost(calls, lambda n: saver.put_writes(state, [("note", said(n))], f"task {n}"))
    thread: Any = {"configurable": {"thread_id": "t"}}
    yield "checkpointer: get_tuple", cost(calls, lambda _: saver.get_tuple(thread))


def of_session(session: Any, calls: int) -> Iterator[tuple[str, Cost]]:
    """Add items to a session, and get the last ones."""
    with asyncio.Runner() as runner:

        def add(number: int) -> None:
            runner.run(session.add_items([{"role": "user", "content": said(number)}]))

        yield "session: add one item", cost(calls, add)
        yield "session: get 20 items", cost(calls, lambda _: runner.run(session.get_items(20)))


def measured(calls: int, mock: bool) -> Iterator[tuple[str, Cost, Cost]]:
    """Each call, with its cost in ALMA and in the framework's own implementation."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        settings: dict[str, Any] = {"embedding_provider": "mock"} if mock else {}
        memory = stack.enter_context(ALMA.quickstart(folder / "alma.db", "bench", **settings))
        connection = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
        stack.callback(connection.close)
        store = stack.enter_context(SqliteStore.from_conn_string(str(folder / "store.db")))
        store.setup()
        session = SQLiteSession("s", folder / "session.db")
        stack.callback(session.close)
        pairs = [
            (of_store, ALMAStore(memory), store),
            (of_saver, ALMASaver(memory), SqliteSaver(connection)),
            (of_session, ALMASession("s", memory), session),
        ]
        for measure, ours, theirs in pairs:
            own = dict(measure(theirs, calls))
            for what, ours_cost in measure(ours, calls):
                yield what, ours_cost, own[what]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--mock", action="store_true", help="vectors of the words, to see what the rest costs")
    options = parser.parse_args()
    print(f"{'':30} {'ALMA':>18} {'own SQLite':>18}   overhead")
    print(f"{'ms per call (processor, passed)':30}")
    for what, ours, own in measured(options.calls, options.mock):
        print(f"{what:30} {ours.cpu:9.2f} {ours.wall:8.2f} {own.cpu:9.2f} {own.wall:8.2f}   +{ours.cpu - own.cpu:.2f}")


if __name__ == "__main__":
    main()
