"""`python -m alma.rest`: run the service; `alma serve` has the same options and more."""

from __future__ import annotations

import argparse
import sys

from alma.errors import ALMAError


def main(arguments: list[str] | None = None) -> int:
    """Run the service until it is told to stop; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m alma.rest", description="Serve ALMA over REST and MCP.")
    parser.add_argument("--config", help="a configuration file; .alma/config.yaml where it exists")
    parser.add_argument("--store", help="an SQLite file or a postgresql:// URL, instead of a configuration")
    parser.add_argument("--project", help="the project that requests are about unless they name another")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="0 takes any free one (%(default)s)")
    parser.add_argument("--require-key", action="store_true", help="let nobody in without a key, not even from here")
    given = parser.parse_args(arguments)
    try:
        from alma.rest.server import greeting, serve

        serve(
            given.config,
            given.store,
            given.project,
            announce=lambda address, options: print(greeting(address, options), flush=True),
            host=given.host,
            port=given.port,
            require_key=given.require_key,
        )
    except ALMAError as exc:
        sys.stderr.write(f"alma: {exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
