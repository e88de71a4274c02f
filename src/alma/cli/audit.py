"""Commands for the audit log: what it says, where it ends, and whether it is still what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from alma.bootstrap import open_existing
from alma.cli.lazy import application, examples
from alma.cli.places import STORES, Config, Store, place_of
from alma.cli.shown import AsJson, Schema, say, show_json, show_table
from alma.errors import ConfigurationError
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.scope import Scope
from alma.storage.base import ChainHead

app = application("Look into the audit log of a store, and check it.")

Log = Annotated[str | None, typer.Argument(metavar="[STORE]", help=f"{STORES} The chosen store by default.")]
_COLUMNS = ("id", "at", "who", "action", "what", "result")


@app.command(
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


@app.command("head", epilog=examples("alma audit head --json > audit-head.json"))
def head(
    log: Log = None, config: Config = None, store: Store = None, schema: Schema = None, as_json: AsJson = False
) -> None:
    """Where the log ends now; kept elsewhere, it proves later that the log was not written anew."""
    with open_existing(*place_of(config, log or store, schema)) as storage:
        rows = [each._asdict() for each in AuditTrail(storage).heads()]
    show_table(("chain", "length", "hash"), rows, as_json)


@app.command(
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
