"""`alma sync`: the generated commands, and `run`, which can also follow the store."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from alma.cli.app import examples
from alma.cli.commands import group
from alma.cli.output import AsJson, progress_of, say, show_json, warn
from alma.cli.results import is_failed, show_result
from alma.cli.store_options import Config, Store, open_memory
from alma.errors import ConfigurationError
from alma.operations.access import Caller
from alma.operations.base import to_json
from alma.operations.engines import sync_run

_FACTS = ("engine", "kind", "id", "error")


def sync(name: str, word: str = "") -> typer.Typer:
    """The commands of the engines beside the store."""
    made = group(name, word)
    made.command(
        "run", epilog=examples("alma sync run", "alma sync run --engine redis --json", "alma sync run --follow")
    )(run)
    # Second, as in the list of operations.
    made.registered_commands.insert(1, made.registered_commands.pop())
    return made


def run(
    config: Config = None,
    store: Store = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this engine: qdrant, neo4j or redis; default: all.")
    ] = None,
    wait_seconds: Annotated[
        float, typer.Option(help="Seconds to wait for records that another relay holds or that failed.")
    ] = 0.0,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until stopped with Ctrl-C or SIGTERM.")] = False,
    as_json: AsJson = False,
) -> None:
    """Carry the changes that wait in the outbox to the engines, and continue interrupted rebuilds.

    A running service (alma serve, alma mcp) does this by itself; any number of relays share the work. An engine that
    does not answer is reported and does not hold up the others; the exit code is 1 then.
    """
    if follow:
        if as_json or wait_seconds:
            raise ConfigurationError("--follow goes on until it is stopped: leave out --json and --wait-seconds")
        _follow(config, store, engine)
        return
    with open_memory(config, store, None, must_exist=True) as memory, progress_of("sync run") as progress:
        request = {"engine": engine, "wait_seconds": wait_seconds}
        result = to_json(sync_run.perform(Caller(memory, progress=progress), request))
    if as_json:
        show_json(result)
    else:
        show_result(sync_run, result, request)
    if is_failed(sync_run, result):
        raise typer.Exit(1)


def _follow(config: Path | None, store: str | None, engine: str | None) -> None:
    stopped = threading.Event()
    with open_memory(config, store, None, must_exist=True) as memory, _until_stopped(stopped), _shown_log():
        memory.sync.require_engines()
        memory.sync.start(engine)
        names = ", ".join(each.name for each in memory.sync.projections if engine in (None, each.name))
        say(f"keeping {names} equal to the store; stop it with Ctrl-C")
        stopped.wait()
        memory.sync.stop()
        for each in memory.sync.status(ping=False):
            if each.pending:
                say(f"{each.engine}: {each.pending:,} record(s) wait for the next run")


@contextmanager
def _until_stopped(stopped: threading.Event) -> Iterator[None]:
    def stop(*_: object) -> None:
        stopped.set()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _ToStderr(logging.Handler):
    """Shows what the relays log, with its facts."""

    def emit(self, record: logging.LogRecord) -> None:
        facts = [str(fact) for name in _FACTS if (fact := getattr(record, name, None)) is not None]
        warn(": ".join([*facts[:1], record.getMessage(), *facts[1:]]))


@contextmanager
def _shown_log() -> Iterator[None]:
    log, shown = logging.getLogger("alma.sync"), _ToStderr(logging.INFO)
    before = log.level, log.propagate
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.level, log.propagate = before
