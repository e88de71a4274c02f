"""Commands for the HNSW indexes of a PostgreSQL store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from alma.bootstrap import open_postgres
from alma.cli.app import application, examples
from alma.cli.output import AsJson, Schema, progress_of, say, show_json, show_table
from alma.cli.store_options import Config, Store, place_of
from alma.errors import ConfigurationError
from alma.model.kinds import KINDS

if TYPE_CHECKING:
    from alma.storage.postgres.vector_index import VectorIndexState
    from alma.storage.postgresql import PostgreSQLStorage

app = application("The HNSW indexes of a PostgreSQL store's vectors.")
indexes = application("Create, drop and show the HNSW indexes; there is one for each kind and model.")
app.add_typer(indexes, name="vector-index")

Kind = Annotated[
    str | None, typer.Option(help="Only vectors of this kind, for example heuristic; default: every kind with vectors.")
]
Model = Annotated[str | None, typer.Option(help="Only vectors of this model; default: every model.")]
_COLUMNS = ("kind", "model", "dims", "vectors", "state", "index", "bytes")
_EMBEDDED = {cls.spec.kind: cls for cls in KINDS if cls.spec.embeds}
_LOOK_SECONDS = 0.5


@indexes.command("status", epilog=examples("alma store vector-index status --store postgresql://alma@localhost/agents"))
def status(config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """Show how many vectors there are of each kind and model, and whether they have an index."""
    with open_postgres(*place_of(config, store, schema)) as storage:
        rows = [asdict(state) for state in storage.vector_indexes()]
    show_table(_COLUMNS, rows, as_json)


@indexes.command("create", epilog=examples("alma store vector-index create", "alma store vector-index create --json"))
def create(
    config: Config = None,
    store: Store = None,
    kind: Kind = None,
    model: Model = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Build the indexes that are missing; the store can be written to meanwhile."""
    made: list[str] = []
    with open_postgres(*place_of(config, store, schema)) as storage:
        for state in _chosen(storage, kind, model):
            if state.state != "ready":
                with _watched(storage, state):
                    made.append(storage.prepare_vector_index(_EMBEDDED[state.kind], state.model))
    if as_json:
        show_json({"created": made})
    else:
        say(f"{len(made)} index(es) created{': ' if made else ''}{', '.join(made)}")


@indexes.command("drop", epilog=examples("alma store vector-index drop --kind heuristic"))
def drop(
    config: Config = None,
    store: Store = None,
    kind: Kind = None,
    model: Model = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Drop indexes; searches compare every vector from then on.

    A server of this store builds the index again while a kind has more vectors than `postgres.vector_index_above`.
    """
    dropped: list[str] = []
    with open_postgres(*place_of(config, store, schema)) as storage:
        for state in _chosen(storage, kind, model):
            if state.index is not None and storage.drop_vector_index(_EMBEDDED[state.kind], state.model):
                dropped.append(state.index)
    if as_json:
        show_json({"dropped": dropped})
    else:
        say(f"{len(dropped)} index(es) dropped{': ' if dropped else ''}{', '.join(dropped)}")


def _chosen(storage: PostgreSQLStorage, kind: str | None, model: str | None) -> list[VectorIndexState]:
    if kind is not None and kind not in _EMBEDDED:
        raise ConfigurationError(f"no kind {kind!r} has vectors; there are {', '.join(_EMBEDDED)}")
    found = storage.vector_indexes()
    models = list(dict.fromkeys(state.model for state in found))
    if model is not None and model not in models:
        raise ConfigurationError(f"the store has no vectors of a model {model!r}; it has {', '.join(models) or 'none'}")
    return [state for state in found if kind in (None, state.kind) and model in (None, state.model)]


@contextmanager
def _watched(storage: PostgreSQLStorage, state: VectorIndexState) -> Iterator[None]:
    """Show how far the server is, while it builds."""
    done = threading.Event()
    with progress_of(f"{state.kind}, {state.model}") as tell:

        def watch() -> None:
            while not done.wait(_LOOK_SECONDS):
                if (far := storage.vector_index_progress()) is not None:
                    tell(*far)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
