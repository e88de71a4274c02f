"""Commands for a store: schema, partitions, vectors and audit log."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from alma.bootstrap import (
    create_embedder,
    migrate_storage,
    open_existing,
    open_migrator,
    partition_tables,
    reembed_storage,
)
from alma.cli.app import application, examples, single
from alma.cli.output import AsJson, Schema, progress_bar, progress_of, say, show_json, show_table
from alma.cli.store_options import STORES, Config, Store, embedding_of, place_of
from alma.errors import ConfigurationError
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.scope import Scope
from alma.storage.base import ChainHead
from alma.sync.reembed import Progress

migrate = application("Show or update the schema version of a store.")


@migrate.command("status", epilog=examples("alma migrate status", "alma migrate status --store .alma/alma.db --json"))
def migrate_status(config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """List applied and pending migrations."""
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the SQL without changing anything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply pending migrations; an SQLite file is backed up first."""
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
        list[str] | None,
        typer.Option("--table", help="memories, audit_log or vectors; default: the first two."),
    ] = None,
    interval: Annotated[str, typer.Option(help="month or quarter")] = "month",
    ahead: Annotated[int, typer.Option(help="The number of intervals to prepare in advance.")] = 3,
    parts: Annotated[int, typer.Option(help="The number of partitions of vectors, which are split by hash.")] = 8,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Partition tables of a PostgreSQL store, or add partitions; can be repeated safely.

    Memories and the audit log are split by time and locked meanwhile; vectors by hash, while the store is in use.
    """
    place = place_of(config, store, schema)
    with progress_of("vectors") as tell:
        made = partition_tables(place.store, table, interval, ahead, place.schema, parts, tell)
    rows = [{"table": p.table, "partition": p.name, "bounds": p.bounds, "rows": p.rows} for p in made]
    show_table(("table", "partition", "bounds", "rows"), rows, as_json)


def reembed(
    config: Config = None,
    store: Store = None,
    provider: Annotated[
        str | None,
        typer.Option(help="local, openai, azure or mock; default: the configured one, or local."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model other than the provider's default.")] = None,
    dimensions: Annotated[int | None, typer.Option(help="The vector length, if the model supports several.")] = None,
    folder: Annotated[str | None, typer.Option(help="A directory with model.onnx and tokenizer.json.")] = None,
    deployment: Annotated[str | None, typer.Option(help="The name of the Azure deployment.")] = None,
    batch_size: Annotated[int, typer.Option(help="The number of records per batch.")] = 64,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Move the store to another embedding model while it is in use; an interrupted run can be continued.

    Options that are not given come from the configuration. API keys come from there or from the environment:
    OPENAI_API_KEY; AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY.
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
        f"{made} vector(s) created; open the store with "
        f"embedding_model={embedder.model!r}, embedding_dim={embedder.dimension}"
    )


partitioning = single(
    partition,
    "alma partition --store postgresql://alma@localhost/agents --interval month",
    "alma partition --table vectors --parts 8 --json",
)
reembedding = single(reembed, "alma reembed", "alma reembed --store .alma/alma.db --provider mock --dimensions 8")


audit = application("List and verify the audit log of a store.")

Log = Annotated[str | None, typer.Argument(metavar="[STORE]", help=f"{STORES} Default: the configured store.")]
_COLUMNS = ("id", "at", "who", "action", "what", "result")


@audit.command(
    "verify", epilog=examples("alma audit verify", "alma audit verify .alma/alma.db --anchors audit-head.json")
)
def verify(
    log: Log = None,
    config: Config = None,
    store: Store = None,
    anchors: Annotated[
        Path | None,
        typer.Option(help="Chain heads printed earlier by `alma audit head --json` and kept elsewhere."),
    ] = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Find events that were changed, removed or inserted; the exit code is 1 if there are any."""
    kept = () if anchors is None else _heads_in(anchors)
    with open_existing(*place_of(config, log or store, schema)) as storage:
        found = AuditTrail(storage).verify(kept)
    if as_json:
        show_json({"ok": found.ok, **asdict(found)})
    else:
        for finding in found.findings:
            say(f"{finding.kind}: {finding}")
        since = "" if found.first_id is None else f", chained from event {found.first_id} on"
        before = f"; {found.unchained:,} older events are not chained" if found.unchained else ""
        verdict = "the log is unchanged" if found.ok else f"{len(found.findings):,} finding(s)"
        say(f"{verdict}: {found.checked:,} events checked{since}{before}")
    if not found.ok:
        raise typer.Exit(1)


@audit.command("head", epilog=examples("alma audit head --json > audit-head.json"))
def head(
    log: Log = None, config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False
) -> None:
    """Print the head of each hash chain; kept elsewhere, it proves later that the log was not rewritten."""
    with open_existing(*place_of(config, log or store, schema)) as storage:
        rows = [each._asdict() for each in AuditTrail(storage).heads()]
    show_table(("chain", "length", "hash"), rows, as_json)


@audit.command(
    "list", epilog=examples("alma audit list --user ana --failed", "alma audit list .alma/alma.db --limit 5 --json")
)
def list_events(
    log: Log = None,
    config: Config = None,
    store: Store = None,
    user: Annotated[str | None, typer.Option(help="Only events of this user.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only events of this agent.")] = None,
    action: Annotated[str | None, typer.Option(help="create, read, update, delete, search, …")] = None,
    kind: Annotated[str | None, typer.Option(help="Only records of this kind, for example memory.")] = None,
    record: Annotated[str | None, typer.Option(help="Only the record with this id.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only refused and failed requests.")] = False,
    since: Annotated[datetime | None, typer.Option(help="Only events since this time (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option(help="Only events until this time (UTC).")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of events, at most 1,000.")] = 50,
    before: Annotated[int | None, typer.Option(help="Continue before the event with this number.")] = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """List audit events, newest first."""
    scope = Scope.everywhere() if user is None else Scope(user_id=user)
    with open_existing(*place_of(config, log or store, schema)) as storage:
        page = AuditTrail(storage).find(
            scope,
            agent=agent,
            action=action,
            resource_type=kind,
            resource_id=record,
            success=False if failed else None,
            since=None if since is None else since.replace(tzinfo=UTC),
            until=None if until is None else until.replace(tzinfo=UTC),
            limit=limit,
            before=before,
        )
    show_table(_COLUMNS, [_row(event) for event in page], as_json)
    if page.next_before is not None and not as_json:
        say(f"more with  --before {page.next_before}")


def _row(event: AuditEvent) -> dict[str, object]:
    many = f"{len(event.resource_ids)} records" if event.resource_ids else event.resource_id
    who = " / ".join(name for name in (event.user_id, event.agent_id, event.ip_address) if name)
    return {
        "id": event.id,
        "at": event.created_at.isoformat(timespec="seconds"),
        "who": who or None,
        "action": event.action,
        "what": f"{event.resource_type} {many}",
        "result": "done" if event.success else event.error_message,
    }


def _heads_in(path: Path) -> list[ChainHead]:
    try:
        return [ChainHead(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as exc:
        raise ConfigurationError(f"{path} is not the output of `alma audit head --json`: {exc}") from exc
