"""The command line of the MCP server: parse options and start the stdio or HTTP transport."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from alma import __version__
from alma.errors import ALMAError, MissingDependencyError
from alma.lazy import loader
from alma.mcp.handshake import StdioTransport, handshake_response
from alma.serving.limits import Limits

DEFAULT_TOKENS = 6_000
LEAST_TOKENS = 1_000
KNOWLEDGE = "server-memory"
TOOLSETS = ("small", "full", KNOWLEDGE)
NO_TOOLSET = "none"


@dataclass(frozen=True, slots=True)
class Options(Limits):
    """The options of the server."""

    config: str | None = None
    store: str | None = None
    project: str | None = None
    toolset: str = "small"
    tools: tuple[str, ...] = ()
    max_tokens: int = DEFAULT_TOKENS
    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the client disconnects or a signal, and end the process."""
    options = parse_options(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="alma mcp: %(message)s")
    try:
        # After the handshake the client expects to be served.
        if find_spec("mcp") is None:
            raise MissingDependencyError("mcp", "server")
        if options.tools:
            _check_tools(options)
        code = _serve_http(options) if options.http else _serve_stdio(options)
    except ALMAError as exc:
        sys.stderr.write(f"alma mcp: {exc}\n")
        code = 2
    except BrokenPipeError:
        # The client disconnected before its response.
        code = 0
    sys.stderr.flush()
    # A call may still run in its thread: it commits all or nothing, and its response has no receiver.
    os._exit(code)


def parse_options(argv: Sequence[str]) -> Options:
    """Parse the options, or print the usage and exit with code 2."""
    parser = argparse.ArgumentParser(
        prog="alma mcp",
        description="Serve a memory to MCP clients, over standard input and output or over HTTP.",
        epilog="Without --config and --store: .alma/config.yaml if it exists, otherwise .alma/alma.db.",
    )
    add = parser.add_argument
    add("--config", default=os.environ.get("ALMA_CONFIG"), help="the configuration file (ALMA_CONFIG)")
    add("--store", default=os.environ.get("ALMA_STORE"), help="an SQLite file or a postgresql:// URL (ALMA_STORE)")
    add("--project", help="serve only this project")
    add(
        "--toolset",
        choices=TOOLSETS,
        help="small: what an agent needs in a day (the default); full: every operation; server-memory: the knowledge "
        "graph of the reference server",
    )
    add(
        "--tools",
        type=_names,
        default=(),
        metavar="A,B",
        help="offer exactly these tools, or with --toolset these besides",
    )
    add("--max-tokens", type=_tokens, default=DEFAULT_TOKENS, help="maximum tokens of a result (%(default)s)")
    add("--http", action="store_true", help="serve streamable HTTP at /mcp instead of standard input and output")
    add("--host", default="127.0.0.1", help="the address to listen on (%(default)s); others than loopback need keys")
    add("--port", type=_port, default=8765, help="the port to listen on (%(default)s)")
    add(
        "--allowed-host",
        dest="allowed_hosts",
        action="append",
        default=[],
        metavar="HOST",
        help="an allowed Host header besides the loopback names",
    )
    add(
        "--max-connections",
        type=_count,
        default=Limits().max_connections,
        help="maximum number of open connections (%(default)s)",
    )
    add(
        "--max-connections-per-address",
        type=_count,
        default=Limits().max_connections_per_address,
        help="maximum number of connections from one address (%(default)s)",
    )
    add(
        "--max-sessions-per-key",
        type=_count,
        default=Limits().max_sessions_per_key,
        help="maximum number of sessions per key; the one idle longest is ended for a new one (%(default)s)",
    )
    add(
        "--session-idle-seconds",
        type=_count,
        default=int(Limits().session_idle_seconds),
        help="end a session after this many seconds without a request (%(default)s)",
    )
    add("--version", action="version", version=f"alma-agent-memory {__version__}")
    given = vars(parser.parse_args(argv))
    if given["config"] and given["store"]:
        parser.error("--config and --store both name a memory: give one of them")
    if given["tools"] and given["toolset"] == KNOWLEDGE:
        parser.error("--tools names tools of ALMA, which --toolset server-memory does not offer")
    toolset = given["toolset"] or (NO_TOOLSET if given["tools"] else "small")
    return Options(**{**given, "toolset": toolset, "allowed_hosts": tuple(given["allowed_hosts"])})


def _check_tools(options: Options) -> None:
    """Refuse unknown tools before a client connects."""
    from alma.mcp.tools import Toolset

    Toolset(options.toolset, options.tools)


def _serve_stdio(options: Options) -> int:
    transport = StdioTransport()
    first = transport.next_message()
    # The answer that is known in advance is that of ALMA's own tools.
    handshake = None if first is None or options.toolset == KNOWLEDGE else handshake_response(first)
    lines = [first]
    if handshake is not None:
        transport.write(handshake.response)
        # A client that only probes the server disconnects here, before anything is loaded.
        lines.append(transport.next_message())
    if lines[-1] is None:
        return 0
    from alma.mcp.stdio import serve

    return serve(options, transport, [line for line in lines if line is not None], handshake)


def _serve_http(options: Options) -> int:
    from alma.mcp.http import serve

    return serve(options)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise argparse.ArgumentTypeError("must be names of tools, separated by commas")
    return names


def _tokens(text: str) -> int:
    number = int(text)
    if number < LEAST_TOKENS:
        raise argparse.ArgumentTypeError(f"must be at least {LEAST_TOKENS}")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return number


# The server object of alma-memory.
__getattr__ = loader(__name__, {"ALMAMCPServer": "alma.mcp.earlier"})
