"""SqlBackend: the primitives of a backend as SQL, for both databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from alma.model.fields import FieldType
from alma.model.governance import Attribution
from alma.model.memory import ChangeType, Memory, MemoryRelationship, MemoryVersion
from alma.model.query import And, Compare, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.relations import SYMMETRIC
from alma.model.vector import Vector
from alma.storage.audit import ChainTable
from alma.storage.backend import Backend, Query, Reads, RecordVector
from alma.storage.history import superseded
from alma.storage.outbox import MarkTable
from alma.storage.sql.bookkeeping import SqlChains, SqlMarks
from alma.storage.sql.clauses import Encoder, Names, Values
from alma.storage.sql.statements import Dialect, StoreCache, as_vector
from alma.storage.traversal import Reached, Walk


class SqlBackend(Backend):
    """Runs the statements of each kind on one open connection. A subclass adds three ways to run a statement, the
    syntax of lists, full-text search and vector search. `cache` is shared by the transactions of the store.
    """

    # From this number of ids on it is cheaper to read the newest stored id before looking up each.
    many_ids = 32

    def __init__(
        self, dialect: Dialect, cache: StoreCache, embedding_dim: int, embedding_model: str, *, writable: bool
    ) -> None:
        super().__init__(embedding_dim, embedding_model, writable=writable)
        self.dialect = dialect
        self.names = dialect.names
        self.cache = cache
        # The models whose first vectors this transaction stores.
        self._claimed: frozenset[str] = frozenset()
        # SQLite: the kinds that projections follow, as read by this transaction.
        self.followed_kinds: frozenset[str] | None = None

    # ------------------------------------------------------------------ implemented by a database

    @abstractmethod
    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Run a statement and fetch every row."""

    @abstractmethod
    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        """Run a statement; returns the number of affected rows."""

    @abstractmethod
    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with positional parameters for each row."""

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows; a database may have a faster way to insert many."""
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {self.placeholders(len(columns))}", rows)

    def placeholders(self, count: int) -> str:
        """A list of positional parameters in parentheses, for `run_many`."""
        return f"({', '.join([self.names.mark] * count)})"

    @abstractmethod
    def in_list(self, name: str) -> str:
        """The condition that a column is in the list bound to this name."""

    @abstractmethod
    def bound_list(self, keys: Sequence[str]) -> Any:
        """A list of ids as a parameter of `in_list`."""

    def stored_vector(self, vector: Vector) -> Any:
        """The vector in the form of its column."""
        return vector.to_bytes()

    # ------------------------------------------------------------------ reading

    def select(self, query: Query) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select(query, self.embedding_model)
        return statements.records(self.rows(sql, values))

    def values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select_values(query, names)
        rows, decoders = self.rows(sql, values), statements.decoders(tuple(names))
        return [_decoded(row, decoders) for row in rows] if decoders else rows

    def count(self, spec: RecordSpec, where: Predicate) -> int:
        sql, values = self.dialect.kind(spec).count(where)
        return int(self.rows(sql, values)[0][0])

    def lock(self, spec: RecordSpec, keys: Sequence[str], where: Predicate) -> list[Record]:
        if len(keys) > 1 and self._all_newer(self.names.table(spec), spec.key, keys):
            return []
        return super().lock(spec, keys, where)

    def _all_newer(self, table: str, column: str, keys: Collection[str]) -> bool:
        """Whether all of many ids sort after every stored one, as new time-ordered ids do; then none of them exists."""
        if len(keys) < self.many_ids:
            return False
        newest = self.rows(f'SELECT max("{column}") FROM "{table}"', {})[0][0]
        return newest is None or min(keys) > newest

    def reachable(self, walk: Walk) -> list[Reached]:
        sql, values = walk_statement(self.dialect, walk)
        return [Reached(key, depth) for key, depth in self.rows(sql, values)]

    # ------------------------------------------------------------------ writing

    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        keys = [record.key for record in records]
        self._delete_by_key(self.names.table(spec), spec.key, keys)
        if spec.tags_field is not None:
            self._delete_by_key(self.names.tags, "memory_id", keys)
        if spec.embeds:
            self._delete_vectors(spec, keys)

    def erase(self) -> None:
        for table in self.names.tables():
            self.run(f'DELETE FROM "{table}"', {})
        self.cache.vector_lengths.clear()
        self.followed_kinds = None

    def count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        mark, later = self.placeholders(1)[1:-1], "max" if self.dialect.name == "sqlite" else "greatest"
        self.run_many(
            f'UPDATE "{self.names.table(spec)}" SET access_count = access_count + {mark}, '
            f'last_accessed_at = {later}(last_accessed_at, {mark}) WHERE "{spec.key}" = {mark}',
            [(each.count, self.dialect.encode(FieldType.TIMESTAMP, each.last), key) for key, each in reads.items()],
        )

    def write_tags(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.tags_field is None:
            return
        rows = [(record.key, tag) for record in records for tag in getattr(record, spec.tags_field)]
        if rows:
            self.insert_rows(self.names.tags, ("memory_id", "tag"), rows)

    def rewrite_tags(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        name = spec.tags_field
        if name is None:
            return
        changed = [new for new, old in zip(records, previous, strict=True) if getattr(new, name) != getattr(old, name)]
        if changed:
            self._delete_by_key(self.names.tags, "memory_id", [record.key for record in changed])
            self.write_tags(spec, changed)

    def _delete_by_key(self, table: str, column: str, keys: Sequence[Any]) -> None:
        mark = self.names.mark
        self.run_many(f'DELETE FROM "{table}" WHERE "{column}" = {mark}', [(key,) for key in keys])

    # ------------------------------------------------------------------ vectors

    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._delete_vectors(spec, passages, f"AND model = {self.names.mark} AND part > 0", model)
        self.insert_rows(
            self.names.embeddings,
            ("memory_type", "memory_id", "model", "part", "dims", "embedding"),
            [
                (spec.kind, key, model, part, len(vector), self.stored_vector(vector))
                for key, vectors in passages.items()
                for part, vector in enumerate(vectors, start=1)
            ],
        )

    def drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._delete_vectors(spec, record_ids, f"AND model = {self.names.mark}", model)

    def drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._delete_vectors(spec, record_ids, f"AND model <> {self.names.mark}", model)

    def _delete_vectors(self, spec: RecordSpec, keys: Collection[str], further: str = "", *values: Any) -> None:
        """Delete the vectors of these records, all or those that match a further condition."""
        mark = self.names.mark
        self.run_many(
            f"DELETE FROM {self.names.embeddings} WHERE memory_type = {mark} AND memory_id = {mark} {further}",
            [(spec.kind, key, *values) for key in keys],
        )

    def vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        table, keys = self.names.embeddings, list(record_ids)
        among = f"= {self.names.parameter('keys')}" if len(keys) == 1 else self.in_list("keys")
        found = self.rows(
            f"SELECT memory_id, model, part, embedding FROM {table} "
            f"WHERE memory_type = {self.names.parameter('kind')} AND memory_id {among}",
            {"kind": spec.kind, "keys": keys[0] if len(keys) == 1 else self.bound_list(keys)},
        )
        return [RecordVector(key, model, part, as_vector(data)) for key, model, part, data in found]

    def without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        source, values = self._without_vector(spec, model, where)
        table = self.names.table(spec)
        behind = "" if after is None else f'AND "{table}"."{spec.key}" > {self.names.parameter("after")} '
        rows = self.rows(
            f'SELECT "{table}"."{spec.key}" FROM {source} {behind}'
            f'ORDER BY "{table}"."{spec.key}" LIMIT {self.names.parameter("most")}',
            {**values, "most": limit, **({} if after is None else {"after": after})},
        )
        keys = [key for (key,) in rows]
        records = {record.key: record for record in self.select(Query(spec, In(spec.key, keys)))}
        return [records[key] for key in keys]

    def count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        source, values = self._without_vector(spec, model, where)
        return int(self.rows(f"SELECT count(*) FROM {source}", values)[0][0])

    def _without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> tuple[str, dict[str, Any]]:
        """The FROM clause for records without a vector of a model, and its parameters."""
        statements = self.dialect.kind(spec)
        condition, values = statements.condition(where)
        table, embeddings = statements.table, self.names.embeddings
        return (
            f'"{table}" WHERE {condition} AND NOT EXISTS (SELECT 1 FROM {embeddings} '
            f"WHERE {embeddings}.memory_type = '{spec.kind}' AND {embeddings}.model = {self.names.parameter('lacked')} "
            f'AND {embeddings}.memory_id = "{table}"."{spec.key}")',
            {**values, "lacked": model},
        )

    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        embeddings = self.names.embeddings
        # A fast path: most stores have one model.
        if len(self.rows(f"SELECT model FROM {self.names.models} LIMIT 2", {})) < 2:
            return False
        # A single scan of the index, without a lookup for each record.
        found = self.rows(
            f"SELECT 1 FROM {embeddings} WHERE memory_type = '{spec.kind}' GROUP BY memory_id "
            f"HAVING sum(CASE WHEN model = {self.names.parameter('own')} THEN 1 ELSE 0 END) = 0 LIMIT 1",
            {"own": model},
        )
        return bool(found)

    def models(self) -> list[str]:
        models, embeddings = self.names.models, self.names.embeddings
        found = self.rows(
            f"SELECT model FROM {models} WHERE EXISTS "
            f"(SELECT 1 FROM {embeddings} WHERE {embeddings}.model = {models}.model) ORDER BY model",
            {},
        )
        return [model for (model,) in found]

    def dims_of(self, model: str, claim: int | None) -> int | None:
        lengths, models = self.cache.vector_lengths, self.names.models
        if model in lengths:
            return lengths[model]
        known = self.rows(f"SELECT dims FROM {models} WHERE model = {self.names.parameter('model')}", {"model": model})
        if known:
            if model not in self._claimed:
                # It never changes once committed; a claim of this transaction may still be rolled back.
                lengths[model] = int(known[0][0])
            return int(known[0][0])
        if claim is not None:
            self._claimed |= {model}
            self.insert_rows(models, ("model", "dims"), [(model, claim)])
        return claim

    # ------------------------------------------------------------------ history, audit and outbox

    @property
    def chains(self) -> ChainTable:
        return SqlChains(self)

    @property
    def outbox(self) -> MarkTable:
        return SqlMarks(self)

    def last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        if self._all_newer(self.names.table(MemoryVersion.spec), "memory_id", record_ids):
            return {}
        statements = self.dialect.kind(MemoryVersion.spec)
        sql, values = statements.last_versions(And(In("memory_id", record_ids), Compare("kind", "eq", kind)))
        found = map(statements.record, self.rows(sql, values))
        return {row.memory_id: row for row in found if isinstance(row, MemoryVersion)}

    def supersede(
        self, record: Record, previous: Record, by: Attribution, moment: datetime, change: ChangeType | None
    ) -> bool:
        """Without reading the newest version: an UPDATE sets its content, and returns its number."""
        left = superseded(record, previous)
        of_record = {"memory_id": record.key, "kind": record.spec.kind}
        ceased = self.rows(_superseding(self.names, tuple(left.content)), {**of_record, **left.content})
        if not ceased:
            return False
        self.run(
            _following(self.names),
            {
                **of_record,
                "version_number": int(ceased[0][0]) + 1,
                "change_type": str(change or left.change_type),
                "change_reason": by.reason,
                "diff_json": left.diff_json,
                "created_at": self.dialect.encode(FieldType.TIMESTAMP, moment),
                "created_by": by.author,
            },
        )
        return True

    def unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        encoded = self.dialect.encode(FieldType.TIMESTAMP, moment)
        sql, values = statements.select_unchanged(query, self.embedding_model, encoded)
        return [statements.record(row) for row in self.rows(sql, values)]

    def changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        statements = self.dialect.kind(MemoryVersion.spec)
        table = statements.table
        columns = ", ".join(f'"{table}"."{field.name}"' for field in MemoryVersion.spec.stored)
        among, values = "", {"of": kind, "moment": self.dialect.encode(FieldType.TIMESTAMP, moment)}
        if keys is not None:
            condition, values_of_keys = statements.condition(In("memory_id", list(keys)))
            among, values = f" AND {condition}", {**values, **values_of_keys}
        of, then = self.names.parameter("of"), self.names.parameter("moment")
        # Later versions first: an index has those, and most records never get a second version.
        found = self.rows(
            f"SELECT {columns} FROM {table} AS later CROSS JOIN {table} "
            f"WHERE later.version_number > 1 AND later.created_at > {then} AND later.kind = {of} "
            f'AND "{table}".memory_id = later.memory_id AND "{table}".kind = later.kind '
            f'AND "{table}".version_number = later.version_number - 1 AND "{table}".created_at <= {then}{among}',
            values,
        )
        return [row for row in map(statements.record, found) if isinstance(row, MemoryVersion)]


@cache
def _superseding(names: Names, columns: tuple[str, ...]) -> str:
    """The statement that sets the content of the newest version of a record, and returns its number."""
    table, named = names.table(MemoryVersion.spec), names.parameter
    same = f"memory_id = {named('memory_id')} AND kind = {named('kind')}"
    content = ", ".join(f"{name} = {named(name)}" for name in columns)
    newest = f"SELECT max(version_number) FROM {table} WHERE {same}"
    return f"UPDATE {table} SET {content} WHERE {same} AND version_number = ({newest}) RETURNING version_number"


@cache
def _following(names: Names) -> str:
    """The statement that inserts the next version, whose content is the record itself."""
    columns = ("memory_id", "kind", "version_number", "change_type", "change_reason", "diff_json", "created_at")
    written = (*columns, "created_by")
    table, marks = names.table(MemoryVersion.spec), ", ".join(map(names.parameter, written))
    return f"INSERT INTO {table} ({', '.join(written)}) VALUES ({marks})"


def _decoded(row: Sequence[Any], decoders: Sequence[tuple[int, Encoder]]) -> tuple[Any, ...]:
    values = list(row)
    for i, decode in decoders:
        if values[i] is not None:
            values[i] = decode(values[i])
    return tuple(values)


_EITHER_WAY = ", ".join(f"'{name}'" for name in sorted(SYMMETRIC))


def walk_statement(dialect: Dialect, walk: Walk) -> tuple[str, Mapping[str, Any]]:
    """The SQL and parameters of a traversal, which returns (id, depth)."""
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
    # The other end of the relationship.
    end = f'CASE WHEN {starts_here} THEN "{edge}".to_memory_id ELSE "{edge}".from_memory_id END'
    # UNION removes duplicates at the same depth, and the depth limit ends cycles.
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
