"""Commands for the store itself: its schema and its partitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from alma import __version__
from alma.bootstrap import migrate_storage, open_migrator, partition_tables

app = typer.Typer(
    name="alma",
    help="Memory for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
migrate = typer.Typer(help="Tell or change the schema version of a store.", no_args_is_help=True)
app.add_typer(migrate, name="migrate")

Store = Annotated[
    str, typer.Option("--store", envvar="ALMA_STORE", help="An SQLite file or a postgresql:// URL.", show_default=True)
]
Schema = Annotated[str, typer.Option(help="The PostgreSQL schema that holds ALMA's tables.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
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
    _print(("version", "name", "applied_at"), rows, as_json)


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
    _print(("table", "partition", "bounds", "rows"), rows, as_json)


def _print(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*("pending" if row[name] is None else str(row[name]) for name in columns))
    Console().print(table)
