"""`python -m alma.rest` runs the service; `alma serve` has the same options and more."""

from __future__ import annotations

import argparse
import sys

from alma.errors import ALMAError


def main(arguments: list[str] | None = None) -> int:
    """Run the service until SIGINT or SIGTERM and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m alma.rest", description="Serve ALMA over REST and MCP.")
    parser.add_argument("--config", help="the configuration file; default .alma/config.yaml if it exists")
    parser.add_argument("--store", help="an SQLite file or a postgresql:// URL, instead of a configuration")
    parser.add_argument("--project", help="the project of requests that do not name one")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="the port; 0 chooses a free one (default: %(default)s)")
    parser.add_argument("--require-key", action="store_true", help="require an API key even from this machine")
    given = parser.parse_args(arguments)
    try:
        from alma.rest.server import serve, startup_message

        serve(
            given.config,
            given.store,
            given.project,
            announce=lambda address, options: print(startup_message(address, options), flush=True),
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
