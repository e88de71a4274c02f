"""The process of a Neo4j server: runs until its standard input is closed."""

from __future__ import annotations

import sys
from pathlib import Path

import arcadedb_embedded
import jpype

# As Neo4j's own start script opens them.
_OPEN = ("java.nio", "java.io", "sun.nio.ch", "java.lang", "java.util.concurrent")
_SETTINGS = """\
server.bolt.enabled=true
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.memory.pagecache.size=64m
dbms.usage_report.enabled=false
dbms.security.auth_enabled=true
"""


def main() -> None:
    """Start the server of the jar files in a folder, set the password of `neo4j`, say so, and wait."""
    jars, folder, port, password = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    settings = folder / "neo4j.conf"
    settings.write_text(_SETTINGS.format(port=port))
    # Java is in the wheel of the other graph server.
    jpype.startJVM(
        str(Path(arcadedb_embedded.__file__).parent / "jre/lib/server/libjvm.so"),
        "-Xmx512m",
        *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPEN),
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        classpath=[str(jar) for jar in sorted(jars.glob("*.jar"))],
    )
    path = jpype.JClass("java.nio.file.Path").of
    builder = jpype.JClass("org.neo4j.dbms.api.DatabaseManagementServiceBuilder")
    server = builder(path(str(folder))).loadPropertiesFromFile(path(str(settings))).build()
    _set_password(f"bolt://127.0.0.1:{port}", password)
    (folder / "ready").touch()
    sys.stdin.read()
    server.shutdown()


def _set_password(uri: str, password: str) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(uri, auth=("neo4j", "neo4j")) as driver:
        change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
        driver.execute_query(change, password=password, database_="system")


if __name__ == "__main__":
    main()
