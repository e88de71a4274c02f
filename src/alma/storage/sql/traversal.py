"""A walk along relationships as one recursive statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alma.model.fields import FieldType
from alma.model.memory import Memory, MemoryRelationship
from alma.model.relations import SYMMETRIC
from alma.storage.sql.clauses import Values
from alma.storage.sql.statements import Dialect
from alma.storage.traversal import Walk

_EITHER_WAY = ", ".join(f"'{name}'" for name in sorted(SYMMETRIC))


def walk_statement(dialect: Dialect, walk: Walk) -> tuple[str, Mapping[str, Any]]:
    """The SQL and parameters that give (id, depth) of all that the walk reaches."""
    memories, edges = dialect.kind(Memory.spec), dialect.kind(MemoryRelationship.spec)
    memory, edge = memories.table, edges.table
    values = Values(dialect.names)
    begin = _among(dialect, memory, values.put(_listed(dialect, walk)))
    shown = memories.clauses.condition(walk.where, values, by="id")
    along = edges.clauses.condition(walk.along, values, by="from_memory_id or to_memory_id")
    still_shown = memories.clauses.condition(walk.where, values, by="id")
    depth, limit = values.put(walk.max_depth), values.put(walk.limit)
    starts_here, ends_here = f'"{edge}".from_memory_id = walked.id', f'"{edge}".to_memory_id = walked.id'
    either_way = f'"{edge}".relationship_type IN ({_EITHER_WAY})'
    leads = {
        "out": f"({starts_here} OR ({ends_here} AND {either_way}))",
        "in": f"({ends_here} OR ({starts_here} AND {either_way}))",
        "both": f"({starts_here} OR {ends_here})",
    }[walk.direction]
    # The end that is not here is the one that a relationship leads to.
    end = f'CASE WHEN {starts_here} THEN "{edge}".to_memory_id ELSE "{edge}".from_memory_id END'
    # UNION drops what was reached at the same depth already, and the depth ends every circle.
    sql = (
        f'WITH RECURSIVE walked (id, depth) AS (SELECT "{memory}".id, 0 FROM "{memory}" WHERE {begin} AND {shown} '
        f'UNION SELECT "{memory}".id, walked.depth + 1 FROM walked JOIN "{edge}" ON {leads} AND {along} '
        f'JOIN "{memory}" ON "{memory}".id = {end} WHERE {still_shown} AND walked.depth < {depth}) '
        f"SELECT id, min(depth) AS nearest FROM walked GROUP BY id HAVING min(depth) > 0 "
        f"ORDER BY min(depth), id LIMIT {limit}"
    )
    return sql, values.values


def _listed(dialect: Dialect, walk: Walk) -> Any:
    starts = list(walk.starts)
    return dialect.encode(FieldType.STRINGS, starts) if dialect.name == "sqlite" else starts


def _among(dialect: Dialect, memory: str, starts: str) -> str:
    if dialect.name == "sqlite":
        return f'"{memory}".id IN (SELECT value FROM json_each({starts}))'
    return f'"{memory}".id = ANY({starts})'
