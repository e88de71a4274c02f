"""Commands for the store itself: its schema, its partitions and its vectors."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from alma.bootstrap import create_embedder, migrate_storage, open_migrator, partition_tables, reembed_storage
from alma.cli.lazy import application, examples, single
from alma.cli.places import Config, Store, embedding_of, place_of
from alma.cli.shown import AsJson, Schema, progress_bar, say, show_json, show_table
from alma.errors import ConfigurationError
from alma.sync.reembed import Progress

migrate = application("Tell or change the schema version of a store.")


@migrate.command("status", epilog=examples("alma migrate status", "alma migrate status --store .alma/alma.db --json"))
def migrate_status(config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """Which migrations the store has been through, and which are still to come."""
    place = place_of(config, store, schema)
    with open_migrator(place.store, place.schema) as migrator:
        states = migrator.status()
    rows = [
        {
            "version": state.migration.version,
            "name": state.migration.name,
            "applied_at": state.applied_at.isoformat() if state.applied_at else None,
        }
        for state in states
    ]
    show_table(("version", "name", "applied_at"), rows, as_json, missing="pending")


@migrate.command("up", epilog=examples("alma migrate up --dry-run", "alma migrate up --store .alma/alma.db"))
def migrate_up(
    config: Config = None,
    store: Store = None,
    schema: Schema = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the store to the newest schema; an SQLite file is backed up beside itself first."""
    place = place_of(config, store, schema)
    with open_migrator(place.store, place.schema) as migrator:
        pending = migrator.pending()
    if not dry_run:
        migrate_storage(place.store, place.schema)
    if as_json:
        show_json({"pending" if dry_run else "applied": [each.file_name for each in pending], "dry_run": dry_run})
        return
    if not dry_run:
        say(f"{len(pending)} migration(s) applied")
        return
    for migration in pending:
        say(f"-- {migration.file_name}\n{migration.sql}")
    say(f"-- {len(pending)} migration(s) pending, nothing was changed")


def partition(
    config: Config = None,
    store: Store = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="memories, audit_log; both when not given.")
    ] = None,
    interval: Annotated[str, typer.Option(help="month or quarter")] = "month",
    ahead: Annotated[int, typer.Option(help="How many intervals to prepare ahead of now.")] = 3,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Split tables of a PostgreSQL store by time, or prepare further partitions; safe to run again and again."""
    place = place_of(config, store, schema)
    made = partition_tables(place.store, table, interval, ahead, place.schema)
    rows = [{"table": p.table, "partition": p.name, "bounds": p.bounds, "rows": p.rows} for p in made]
    show_table(("table", "partition", "bounds", "rows"), rows, as_json)


def reembed(
    config: Config = None,
    store: Store = None,
    provider: Annotated[
        str | None,
        typer.Option(help="local, openai, azure or mock; the configuration's when not given, or else local."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model than the provider's usual one.")] = None,
    dimensions: Annotated[int | None, typer.Option(help="How long its vectors are, where that can be chosen.")] = None,
    folder: Annotated[str | None, typer.Option(help="A local model's folder: model.onnx and tokenizer.json.")] = None,
    deployment: Annotated[str | None, typer.Option(help="The name of the Azure deployment.")] = None,
    batch_size: Annotated[int, typer.Option(help="How many records are embedded and stored at once.")] = 64,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Move the store to an embedding model, while it is in use; when interrupted, run it again to go on.

    What the configuration says about a provider holds where nothing else is given here. Keys come from there or from
    the environment: OPENAI_API_KEY; AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY.
    """
    if batch_size < 1:
        raise ConfigurationError("--batch-size must be at least 1")
    place = place_of(config, store, schema)
    chosen, options = embedding_of(config, store, provider)
    spelled = {"local": ("model_name", "dimensions"), "mock": ("model", "dimension")}
    name, length = spelled.get(chosen, ("model", "dimensions"))
    given: dict[str, Any] = {name: model, length: dimensions, "folder": folder, "deployment": deployment}
    embedder = create_embedder(
        chosen, **{**options, **{name: value for name, value in given.items() if value is not None}}
    )
    with progress_bar() as bar:
        task = bar.add_task(embedder.model, total=None)

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.total)

        made = reembed_storage(place.store, embedder, show, batch_size, place.schema)
    if as_json:
        show_json({"made": made, "embedding_model": embedder.model, "embedding_dim": embedder.dimension})
        return
    say(
        f"{made} vector(s) made; open the store with "
        f"embedding_model={embedder.model!r}, embedding_dim={embedder.dimension}"
    )


partitioning = single(
    partition, "alma partition --store postgresql://alma@localhost/agents --interval month", "alma partition --json"
)
reembedding = single(reembed, "alma reembed", "alma reembed --store .alma/alma.db --provider mock --dimensions 8")
