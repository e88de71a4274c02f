"""`alma serve` and `alma mcp`: the servers, loaded when they are started."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from alma.cli.lazy import single
from alma.cli.places import Config, Project, Store, config_of


def serve(
    host: Annotated[
        str,
        typer.Option(help="The address to listen at; beyond this machine, nothing but health answers without a key."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at.")] = 8000,
    config: Config = None,
    store: Store = None,
    project: Project = None,
) -> None:
    """Run the REST service.

    It answers on this machine alone unless it is told otherwise. Make keys for it with  alma keys create.
    """
    run = import_module("alma.rest.server").serve
    run(config=config_of(config, store), store=store, project=project, host=host, port=port)


def mcp_server(context: typer.Context) -> None:
    """Run the MCP server, on standard input and output or over HTTP.

    Every option is the server's own: --config, --store, --project, --toolset small|full, --http, --host, --port …
    `alma mcp -- --help` lists them.
    """
    import_module("alma.mcp.server").main(context.args)


serving = single(serve, "alma serve", "alma serve --port 8080 --store .alma/alma.db")
mcp = single(
    mcp_server,
    "alma mcp --config .alma/config.yaml",
    "alma mcp --http --port 8765 --toolset full",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
