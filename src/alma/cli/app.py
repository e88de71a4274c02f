"""Commands for the store itself: its schema, its partitions and its vectors."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from alma import __version__
from alma.bootstrap import create_embedder, migrate_storage, open_migrator, partition_tables, reembed_storage
from alma.cli import audit
from alma.cli.shown import AsJson, Schema, progress_bar, show_table
from alma.cli.transfer import add_transfer_commands
from alma.sync.reembed import Progress

app = typer.Typer(
    name="alma",
    help="Memory for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
migrate = typer.Typer(help="Tell or change the schema version of a store.", no_args_is_help=True)
app.add_typer(migrate, name="migrate")
add_transfer_commands(app)
app.add_typer(audit.app, name="audit")

Store = Annotated[
    str, typer.Option("--store", envvar="ALMA_STORE", help="An SQLite file or a postgresql:// URL.", show_default=True)
]
_DEFAULT_STORE = ".alma/alma.db"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"alma-memory {__version__}")
        raise typer.Exit


@app.callback()
def alma(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Memory for AI agents."""


@migrate.command("status")
def migrate_status(store: Store = _DEFAULT_STORE, schema: Schema = "public", as_json: AsJson = False) -> None:
    """Which migrations the store has been through.

    Example: alma migrate status --store .alma/alma.db
    """
    with open_migrator(store, schema) as migrator:
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


@migrate.command("up")
def migrate_up(
    store: Store = _DEFAULT_STORE,
    schema: Schema = "public",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run and change nothing.")] = False,
) -> None:
    """Bring the store to the newest schema; an SQLite file is backed up beside itself first.

    Example: alma migrate up --dry-run --store postgresql://alma@localhost/agents
    """
    with open_migrator(store, schema) as migrator:
        pending = migrator.pending()
    if dry_run:
        for migration in pending:
            typer.echo(f"-- {migration.file_name}\n{migration.sql}")
        typer.echo(f"-- {len(pending)} migration(s) pending, nothing was changed")
        return
    migrate_storage(store, schema)
    typer.echo(f"{len(pending)} migration(s) applied")


@app.command()
def partition(
    store: Store,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="memories, audit_log; both when not given.")
    ] = None,
    interval: Annotated[str, typer.Option(help="month or quarter")] = "month",
    ahead: Annotated[int, typer.Option(help="How many intervals to prepare ahead of now.")] = 3,
    schema: Schema = "public",
    as_json: AsJson = False,
) -> None:
    """Split tables of a PostgreSQL store by time, or prepare further partitions; safe to run again and again.

    Example: alma partition --store postgresql://alma@localhost/agents --interval month
    """
    made = partition_tables(store, table, interval, ahead, schema)
    rows = [{"table": p.table, "partition": p.name, "bounds": p.bounds, "rows": p.rows} for p in made]
    show_table(("table", "partition", "bounds", "rows"), rows, as_json)


@app.command()
def reembed(
    store: Store = _DEFAULT_STORE,
    provider: Annotated[str, typer.Option(help="local, openai, azure or mock.")] = "local",
    model: Annotated[str | None, typer.Option(help="Another model than the provider's usual one.")] = None,
    dimensions: Annotated[int | None, typer.Option(help="How long its vectors are, where that can be chosen.")] = None,
    folder: Annotated[str | None, typer.Option(help="A local model's folder: model.onnx and tokenizer.json.")] = None,
    deployment: Annotated[str | None, typer.Option(help="The name of the Azure deployment.")] = None,
    batch_size: Annotated[int, typer.Option(help="How many records are embedded and stored at once.")] = 64,
    schema: Schema = "public",
) -> None:
    """Move the store to an embedding model, while it is in use; when interrupted, run it again to go on.

    Keys come from the environment: OPENAI_API_KEY; AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY.

    Example: alma reembed --store .alma/alma.db --provider openai
    """
    spelled = {"local": ("model_name", "dimensions"), "mock": ("model", "dimension")}
    name, length = spelled.get(provider, ("model", "dimensions"))
    given: dict[str, Any] = {name: model, length: dimensions, "folder": folder, "deployment": deployment}
    embedder = create_embedder(provider, **{name: value for name, value in given.items() if value is not None})
    with progress_bar() as bar:
        task = bar.add_task(embedder.model, total=None)

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.total)

        made = reembed_storage(store, embedder, show, batch_size, schema)
    typer.echo(
        f"{made} vector(s) made; open the store with "
        f"embedding_model={embedder.model!r}, embedding_dim={embedder.dimension}"
    )
