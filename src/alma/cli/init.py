"""`alma init`: write a commented configuration, create the store, and show how an MCP client connects."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from alma.cli.app import single
from alma.cli.hosts import FileChange, changes_for
from alma.cli.output import AsJson, say, show_json
from alma.cli.store_options import open_memory
from alma.config import DEFAULT_CONFIG
from alma.errors import ConfigurationError
from alma.hooks.hosts import HOSTS
from alma.paths import make_directory

_TEMPLATE = """\
# The configuration of this project's memory. Every key and its default: docs/how-to/configure.md
# Check it with  alma doctor

alma:
  project_id: {project}

  # Where memories are stored: sqlite (one file), postgres (a server), azure (Cosmos DB) or file (JSON).
  storage: {storage}
  storage_dir: .alma            # relative to the directory that holds .alma
  db_name: alma.db

  # The embedding provider: local (on this machine, no key), openai, azure or mock (for tests).
  embedding_provider: {embeddings}

  # What each agent may learn; agents that are not listed may learn everything, for themselves.
  agents: {agents}
  #   helena:
  #     domain: coding
  #     can_learn: [testing_strategies, selector_patterns]
  #     cannot_learn: [backend_logic]        # wins over can_learn
  #     share_with: [victor]                 # who may read her lessons
  #     inherit_from: []                     # whose lessons she reads
  #     min_occurrences_for_heuristic: 3     # repetitions before a strategy becomes a lesson

  # For storage: postgres. ${{NAME}} is read from the environment and must be set.
  {mark}postgres:
  {mark}  host: localhost
  {mark}  port: 5432
  {mark}  database: alma_memory
  {mark}  user: alma
  {mark}  password: ${{ALMA_POSTGRES_PASSWORD}}

  # For storage: azure. ${{KEYVAULT:name}} is read from the Azure Key Vault at key_vault_url.
  {azure}azure:
  {azure}  endpoint: https://my-account.documents.azure.com:443/
  {azure}  key: ${{AZURE_COSMOS_KEY}}
  {azure}  database: alma-memory

  # The cache of retrieval results: memory (per process), redis or null.
  # retrieval:
  #   cache: redis
  # redis:
  #   url: ${{REDIS_URL}}
"""
_ON_SERVERS = {
    "postgres": "set ALMA_POSTGRES_PASSWORD",
    "azure": "set azure.endpoint and AZURE_COSMOS_KEY",
}
_AGENT = """
    {name}:
      can_learn: []               # empty: everything
      cannot_learn: []"""


def init(
    project: Annotated[
        str | None,
        typer.Option(envvar="ALMA_PROJECT", metavar="NAME", help="The project; default: the directory's name."),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An agent to add to the configuration; may be repeated.")
    ] = None,
    storage: Annotated[
        Literal["sqlite", "postgres", "azure", "file"], typer.Option(help="Where memories are stored.")
    ] = "sqlite",
    embeddings: Annotated[
        Literal["local", "openai", "azure", "mock"], typer.Option(help="The embedding provider.")
    ] = "local",
    config: Annotated[
        Path, typer.Option(envvar="ALMA_CONFIG", metavar="FILE", help="The file to write.")
    ] = DEFAULT_CONFIG,
    mcp_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add the server to this file of an MCP client, for example .mcp.json."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Add hooks and the MCP server to the files of this assistant: {', '.join(HOSTS)}; may be repeated.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing configuration.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented configuration, and show how an MCP client connects.

    The store is created as well, except on a server. Existing memories are never changed. With --host, an existing
    configuration is kept, and so is everything else in the files of the assistant.
    """
    kept = config.exists() and not force
    if kept and not host:
        raise ConfigurationError(f"{config} exists: keep it, or overwrite it with --force")
    text = _text(project or _folder_name(), storage, embeddings, agent or [])
    # Read first, so that nothing is written if a file of a client is invalid.
    clients = None if mcp_file is None else _with_server(mcp_file, config)
    changes = [change for each in host or () for change in changes_for(each, Path.cwd(), config) if change.is_needed]
    if dry_run:
        _show_dry_run(config, kept, changes)
        return
    if not kept:
        make_directory(config.parent)
        config.write_text(text, encoding="utf-8")
    if mcp_file is not None:
        mcp_file.write_text(json.dumps(clients, indent=2) + "\n", encoding="utf-8")
    for change in changes:
        change.write()
    if storage not in _ON_SERVERS and not kept:
        open_memory(config, None, None).close()
    if as_json:
        written = [str(change.path) for change in changes]
        described = {"config": str(config), "mcp": _snippet(config), "mcp_file": mcp_file and str(mcp_file)}
        show_json({**described, "host_files": written})
    elif host:
        _report_hosts(config, kept, changes)
    else:
        _report(config, storage, mcp_file)


def _show_dry_run(config: Path, kept: bool, changes: list[FileChange]) -> None:
    say(f"{config} would be {'kept' if kept else 'written'}")
    for change in changes:
        say(change.diff())
    if not changes:
        say("no other file would change")


def _report_hosts(config: Path, kept: bool, changes: list[FileChange]) -> None:
    say(f"{'Kept' if kept else 'Wrote'} {config}")
    for change in changes:
        say(f"Wrote {change.path}")
    if not changes:
        say("The files of the assistant are up to date")
    say("Restart the assistant: it gets memories before each prompt, and what happened is learned.")


def _text(project: str, storage: str, embeddings: str, agents: list[str]) -> str:
    named = "".join(_AGENT.format(name=json.dumps(name, ensure_ascii=False)) for name in agents)
    return _TEMPLATE.format(
        project=json.dumps(project, ensure_ascii=False),
        storage=storage,
        embeddings=embeddings,
        agents=named or "{}",
        mark="" if storage == "postgres" else "# ",
        azure="" if storage == "azure" else "# ",
    )


def _report(config: Path, storage: str, mcp_file: Path | None) -> None:
    say(f"Wrote {config}")
    if mcp_file is not None:
        say(f"Added the server `alma` to {mcp_file}")
    else:
        say("\nFor an MCP client, for example in .mcp.json (written for you with --mcp-file .mcp.json):\n")
        say(json.dumps(_snippet(config), indent=2))
    first = f"{_ON_SERVERS[storage]}, then  alma doctor" if storage in _ON_SERVERS else "alma doctor"
    say(
        f'\nNext:  {first}\n       alma learn "Test the login form" --agent helena --outcome success '
        '--strategy "wait for the network to be idle"\n       alma retrieve "Test the sign-up form" --agent helena'
    )


def _snippet(config: Path) -> dict[str, Any]:
    """With absolute paths: clients start servers in any directory and without a shell environment."""
    arguments = ["-m", "alma.mcp", "--config", str(config.absolute())]
    return {"mcpServers": {"alma": {"command": sys.executable, "args": arguments}}}


def _with_server(file: Path, config: Path) -> dict[str, Any]:
    try:
        clients = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        servers = clients.setdefault("mcpServers", {})
        servers.update(_snippet(config)["mcpServers"])
    except (OSError, ValueError, AttributeError) as exc:
        raise ConfigurationError(f"{file} is not a valid configuration of an MCP client: {exc}") from exc
    else:
        return dict(clients)


def _folder_name() -> str:
    return Path.cwd().name.strip() or "default"


app = single(
    init,
    "alma init",
    "alma init --project shop --agent helena --agent victor --mcp-file .mcp.json --force",
    "alma init --storage postgres --config server/config.yaml",
    "alma init --host claude-code --dry-run",
)
