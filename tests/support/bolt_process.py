"""The process of a graph server: runs until its standard input is closed."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Start the server in a folder, say so, and wait."""
    folder, port, password, database = sys.argv[1:]
    from arcadedb_embedded.server import ArcadeDBServer

    server = ArcadeDBServer(
        root_path=folder,
        root_password=password,
        config={
            "host": "127.0.0.1",
            "http_port": int(port) + 1,
            "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt_port": int(port),
        },
        jvm_kwargs={"heap_size": "384m"},
    )
    server.start()
    # A server that was killed finds it there.
    if not Path(folder, "databases", database).is_dir():
        server.create_database(database)
    Path(folder, "ready").touch()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
