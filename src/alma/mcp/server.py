"""Starting the server: its options, and the transport that is asked for."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from alma import __version__
from alma.errors import ALMAError, MissingDependencyError
from alma.mcp.handshake import greeted
from alma.mcp.transport import Wire
from alma.serving.limits import Limits

DEFAULT_CONFIG = ".alma/config.yaml"
DEFAULT_TOKENS = 6_000
LEAST_TOKENS = 1_000
TOOLSETS = ("small", "full")


@dataclass(frozen=True, slots=True)
class Options(Limits):
    """What the server is told when it is started."""

    config: str | None = None
    store: str | None = None
    project: str | None = None
    toolset: str = "small"
    max_tokens: int = DEFAULT_TOKENS
    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the client is gone or a signal says so, and end the process."""
    options = parsed(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="alma mcp: %(message)s")
    try:
        # Whoever is greeted counts on being served.
        if find_spec("mcp") is None:
            raise MissingDependencyError("mcp", "server")
        code = _serve_http(options) if options.http else _serve_stdio(options)
    except ALMAError as exc:
        sys.stderr.write(f"alma mcp: {exc}\n")
        code = 2
    except BrokenPipeError:
        # The client went before it had its answer.
        code = 0
    sys.stderr.flush()
    # A call may still be at work in its thread: what it does is all or nothing, and nobody waits for its answer.
    os._exit(code)


def parsed(argv: Sequence[str]) -> Options:
    """The options, or the usage and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="alma mcp",
        description="Serve a memory to MCP clients, over standard input and output or over HTTP.",
        epilog="Without --config and --store, .alma/config.yaml is used if it is there, and .alma/alma.db otherwise.",
    )
    add = parser.add_argument
    add("--config", default=os.environ.get("ALMA_CONFIG"), help="the configuration file (ALMA_CONFIG)")
    add("--store", default=os.environ.get("ALMA_STORE"), help="an SQLite file or a postgresql:// URL (ALMA_STORE)")
    add("--project", help="serve this project and no other")
    add("--toolset", choices=TOOLSETS, default="small", help="small: ten tools; full: every operation")
    add("--max-tokens", type=_tokens, default=DEFAULT_TOKENS, help="how long an answer may be, in tokens (%(default)s)")
    add("--http", action="store_true", help="serve streamable HTTP at /mcp instead of standard input and output")
    add("--host", default="127.0.0.1", help="the address to listen at (%(default)s); others than loopback ask for keys")
    add("--port", type=_port, default=8765, help="the port to listen at (%(default)s)")
    add(
        "--allowed-host",
        dest="allowed_hosts",
        action="append",
        default=[],
        metavar="HOST",
        help="a Host header to accept besides the loopback names",
    )
    add(
        "--max-connections",
        type=_count,
        default=Limits().max_connections,
        help="how many connections may be open (%(default)s)",
    )
    add(
        "--max-connections-per-address",
        type=_count,
        default=Limits().max_connections_per_address,
        help="how many of them from one address (%(default)s)",
    )
    add(
        "--max-sessions-per-key",
        type=_count,
        default=Limits().max_sessions_per_key,
        help="how many sessions one key may have open; the one idle longest is ended for a new one (%(default)s)",
    )
    add(
        "--session-idle-seconds",
        type=_count,
        default=int(Limits().session_idle_seconds),
        help="after how long without a request a session is ended (%(default)s)",
    )
    add("--version", action="version", version=f"alma-memory {__version__}")
    given = vars(parser.parse_args(argv))
    if given["config"] and given["store"]:
        parser.error("--config and --store each name a memory: give one of them")
    return Options(**{**given, "allowed_hosts": tuple(given["allowed_hosts"])})


def config_of(options: Options) -> str | None:
    """The configuration to use: the one that is named, or the usual one if it is there and no store is named."""
    if options.config or options.store:
        return options.config
    return DEFAULT_CONFIG if Path(DEFAULT_CONFIG).is_file() else None


def _serve_stdio(options: Options) -> int:
    wire = Wire()
    first = wire.next_message()
    opening = None if first is None else greeted(first)
    begun = [first]
    if opening is not None:
        wire.write(opening.answer)
        # A client that only wanted to know who is there is gone again, and nothing was loaded for it.
        begun.append(wire.next_message())
    if begun[-1] is None:
        return 0
    from alma.mcp.stdio import serve

    return serve(options, wire, [line for line in begun if line is not None], opening)


def _serve_http(options: Options) -> int:
    from alma.mcp.http import serve

    return serve(options)


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
