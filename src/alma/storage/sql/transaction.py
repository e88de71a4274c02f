"""The relational transaction: what both databases do the same way, on three ways to run a statement."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from alma.model.fields import FieldType
from alma.model.governance import Attribution
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.chain import ChainHead, ChainTable
from alma.storage.outbox import Mark, MarkTable
from alma.storage.primitives import Query, RecordVector
from alma.storage.sql.clauses import Bindings, Values, limited
from alma.storage.sql.statements import Dialect, KindStatements
from alma.storage.sql.walking import walk_statement
from alma.storage.transaction import Transaction
from alma.storage.traversal import Reached, Walk


class SqlTransaction(Transaction):
    """A transaction on an open connection."""

    # From how many ids on it is cheaper to ask for the newest stored one before asking for each.
    worth_a_look = 32

    def __init__(
        self, dialect: Dialect, by: Attribution, embedding_dim: int, embedding_model: str, *, writable: bool
    ) -> None:
        super().__init__(by, embedding_dim, embedding_model, writable=writable)
        self.dialect = dialect
        self.schema = dialect.schema
        self._lengths = dialect.vector_lengths
        self._claimed: set[str] = set()

    # ------------------------------------------------------------------ running statements

    @abstractmethod
    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Run a statement and fetch every row."""

    @abstractmethod
    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        """Run a statement; returns how many rows it touched."""

    @abstractmethod
    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with positional parameters once for each row."""

    @abstractmethod
    def placeholders(self, count: int) -> str:
        """So many positional parameters, for `run_many`."""

    # ------------------------------------------------------------------ reading

    def _locked(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        if self._all_newer(self.schema.tables[spec.kind], spec.key, keys):
            self._require_writable()
            return {}
        return super()._locked(spec, keys, scope)

    def _all_newer(self, table: sa.Table, column: str, keys: Collection[str]) -> bool:
        """Whether all of these ids sort behind every stored one, as ids made by the clock do: then none exists yet."""
        if len(keys) < self.worth_a_look:
            return False
        newest = self.rows(f'SELECT max("{column}") FROM "{table.name}"', {})[0][0]
        return newest is None or min(keys) > newest

    def _select(self, query: Query) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select(query, self.embedding_model)
        return [statements.record(row) for row in self.rows(sql, values)]

    def _values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select_values(query, names)
        decoders = [self.dialect.decoder(query.spec.field(name)) for name in names]
        return [
            tuple(
                value if value is None or decode is None else decode(value)
                for decode, value in zip(decoders, row, strict=True)
            )
            for row in self.rows(sql, values)
        ]

    def _text_lengths(self, spec: RecordSpec, keys: Sequence[str]) -> dict[str, int]:
        statements = self.dialect.kind(spec)
        condition, values = statements.condition(In(spec.key, keys))
        length = " + ".join(f"coalesce(octet_length({name}), 0)" for name in spec.text)
        if self.dialect.name == "sqlite":
            # Older versions of SQLite lack octet_length.
            length = length.replace("octet_length", "length")
        return dict(
            self.rows(f'SELECT "{spec.key}", {length} FROM "{statements.table.name}" WHERE {condition}', values)
        )

    def _count(self, spec: RecordSpec, where: Predicate) -> int:
        sql, values = self.dialect.kind(spec).count(where)
        return int(self.rows(sql, values)[0][0])

    def _last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        table = self.schema.tables[MemoryVersion.spec.kind]
        if self._all_newer(table, "memory_id", record_ids):
            return {}
        statements = self.dialect.kind(MemoryVersion.spec)

        def write() -> sa.ClauseElement:
            newer = table.alias("newer")
            later = sa.exists().where(
                newer.c.memory_id == table.c.memory_id,
                newer.c.kind == table.c.kind,
                newer.c.version_number > table.c.version_number,
            )
            return statements.selection(None).where(statements.clauses.condition(where, Bindings()), ~later)

        where = And(In("memory_id", record_ids), Compare("kind", "eq", kind))
        values = Values()
        statements.clauses.collect(where, values)
        found = map(statements.record, self.rows(statements.remembered("last_versions", write), values.values))
        return {row.memory_id: row for row in found if isinstance(row, MemoryVersion)}

    def _unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        encoded = self.dialect.encode(FieldType.TIMESTAMP, moment)
        sql, values = statements.select_unchanged(query, self.embedding_model, encoded)
        return [statements.record(row) for row in self.rows(sql, values)]

    def _changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        statements = self.dialect.kind(MemoryVersion.spec)
        table = statements.table.name
        columns = ", ".join(f'"{table}"."{field.name}"' for field in MemoryVersion.spec.stored)
        among, values = "", {"of": kind, "moment": self.dialect.encode(FieldType.TIMESTAMP, moment)}
        if keys is not None:
            condition, values_of_keys = statements.condition(In("memory_id", list(keys)))
            among, values = f" AND {condition}", {**values, **values_of_keys}
        of, then = self._named("of"), self._named("moment")
        # The later versions come first: an index holds those, and most records never have a second one.
        found = self.rows(
            f"SELECT {columns} FROM {table} AS later CROSS JOIN {table} "
            f"WHERE later.version_number > 1 AND later.created_at > {then} AND later.kind = {of} "
            f'AND "{table}".memory_id = later.memory_id AND "{table}".kind = later.kind '
            f'AND "{table}".version_number = later.version_number - 1 AND "{table}".created_at <= {then}{among}',
            values,
        )
        return [row for row in map(statements.record, found) if isinstance(row, MemoryVersion)]

    def _reachable(self, walk: Walk) -> list[Reached]:
        sql, values = walk_statement(self.dialect, walk)
        return [Reached(key, depth) for key, depth in self.rows(sql, values)]

    def _hydrated(self, spec: RecordSpec, found: Collection[Any]) -> list[tuple[Record, float]]:
        keys = [key for key, _ in found]
        records = {record.key: record for record in self._select(Query(spec, In(spec.key, keys)))}
        return [(records[key], score) for key, score in found]

    # ------------------------------------------------------------------ writing

    def _remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        keys = [record.key for record in records]
        self._delete_by_key(self.schema.tables[spec.kind], spec.key, keys)
        if spec.tags_field is not None:
            self._delete_by_key(self.schema.tags, "memory_id", keys)
        if spec.embeds:
            self._delete_vectors(spec, keys, None)

    def _put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        mark, table = self.placeholders(1)[1:-1], self.schema.embeddings.name
        self.run_many(
            f"DELETE FROM {table} WHERE memory_type = {mark} AND memory_id = {mark} AND model = {mark} AND part > 0",
            [(spec.kind, key, model) for key in passages],
        )
        self.run_many(
            f"INSERT INTO {table} (memory_type, memory_id, model, part, dims, embedding) VALUES {self.placeholders(6)}",
            [
                (spec.kind, key, model, part, len(vector), self._stored_vector(vector))
                for key, vectors in passages.items()
                for part, vector in enumerate(vectors, start=1)
            ],
        )

    def _stored_vector(self, vector: Vector) -> Any:
        """The vector as the table's column takes it."""
        return vector.to_bytes()

    def _drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._delete_vectors(spec, record_ids, model)

    def _drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        mark = self.placeholders(1)[1:-1]
        self.run_many(
            f"DELETE FROM {self.schema.embeddings.name} "
            f"WHERE memory_type = {mark} AND memory_id = {mark} AND model <> {mark}",
            [(spec.kind, key, model) for key in record_ids],
        )

    def _vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        table, key, kind = self.schema.embeddings.name, self._named("key"), self._named("kind")
        sql = (
            f"SELECT model, part, embedding FROM {table} WHERE memory_type = {kind} AND memory_id = {key} "
            f"ORDER BY model, part"
        )
        return [
            RecordVector(record_id, model, part, found if isinstance(found, Vector) else Vector.from_bytes(found))
            for record_id in record_ids
            for model, part, found in self.rows(sql, {"kind": spec.kind, "key": record_id})
        ]

    def _without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        source, values = self._lacking(spec, model, where)
        table = self.schema.tables[spec.kind].name
        behind = "" if after is None else f'AND "{table}"."{spec.key}" > {self._named("after")} '
        rows = self.rows(
            f'SELECT "{table}"."{spec.key}" FROM {source} {behind}'
            f'ORDER BY "{table}"."{spec.key}" LIMIT {self._named("most")}',
            {**values, "most": limit, **({} if after is None else {"after": after})},
        )
        return [record for record, _ in self._hydrated(spec, [(key, 0.0) for (key,) in rows])]

    def _count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        source, values = self._lacking(spec, model, where)
        return int(self.rows(f"SELECT count(*) FROM {source}", values)[0][0])

    def _lacking(self, spec: RecordSpec, model: str, where: Predicate) -> tuple[str, dict[str, Any]]:
        """The records without a vector of a model, as what follows FROM, and its parameters."""
        statements = self.dialect.kind(spec)
        condition, values = statements.condition(where)
        table, embeddings = statements.table.name, self.schema.embeddings.name
        return (
            f'"{table}" WHERE {condition} AND NOT EXISTS (SELECT 1 FROM {embeddings} '
            f"WHERE {embeddings}.memory_type = '{spec.kind}' "
            f'AND {embeddings}.memory_id = "{table}"."{spec.key}" AND {embeddings}.model = {self._named("lacked")})',
            {**values, "lacked": model},
        )

    def _models(self) -> list[str]:
        models, embeddings = self.schema.models.name, self.schema.embeddings.name
        found = self.rows(
            f"SELECT model FROM {models} WHERE EXISTS "
            f"(SELECT 1 FROM {embeddings} WHERE {embeddings}.model = {models}.model) ORDER BY model",
            {},
        )
        return [model for (model,) in found]

    def _dims_of(self, model: str, claim: int | None) -> int | None:
        if model in self._lengths:
            return self._lengths[model]
        models = self.schema.models
        known = self.rows(f"SELECT dims FROM {models.name} WHERE model = {self._named('model')}", {"model": model})
        if known:
            if model not in self._claimed:
                # Once committed it never changes; a claim of this transaction may yet be rolled back.
                self._lengths[model] = int(known[0][0])
            return int(known[0][0])
        if claim is not None:
            self._claimed.add(model)
            self.run_many(f"INSERT INTO {models.name} (model, dims) VALUES {self.placeholders(2)}", [(model, claim)])
        return claim

    def _insert_sql(self, statements: KindStatements, *extra: str) -> str:
        def write() -> str:
            columns = (*extra, *statements.columns)
            names = ", ".join(f'"{name}"' for name in columns)
            return f'INSERT INTO "{statements.table.name}" ({names}) VALUES {self.placeholders(len(columns))}'

        return statements.remembered(("insert", extra), write)

    def _update_sql(self, statements: KindStatements, *extra: str) -> str:
        def write() -> str:
            mark = self.placeholders(1)[1:-1]
            changes = ", ".join(f'"{name}" = {mark}' for name in (*extra, *statements.columns))
            return f'UPDATE "{statements.table.name}" SET {changes} WHERE "{statements.spec.key}" = {mark}'

        return statements.remembered(("update", extra), write)

    def _write_tags(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.tags_field is None:
            return
        rows = [(record.key, tag) for record in records for tag in getattr(record, spec.tags_field)]
        if rows:
            self.run_many(f"INSERT INTO memory_tags (memory_id, tag) VALUES {self.placeholders(2)}", rows)

    def _rewrite_tags(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        name = spec.tags_field
        if name is None:
            return
        changed = [new for new, old in zip(records, previous, strict=True) if getattr(new, name) != getattr(old, name)]
        if changed:
            self._delete_by_key(self.schema.tags, "memory_id", [record.key for record in changed])
            self._write_tags(spec, changed)

    def _delete_by_key(self, table: sa.Table, column: str, keys: Sequence[Any]) -> None:
        mark = self.placeholders(1)[1:-1]
        self.run_many(f'DELETE FROM "{table.name}" WHERE "{column}" = {mark}', [(key,) for key in keys])

    def _delete_vectors(self, spec: RecordSpec, keys: Collection[str], model: str | None) -> None:
        mark = self.placeholders(1)[1:-1]
        sql = f"DELETE FROM {self.schema.embeddings.name} WHERE memory_type = {mark} AND memory_id = {mark}"
        if model is None:
            self.run_many(sql, [(spec.kind, key) for key in keys])
        else:
            self.run_many(f"{sql} AND model = {mark}", [(spec.kind, key, model) for key in keys])

    def _named(self, name: str) -> str:
        return f":{name}" if self.dialect.name == "sqlite" else f"%({name})s"

    def _marks(self) -> MarkTable:
        return SqlMarks(self)

    def _chains(self) -> ChainTable:
        return SqlChains(self)


class SqlChains(ChainTable):
    """The heads of the audit chains as a table."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx
        self._table = tx.schema.audit_chains.name
        self._heads = f"SELECT chain, length, hash, unchained FROM {self._table} ORDER BY chain"

    def take(self) -> ChainHead:
        # SQLite has one writer at a time. On a server a chain that another writer holds is left to it, and where all
        # are held a new one is begun: so nobody waits, and there are as many as ever wrote at once.
        only_free = "" if self._tx.dialect.name == "sqlite" else " FOR UPDATE SKIP LOCKED"
        found = self._tx.rows(f"{self._heads} LIMIT 1{only_free}", {})
        if not found:
            found = self._tx.rows(
                f"INSERT INTO {self._table} (length) VALUES (0) RETURNING chain, length, hash, unchained", {}
            )
        return ChainHead(*found[0])

    def move(self, head: ChainHead) -> None:
        sql = f"UPDATE {self._table} SET length = {{}}, hash = {{}} WHERE chain = {{}}"
        named = map(self._tx._named, ("length", "hash", "chain"))
        self._tx.run(sql.format(*named), {"length": head.length, "hash": head.hash, "chain": head.chain})

    def heads(self) -> list[ChainHead]:
        return [ChainHead(*row) for row in self._tx.rows(self._heads, {})]


class SqlMarks(MarkTable):
    """The outbox as a table."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx
        self._outbox = tx.schema.outbox
        self._projections = tx.schema.projections

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._execute(
            sa.delete(self._projections).where(self._projections.c.projection == self._bound("name")), name=name
        )
        mark = self._tx.placeholders(2)
        self._tx.run_many(
            f"INSERT INTO {self._projections.name} (projection, kind) VALUES {mark}", [(name, kind) for kind in kinds]
        )

    def drop(self, name: str) -> None:
        for table in (self._projections, self._outbox):
            self._execute(sa.delete(table).where(table.c.projection == self._bound("name")), name=name)

    def projections(self, kind: str) -> list[str]:
        sql = f"SELECT projection FROM {self._projections.name} WHERE kind = {self._tx._named('kind')} ORDER BY 1"
        return [row[0] for row in self._tx.rows(sql, {"kind": kind})]

    def mark(self, projection: str, kind: str, keys: Sequence[str], moment: datetime) -> None:
        name = self._outbox.name
        sql = (
            f"INSERT INTO {name} (projection, kind, record_id, marked_at, generation) "
            f"VALUES {self._tx.placeholders(5)} ON CONFLICT (projection, kind, record_id) DO UPDATE SET "
            f"generation = {name}.generation + 1, marked_at = excluded.marked_at, attempts = 0, "
            f"error = NULL, parked = {'0' if self._tx.dialect.name == 'sqlite' else 'false'}"
        )
        encoded = self._moment(moment)
        # Sorted, so that two batches over the same records take their row locks in the same order.
        self._tx.run_many(sql, [(projection, kind, key, encoded, 1) for key in sorted(keys)])

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        table = self._outbox
        free = sa.or_(table.c.leased_until.is_(None), table.c.leased_until <= self._bound("now"))
        wanted = (
            sa.select(*table.c)
            .where(table.c.projection == self._bound("name"), free, table.c.parked.is_(False))
            .order_by(table.c.marked_at, table.c.kind, table.c.record_id)
        )
        wanted = limited(wanted, self._bound("most"))
        if self._tx.dialect.name == "postgresql":
            wanted = wanted.with_for_update(skip_locked=True)
        rows = self._tx.rows(
            self._tx.dialect.sql(wanted), {"name": projection, "now": self._moment(moment), "most": limit}
        )
        marks = [self._mark_of(row, leased_until=until) for row in rows]
        lease = f"UPDATE {table.name} SET leased_until = {self._one} WHERE {self._same_mark}"
        self._tx.run_many(lease, [(self._moment(until), *self._identity(mark)) for mark in marks])
        return marks

    def acknowledge(self, marks: Sequence[Mark]) -> int:
        table = self._outbox.name
        cleared = 0
        named = {name: self._tx._named(name) for name in ("projection", "kind", "record_id", "generation")}
        same = " AND ".join(f"{name} = {named[name]}" for name in ("projection", "kind", "record_id"))
        for mark in marks:
            values = {name: getattr(mark, name) for name in ("projection", "kind", "record_id")}
            delete = f"DELETE FROM {table} WHERE {same} AND generation = {named['generation']}"
            if self._tx.run(delete, {**values, "generation": mark.generation}):
                cleared += 1
            else:
                self._tx.run(f"UPDATE {table} SET leased_until = NULL WHERE {same}", values)
        return cleared

    def fail(self, mark: Mark, error: str, park_after: int) -> None:
        parked = mark.attempts + 1 >= park_after
        sql = (
            f"UPDATE {self._outbox.name} SET leased_until = NULL, attempts = attempts + 1, "
            f"error = {self._one}, parked = {self._one} WHERE {self._same_mark} AND generation = {self._one}"
        )
        self._tx.run_many(sql, [(error, parked, *self._identity(mark), mark.generation)])

    def unpark(self, projection: str) -> int:
        table = self._outbox
        freed = (
            sa.update(table)
            .where(table.c.projection == self._bound("name"), table.c.parked.is_(True))
            .values(parked=sa.false(), attempts=sa.literal_column("0"), error=sa.null())
        )
        return self._execute(freed, name=projection)

    def pending(self, projection: str) -> list[Mark]:
        table = self._outbox
        wanted = (
            sa.select(*table.c)
            .where(table.c.projection == self._bound("name"))
            .order_by(table.c.marked_at, table.c.kind, table.c.record_id)
        )
        return [self._mark_of(row) for row in self._tx.rows(self._tx.dialect.sql(wanted), {"name": projection})]

    # ------------------------------------------------------------------ spelling

    @property
    def _one(self) -> str:
        return self._tx.placeholders(1)[1:-1]

    @property
    def _same_mark(self) -> str:
        return " AND ".join(f"{name} = {self._one}" for name in ("projection", "kind", "record_id"))

    @staticmethod
    def _identity(mark: Mark) -> tuple[str, str, str]:
        return mark.projection, mark.kind, mark.record_id

    @staticmethod
    def _bound(name: str) -> sa.BindParameter[Any]:
        return sa.bindparam(name, type_=sa.types.NullType())

    def _execute(self, statement: sa.ClauseElement, **values: Any) -> int:
        return self._tx.run(self._tx.dialect.sql(statement), values)

    def _moment(self, moment: datetime) -> Any:
        return self._tx.dialect.encode(FieldType.TIMESTAMP, moment)

    def _mark_of(self, row: Sequence[Any], leased_until: datetime | None = None) -> Mark:
        decode = self._tx.dialect.timestamp_decoder
        projection, kind, record_id, generation, marked_at, leased, attempts, error, parked = row
        until = leased_until if leased_until is not None or leased is None else decode(leased)
        return Mark(projection, kind, record_id, generation, decode(marked_at), until, attempts, error, bool(parked))
