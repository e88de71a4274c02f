"""The constraints and indexes of the graph in Neo4j, as migrations that are applied once."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass

from alma import clock
from alma.errors import ConfigurationError, ConflictError
from alma.graph.neo4j_server import GraphServer, StatementError

_log = logging.getLogger("alma.graph")


@dataclass(frozen=True, slots=True)
class GraphMigration:
    """Statements that change the schema; each may be repeated."""

    version: int
    name: str
    statements: tuple[str, ...]

    @property
    def checksum(self) -> str:
        return hashlib.sha256(";\n".join(self.statements).encode()).hexdigest()


def _unique(name: str, label: str, key: str = "id") -> str:
    return f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE"


def _index(name: str, label: str, *keys: str) -> str:
    return f"CREATE INDEX {name} IF NOT EXISTS FOR (n:{label}) ON ({', '.join(f'n.{key}' for key in keys)})"


def _edge_index(name: str, edge: str, key: str) -> str:
    return f"CREATE INDEX {name} IF NOT EXISTS FOR ()-[r:{edge}]-() ON (r.{key})"


TRACKING = _unique("migration_version_unique", "Migration", "version")
MIGRATIONS = (
    GraphMigration(
        1,
        "initial_constraints",
        (
            _unique("memory_id_unique", "Memory"),
            _unique("project_id_unique", "Project"),
            _unique("pattern_id_unique", "Pattern"),
            _unique("user_id_unique", "User"),
            _unique("alma_link_key", "AlmaLink", "key"),
            _unique("alma_lock_key", "AlmaLock", "key"),
        ),
    ),
    GraphMigration(
        2,
        "performance_indexes",
        (
            _index("memory_user_id", "Memory", "user_id"),
            _index("memory_project_id", "Memory", "project_id"),
            _index("memory_type", "Memory", "memory_type"),
            _index("memory_importance", "Memory", "importance_score"),
            _index("memory_created_at", "Memory", "created_at"),
            _index("project_user_id", "Project", "user_id"),
            _index("project_type", "Project", "project_type"),
            _index("pattern_type", "Pattern", "pattern_type"),
            _index("pattern_success", "Pattern", "success_rate"),
            _edge_index("rel_strength", "RELATES_TO", "strength"),
            _edge_index("rel_applies_relevance", "APPLIES_TO", "relevance"),
        ),
    ),
    GraphMigration(
        3,
        "temporal_relationships",
        (
            _index("memory_session_time", "Memory", "session_id", "created_at"),
            _index("memory_project_time", "Memory", "project_id", "created_at"),
            _index("alma_link_owner", "AlmaLink", "owner"),
            _index("alma_link_source", "AlmaLink", "source"),
            _index("alma_link_target", "AlmaLink", "target"),
        ),
    ),
)


def migrate(server: GraphServer) -> None:
    """Apply the migrations that the server lacks; safe if several processes do so at the same time."""
    _run(server, TRACKING)
    applied = _applied(server)
    for migration in MIGRATIONS:
        known = applied.get(migration.version)
        if known is None:
            _apply(server, migration)
        elif known != migration.checksum:
            raise ConfigurationError(
                f"the graph had another migration {migration.version} than {migration.name} of this version of ALMA; "
                "use a database of its own, or drop this one and rebuild the projection"
            )
    newest = max(applied, default=0)
    if newest > MIGRATIONS[-1].version:
        raise ConfigurationError(f"the graph was made by a newer version of ALMA (migration {newest}); upgrade ALMA")


def _applied(server: GraphServer) -> dict[int, str]:
    query = "MATCH (m:Migration) RETURN m.version AS version, m.checksum AS checksum"
    return {row["version"]: row["checksum"] for row in server.read(lambda tx: tx.run(query).data())}


def _apply(server: GraphServer, migration: GraphMigration) -> None:
    for statement in migration.statements:
        _run(server, statement)
    query = (
        "MERGE (m:Migration {version: $version}) ON CREATE SET m.name = $name, m.applied_at = $at, m.checksum = $sum"
    )
    given = {"version": migration.version, "name": migration.name, "at": clock.now(), "sum": migration.checksum}
    try:
        server.write(lambda tx: tx.run(query, given).consume())
    except ConflictError:
        # Another process has applied it meanwhile.
        if migration.version not in _applied(server):
            raise


def _run(server: GraphServer, statement: str) -> None:
    """Run a statement of the schema; what the server does not know is reported, because only speed depends on it."""
    try:
        server.run(statement)
    except StatementError as exc:
        _log.warning("the graph server does not know a statement of the schema: %s (%s)", statement, exc)
