"""A walk along relationships as one recursive statement."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from alma.model.fields import FieldType
from alma.model.memory import Memory, MemoryRelationship
from alma.model.relations import SYMMETRIC
from alma.storage.sql.clauses import Bindings, Values, limited
from alma.storage.sql.statements import Dialect
from alma.storage.traversal import Walk


def walk_statement(dialect: Dialect, walk: Walk) -> tuple[str, dict[str, Any]]:
    """The SQL and parameters that give (id, depth) of all that the walk reaches."""
    memories, edges = dialect.kind(Memory.spec), dialect.kind(MemoryRelationship.spec)
    shape = ("walk", memories.clauses.shape(walk.where), edges.clauses.shape(walk.along), walk.direction)
    values = Values()
    values.put(_listed(dialect, walk))
    memories.clauses.collect(walk.where, values)
    edges.clauses.collect(walk.along, values)
    memories.clauses.collect(walk.where, values)
    values.put(walk.max_depth)
    values.put(walk.limit)
    return memories.remembered(shape, lambda: _written(dialect, walk)), values.values


def _listed(dialect: Dialect, walk: Walk) -> Any:
    starts = list(walk.starts)
    return dialect.encode(FieldType.STRINGS, starts) if dialect.name == "sqlite" else starts


def _written(dialect: Dialect, walk: Walk) -> sa.Select[Any]:
    memories, edges = dialect.kind(Memory.spec), dialect.kind(MemoryRelationship.spec)
    memory, edge = memories.table, edges.table
    bind = Bindings()
    start = (
        sa.select(memory.c.id.label("id"), sa.literal_column("0").label("depth"))
        .where(_among(dialect, memory.c.id, bind.add("the starts")))
        .where(memories.clauses.condition(walk.where, bind, by="id"))
    )
    walked = start.cte("walked", recursive=True)
    along = edges.clauses.condition(walk.along, bind, by="from_memory_id or to_memory_id")
    starts_here, ends_here = edge.c.from_memory_id == walked.c.id, edge.c.to_memory_id == walked.c.id
    either_way = edge.c.relationship_type.in_([sa.literal_column(f"'{name}'") for name in sorted(SYMMETRIC)])
    leads = {
        "out": sa.or_(starts_here, sa.and_(ends_here, either_way)),
        "in": sa.or_(ends_here, sa.and_(starts_here, either_way)),
        "both": sa.or_(starts_here, ends_here),
    }[walk.direction]
    # The end that is not here is the one that a relationship leads to.
    end = sa.case((starts_here, edge.c.to_memory_id), else_=edge.c.from_memory_id)
    step = (
        sa.select(memory.c.id, walked.c.depth + sa.literal_column("1"))
        .select_from(walked.join(edge, sa.and_(leads, along)).join(memory, memory.c.id == end))
        .where(memories.clauses.condition(walk.where, bind, by="id"))
        .where(walked.c.depth < bind.add("the depth"))
    )
    # UNION drops what was reached at the same depth already, and the depth ends every circle.
    walked = walked.union(step)
    nearest = sa.func.min(walked.c.depth).label("nearest")
    reached = sa.select(walked.c.id, nearest).group_by(walked.c.id).having(nearest > sa.literal_column("0"))
    return limited(reached.order_by(nearest, walked.c.id), bind.add("the limit"))


def _among(dialect: Dialect, column: sa.ColumnElement[Any], starts: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    if dialect.name == "sqlite":
        return column.in_(sa.select(sa.func.json_each(starts).table_valued("value").c.value))
    return column == sa.func.any(starts)
