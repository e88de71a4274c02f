"""`alma keys`: the API keys of the REST service."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from alma import clock
from alma.access.keys import ApiKeys
from alma.bootstrap import open_as_it_is, open_existing
from alma.cli.lazy import application, examples
from alma.cli.places import Config, Store, place_of
from alma.cli.shown import AsJson, say, show_json, show_table

app = application("Create, list and revoke the API keys of the REST service.")
_COLUMNS = ("id", "name", "prefix", "rights", "limited_to", "status", "created_at", "expires_at", "last_used_at")


@app.command(
    "create",
    epilog=examples(
        "alma keys create reader --right read",
        "alma keys create shop-bot --right read --right write --project shop --days 90 --json",
    ),
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    right: Annotated[list[str], typer.Option(help="What it allows: read, write, delete or admin; may be repeated.")],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only what belongs to this user.")] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="Only this project.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only what belongs to this agent.")] = None,
    days: Annotated[float | None, typer.Option(min=0, help="For so many days; for ever when not given.")] = None,
    config: Config = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; its text is shown this once, and kept as a hash."""
    expires_at = None if days is None else clock.now() + timedelta(days=days)
    with open_as_it_is(*place_of(config, store)) as storage:
        key, text = ApiKeys(storage).create(
            name, right, user_id=user, project_id=project, agent=agent, expires_at=expires_at
        )
    if as_json:
        show_json({**_row(key), "key": text})
        return
    say(f"{text}\n\nKeep it: it is not shown again. Send it as  Authorization: Bearer …  (id {key.id})")


@app.command("list", epilog=examples("alma keys list", "alma keys list --json"))
def list_keys(config: Config = None, store: Store = None, as_json: AsJson = False) -> None:
    """Every key there ever was, the newest first; never its text."""
    with open_existing(*place_of(config, store)) as storage:
        rows = [_row(key) for key in ApiKeys(storage).list_all()]
    if rows or as_json:
        show_table(_COLUMNS, rows, as_json)
    else:
        say("There are no keys: make one with  alma keys create NAME --right read")


@app.command("revoke", epilog=examples("alma keys revoke 01a1e0a2b81e7fc49d0ec9b96de703e8"))
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, or how its text begins: alma_….")],
    config: Config = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Let a key open nothing any more; a second time changes nothing."""
    with open_existing(*place_of(config, store)) as storage:
        ended = ApiKeys(storage).revoke(key)
    if as_json:
        show_json(_row(ended))
        return
    say(f"{ended.name} ({ended.id}) opens nothing any more")


def _row(key: Any) -> dict[str, object]:
    limits = (("user", key.user_id), ("project", key.project_id), ("agent", key.agent))
    over = key.expires_at is not None and key.expires_at <= clock.now()
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "rights": list(key.rights),
        "limited_to": ", ".join(f"{what} {name}" for what, name in limits if name) or None,
        "status": "revoked" if key.revoked_at is not None else "expired" if over else "valid",
        "created_at": _moment(key.created_at),
        "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at),
    }


def _moment(at: Any) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")
