"""Commands for the audit log: what it says, where it ends, and whether it is still what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from alma.bootstrap import open_existing_storage
from alma.cli.shown import show_table
from alma.errors import ConfigurationError
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.scope import Scope
from alma.storage.base import ChainHead

app = typer.Typer(help="Look into the audit log of a store, and check it.", no_args_is_help=True)

Store = Annotated[str, typer.Argument(envvar="ALMA_STORE", help="An SQLite file or a postgresql:// URL.")]
Schema = Annotated[str, typer.Option(help="The PostgreSQL schema that holds ALMA's tables.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_DEFAULT_STORE = ".alma/alma.db"
_COLUMNS = ("id", "at", "who", "action", "what", "result")


@app.command("verify")
def verify(
    store: Store = _DEFAULT_STORE,
    anchors: Annotated[
        Path | None,
        typer.Option(help="Heads that `alma audit head --json` printed earlier and that were kept elsewhere."),
    ] = None,
    schema: Schema = "public",
    as_json: AsJson = False,
) -> None:
    """Find every event of the log that was changed, removed or inserted; the exit code is 1 where there is any.

    Example: alma audit verify .alma/alma.db
    """
    kept = () if anchors is None else _heads_in(anchors)
    with open_existing_storage(store, schema) as storage:
        found = AuditTrail(storage).verify(kept)
    if as_json:
        typer.echo(json.dumps({"ok": found.ok, **asdict(found)}, indent=2))
    else:
        for finding in found.findings:
            typer.echo(f"{finding.kind}: {finding}")
        since = "" if found.first_id is None else f", chained from event {found.first_id} on"
        before = f"; {found.unchained:,} older events are not chained" if found.unchained else ""
        verdict = "the log is as it was written" if found.ok else f"{len(found.findings):,} finding(s)"
        typer.echo(f"{verdict}: {found.checked:,} events checked{since}{before}")
    if not found.ok:
        raise typer.Exit(1)


@app.command("head")
def head(store: Store = _DEFAULT_STORE, schema: Schema = "public", as_json: AsJson = False) -> None:
    """Where the log ends now; kept elsewhere, it proves later that the log was not written anew.

    Example: alma audit head .alma/alma.db --json > audit-head.json
    """
    with open_existing_storage(store, schema) as storage:
        rows = [asdict(each) for each in AuditTrail(storage).heads()]
    show_table(("chain", "length", "hash"), rows, as_json)


@app.command("list")
def list_events(
    store: Store = _DEFAULT_STORE,
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
    schema: Schema = "public",
    as_json: AsJson = False,
) -> None:
    """What was done, newest first.

    Example: alma audit list .alma/alma.db --user ana --failed
    """
    scope = Scope.everywhere() if user is None else Scope(user_id=user)
    with open_existing_storage(store, schema) as storage:
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
        typer.echo(f"more with  --before {page.next_before}")


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
