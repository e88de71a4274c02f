"""Commands for the store itself: its schema, its partitions and its vectors."""

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
from alma.cli.output import AsJson, Schema, progress_bar, say, show_json, show_table
from alma.cli.store_options import STORES, Config, Store, embedding_of, place_of
from alma.errors import ConfigurationError
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.scope import Scope
from alma.storage.base import ChainHead
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


audit = application("Look into the audit log of a store, and check it.")

Log = Annotated[str | None, typer.Argument(metavar="[STORE]", help=f"{STORES} The chosen store by default.")]
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
        typer.Option(help="Heads that `alma audit head --json` printed earlier and that were kept elsewhere."),
    ] = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Find every event of the log that was changed, removed or inserted; the exit code is 1 where there is any."""
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
        verdict = "the log is as it was written" if found.ok else f"{len(found.findings):,} finding(s)"
        say(f"{verdict}: {found.checked:,} events checked{since}{before}")
    if not found.ok:
        raise typer.Exit(1)


@audit.command("head", epilog=examples("alma audit head --json > audit-head.json"))
def head(
    log: Log = None, config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False
) -> None:
    """Where the log ends now; kept elsewhere, it proves later that the log was not written anew."""
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
    user: Annotated[str | None, typer.Option(help="Of this user.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of this agent.")] = None,
    action: Annotated[str | None, typer.Option(help="create, read, update, delete, search, …")] = None,
    kind: Annotated[str | None, typer.Option(help="Of records of this kind, for example memory.")] = None,
    record: Annotated[str | None, typer.Option(help="Of the record with this id.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what was refused or went wrong.")] = False,
    since: Annotated[datetime | None, typer.Option(help="From this moment on, in UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Up to this moment, in UTC.")] = None,
    limit: Annotated[int, typer.Option(help="How many, at most 1,000.")] = 50,
    before: Annotated[int | None, typer.Option(help="Go on behind the event with this number.")] = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """What was done, newest first."""
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
        raise ConfigurationError(f"{path} does not hold what `alma audit head --json` prints: {exc}") from exc
