"""`alma serve` and `alma mcp`: the servers, loaded when they are started."""

from __future__ import annotations

from typing import Annotated

import typer

from alma.cli.lazy import single
from alma.cli.places import Config, Project, Store, config_of


def serve(
    host: Annotated[str, typer.Option(help="The address to listen at; beyond this machine, a key is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0 takes any free one.")] = 8080,
    require_key: Annotated[
        bool, typer.Option("--require-key", help="Let nobody in without a key, not even from this machine.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name it is reached by; may be repeated.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A web page that may call it; may be repeated.")
    ] = None,
    requests_per_second: Annotated[float, typer.Option(help="How often one caller may ask, on average.")] = 1000,
    burst: Annotated[int, typer.Option(help="How often one caller may ask at once.")] = 2000,
    threads: Annotated[int, typer.Option(help="How many requests are worked on at a time.")] = 8,
    max_connections: Annotated[int, typer.Option(min=1, help="How many connections may be open.")] = 1024,
    max_connections_per_address: Annotated[int, typer.Option(min=1, help="How many of them from one address.")] = 256,
    max_sessions_per_key: Annotated[int, typer.Option(min=1, help="How many MCP sessions one key may have.")] = 100,
    mcp: Annotated[bool, typer.Option(help="Serve MCP over HTTP at /mcp, too, or not.")] = True,
    config: Config = None,
    store: Store = None,
    project: Project = None,
) -> None:
    """Run the REST service, and MCP over HTTP with it.

    It answers on this machine alone unless it is told otherwise. Make keys for it with  alma keys create.
    """
    from alma.cli.shown import say
    from alma.rest.greeting import greeting
    from alma.rest.server import serve as start

    start(
        config_of(config, store),
        store,
        project,
        announce=lambda address, options: say(greeting(address, options, mcp)),
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
    )


def mcp_server(context: typer.Context) -> None:
    """Run the MCP server, on standard input and output or over HTTP.

    Every option is the server's own: --config, --store, --project, --toolset small|full, --http, --host, --port …
    `alma mcp -h` lists them.
    """
    # The command line hands over before it comes here, unless it was asked for help.
    from alma.mcp.server import main

    main(context.args)


serving = single(serve, "alma serve", "alma serve --port 8081 --require-key --store .alma/alma.db")
mcp = single(
    mcp_server,
    "alma mcp --config .alma/config.yaml",
    "alma mcp --http --port 8765 --toolset full",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
