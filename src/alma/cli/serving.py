"""`alma serve`, `alma mcp` and `alma keys`: the servers and their API keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from alma import clock
from alma.access import ApiKeys
from alma.bootstrap import open_existing, open_for_own_model
from alma.cli.app import application, examples, single
from alma.cli.output import AsJson, progress_of, say, show_json, show_table
from alma.cli.store_options import Config, Project, Store, place_of
from alma.config import config_file
from alma.errors import ConfigurationError


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; others than loopback require keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 chooses a free one.")] = 8080,
    require_key: Annotated[
        bool, typer.Option("--require-key", help="Require an API key even from this machine.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An additional allowed Host name; may be repeated.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A web origin that may call the service; may be repeated.")
    ] = None,
    requests_per_second: Annotated[float, typer.Option(help="The rate limit of a caller.")] = 1000,
    burst: Annotated[int, typer.Option(help="The number of requests a caller may send at once.")] = 2000,
    threads: Annotated[int, typer.Option(help="The number of worker threads.")] = 8,
    max_connections: Annotated[int, typer.Option(min=1, help="The maximum number of connections.")] = 1024,
    max_connections_per_address: Annotated[int, typer.Option(min=1, help="The maximum from one address.")] = 256,
    max_sessions_per_key: Annotated[int, typer.Option(min=1, help="The maximum number of MCP sessions per key.")] = 100,
    mcp: Annotated[bool, typer.Option(help="Also serve MCP over HTTP at /mcp.")] = True,
    config: Config = None,
    store: Store = None,
    project: Project = None,
) -> None:
    """Run the REST service, with MCP over HTTP.

    It listens on this machine only, unless --host is given. Create API keys with  alma keys create.
    """
    from alma.cli.output import say
    from alma.rest.options import ServiceOptions
    from alma.rest.server import serve as start
    from alma.rest.server import startup_message

    start(
        config_file(config, store),
        store,
        project,
        announce=lambda address, options: say(startup_message(address, options, mcp)),
        options=ServiceOptions(
            host=host,
            port=port,
            require_key=require_key,
            allowed_hosts=tuple(allowed_host or ()),
            allowed_origins=tuple(allowed_origin or ()),
            requests_per_second=requests_per_second,
            burst=burst,
            threads=threads,
            max_connections=max_connections,
            max_connections_per_address=max_connections_per_address,
            max_sessions_per_key=max_sessions_per_key,
            mcp=mcp,
        ),
    )


def demo_server(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 chooses a free one.")] = 8080,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the store to this new file, and keep it.")
    ] = None,
) -> None:
    """Fill a throw-away store with a month of three agents' work, and serve the dashboard on it.

    Nothing of it is kept, unless --keep names a file. The month is the same in every run, and ends today.
    """
    from alma.core import ALMA
    from alma.demo import PROJECT, fill
    from alma.rest.server import serve as start
    from alma.rest.server import startup_message

    with TemporaryDirectory(prefix="alma-demo-") as folder:
        store = Path(folder) / "alma.db" if keep is None else keep
        if store.exists():
            raise ConfigurationError(f"{store} exists already: name a new file to keep the demonstration in")
        with ALMA.quickstart(store, PROJECT) as memory, progress_of("demo") as tell:
            fill(memory, progress=tell)
        start(
            None,
            str(store),
            PROJECT,
            announce=lambda address, options: say(startup_message(address, options)),
            port=port,
        )


def mcp_server(context: typer.Context) -> None:
    """Run the MCP server, over stdio or HTTP.

    The options are those of the server: --config, --store, --project, --toolset small|full|server-memory,
    --tools A,B, --http, --host, --port … `alma mcp -h` lists them.
    """
    # Only reached for help; otherwise `alma.cli.main` starts the server directly.
    from alma.mcp.server import main

    main(context.args)


def hook_command(context: typer.Context) -> None:
    """Answer an event of a coding assistant: JSON on standard input, JSON on standard output, always exit code 0.

    Options: --host claude-code|codex|gemini-cli|cursor, --agent, --user, --config, --store, --project.
    """
    # Only reached for help; otherwise `alma.cli.main` starts the hook directly.
    from alma.hooks.command import main

    main(context.args)


demo = single(demo_server, "alma demo", "alma demo --port 8081", "alma demo --keep demo.db")
serving = single(serve, "alma serve", "alma serve --port 8081 --require-key --store .alma/alma.db")
mcp = single(
    mcp_server,
    "alma mcp --config .alma/config.yaml",
    "alma mcp --http --port 8765 --toolset full",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)

hook = single(
    hook_command,
    "alma hook SessionStart",
    "alma hook beforeSubmitPrompt --host cursor --agent helena",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)


keys = application("Create, list and revoke the API keys of the REST service.")
_COLUMNS = ("id", "name", "prefix", "rights", "limited_to", "status", "created_at", "expires_at", "last_used_at")


@keys.command(
    "create",
    epilog=examples(
        "alma keys create reader --right read",
        "alma keys create shop-bot --right read --right write --project shop --days 90 --json",
    ),
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The purpose of the key.")],
    right: Annotated[list[str], typer.Option(help="A right: read, write, delete or admin; may be repeated.")],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Limit the key to this user.")] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="Limit the key to this project.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Limit the key to this agent.")] = None,
    days: Annotated[float | None, typer.Option(min=0, help="Days until the key expires; default: never.")] = None,
    config: Config = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key; it is shown once, and stored as a hash."""
    expires_at = None if days is None else clock.now() + timedelta(days=days)
    with open_for_own_model(*place_of(config, store)) as storage:
        key, text = ApiKeys(storage).create(
            name, right, user_id=user, project_id=project, agent=agent, expires_at=expires_at
        )
    if as_json:
        show_json({**_row(key), "key": text})
        return
    say(f"{text}\n\nKeep it: it is not shown again. Send it as  Authorization: Bearer …  (id {key.id})")


@keys.command("list", epilog=examples("alma keys list", "alma keys list --json"))
def list_keys(config: Config = None, store: Store = None, as_json: AsJson = False) -> None:
    """List all keys, newest first, without their tokens."""
    with open_existing(*place_of(config, store)) as storage:
        rows = [_row(key) for key in ApiKeys(storage).list_all()]
    if rows or as_json:
        show_table(_COLUMNS, rows, as_json)
    else:
        say("There are no keys: create one with  alma keys create NAME --right read")


@keys.command("revoke", epilog=examples("alma keys revoke 01a1e0a2b81e7fc49d0ec9b96de703e8"))
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, or its prefix: alma_….")],
    config: Config = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key; revoking twice has no effect."""
    with open_existing(*place_of(config, store)) as storage:
        ended = ApiKeys(storage).revoke(key)
    if as_json:
        show_json(_row(ended))
        return
    say(f"{ended.name} ({ended.id}) is revoked")


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
