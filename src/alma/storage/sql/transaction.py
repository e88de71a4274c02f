"""The relational transaction: what both databases do the same way, on three ways to run a statement."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from alma.model.fields import FieldType
from alma.model.governance import Attribution
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In, Order, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.chain import ChainHead, ChainTable
from alma.storage.outbox import Mark, MarkTable
from alma.storage.primitives import Query, Reads, RecordVector
from alma.storage.sql.clauses import Encoder
from alma.storage.sql.foreseen import Foreseen
from alma.storage.sql.names import Names
from alma.storage.sql.statements import Dialect, as_vector
from alma.storage.sql.walking import walk_statement
from alma.storage.transaction import Transaction
from alma.storage.traversal import Reached, Walk
from alma.storage.versions import superseded

_MOST_CONDITIONS = 64


class SqlTransaction(Transaction):
    """A transaction on an open connection."""

    # From how many ids on it is cheaper to ask for the newest stored one before asking for each.
    worth_a_look = 32
    # How many columns of its own a search selects before those that are foreseen.
    columns_before_foreseen = 2

    def __init__(
        self, dialect: Dialect, by: Attribution, embedding_dim: int, embedding_model: str, *, writable: bool
    ) -> None:
        super().__init__(by, embedding_dim, embedding_model, writable=writable)
        self.dialect = dialect
        self.names = dialect.names
        self._lengths = dialect.vector_lengths
        self._claimed: set[str] = set()
        self._foreseen: dict[str, Foreseen] = {}
        self._conditions: dict[tuple[str, int], tuple[Predicate, str, dict[str, Any]]] = {}
        # Which projections want to hear of which kinds, once it was asked; only this transaction can change it then.
        self.projections: list[tuple[str, str]] | None = None

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

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write new rows; a database may know a faster way to write many."""
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {self.placeholders(len(columns))}", rows)

    def placeholders(self, count: int) -> str:
        """So many positional parameters in brackets, for `run_many`."""
        return f"({', '.join([self.names.mark] * count)})"

    # ------------------------------------------------------------------ reading

    def condition_of(self, spec: RecordSpec, where: Predicate) -> tuple[str, dict[str, Any]]:
        """The SQL and parameters of a predicate, written once for as long as the same object is asked for."""
        key = (spec.kind, id(where))
        known = self._conditions.get(key)
        if known is None:
            if len(self._conditions) >= _MOST_CONDITIONS:
                self._conditions.clear()
            known = self._conditions[key] = (where, *self.dialect.kind(spec).condition(where))
        return known[1], known[2]

    def _locked(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        if self._all_newer(self.names.table(spec), spec.key, keys):
            self._require_writable()
            return {}
        return super()._locked(spec, keys, scope)

    def _held(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        if len(keys) != 1:
            return super()._held(spec, keys, scope)
        self._require_writable()
        statements = self.dialect.kind(spec)
        sql, values, name = statements.select_one(scope, self.embedding_model)
        found = self.rows(sql, {**values, name: keys[0]})
        return {keys[0]: statements.record(found[0])} if found else {}

    def _all_newer(self, table: str, column: str, keys: Collection[str]) -> bool:
        """Whether all of these ids sort behind every stored one, as ids made by the clock do: then none exists yet."""
        if len(keys) < self.worth_a_look:
            return False
        newest = self.rows(f'SELECT max("{column}") FROM "{table}"', {})[0][0]
        return newest is None or min(keys) > newest

    def _knows_of_none(self, query: Query) -> bool:
        """Whether nobody needs to be asked, for records of which it is known that there are none."""
        return False

    def _select(self, query: Query) -> list[Record]:
        if self._knows_of_none(query):
            return []
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select(query, self.embedding_model)
        return statements.records(self.rows(sql, values))

    def foresee(self, cls: type[Record], names: Sequence[str]) -> None:
        # Inside a transaction that writes, what was read may be another a moment later.
        self._foreseen.pop(cls.spec.kind, None)
        if names and not self.writable:
            columns_of = self.dialect.kind(cls.spec).columns_of
            self._foreseen[cls.spec.kind] = Foreseen(cls.spec, names, columns_of, self.columns_before_foreseen)

    def foreseen(self, spec: RecordSpec) -> Foreseen | None:
        """What will be asked about the records of a kind that are found, if that was said."""
        return self._foreseen.get(spec.kind)

    def _values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        if self._knows_of_none(query):
            return []
        foreseen = self.foreseen(query.spec)
        split = None if foreseen is None else foreseen.split(query, names)
        if split is None:
            sql, values = self.dialect.kind(query.spec).select_values(query, names)
            return self._decoded(query.spec, names, self.rows(sql, values))
        known, others = split
        key = query.spec.key
        if others and isinstance(query.where, And):
            where = And(query.where.parts[0], In(key, others))
            sql, values = self.dialect.kind(query.spec).select_values(Query(query.spec, where), (key, *names))
            known.update((row[0], row[1:]) for row in self.rows(sql, values))
        return self._decoded(query.spec, names, [known[each] for each in sorted(known)])

    def values_of(
        self, cls: type[Record], names: tuple[str, ...], scope: Scope, field: str, text: str, order: Order, limit: int
    ) -> list[tuple[Any, ...]]:
        sql, values, name = self.dialect.kind(cls.spec).select_values_of(names, scope, field, (order,), limit)
        return self._decoded(cls.spec, names, self.rows(sql, {**values, name: text}))

    def lacking(self, cls: type[Record], field: str, ids: Sequence[str], scope: Scope) -> list[str]:
        sql, values = self.dialect.kind(cls.spec).select_lacking(scope, field, self._among("keys"))
        return [key for (key,) in self.rows(sql, {**values, "keys": self._listed(ids)})]

    def _decoded(self, spec: RecordSpec, names: Sequence[str], rows: list[Any]) -> list[tuple[Any, ...]]:
        """Rows of these columns as the values they stand for."""
        decoders = self.dialect.kind(spec).decoders(tuple(names))
        return [_decoded(row, decoders) for row in rows] if decoders else rows

    def _count(self, spec: RecordSpec, where: Predicate) -> int:
        sql, values = self.dialect.kind(spec).count(where)
        return int(self.rows(sql, values)[0][0])

    def _last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        if self._all_newer(self.names.table(MemoryVersion.spec), "memory_id", record_ids):
            return {}
        statements = self.dialect.kind(MemoryVersion.spec)
        sql, values = statements.last_versions(And(In("memory_id", record_ids), Compare("kind", "eq", kind)))
        found = map(statements.record, self.rows(sql, values))
        return {row.memory_id: row for row in found if isinstance(row, MemoryVersion)}

    def _supersede(self, record: Record, previous: Record, moment: datetime) -> bool:
        left = superseded(record, previous)
        of_record = {"memory_id": record.key, "kind": record.spec.kind}
        number = self._cease(of_record, left.content)
        if number is None:
            return False
        self.run(
            _following(self.names),
            {
                **of_record,
                "version_number": number + 1,
                "change_type": str(self._change or left.change_type),
                "change_reason": self.by.reason,
                "diff_json": left.diff_json,
                "created_at": self.dialect.encode(FieldType.TIMESTAMP, moment),
                "created_by": self.by.author,
            },
        )
        return True

    def _cease(self, of_record: Mapping[str, str], content: Mapping[str, Any]) -> int | None:
        """Give a record's newest version the content that only the record held; gives the number of that version."""
        ceased = self.rows(_ceasing(self.names, tuple(content)), {**of_record, **content})
        return int(ceased[0][0]) if ceased else None

    def _unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        encoded = self.dialect.encode(FieldType.TIMESTAMP, moment)
        sql, values = statements.select_unchanged(query, self.embedding_model, encoded)
        return [statements.record(row) for row in self.rows(sql, values)]

    def _changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        statements = self.dialect.kind(MemoryVersion.spec)
        table = statements.table
        columns = ", ".join(f'"{table}"."{field.name}"' for field in MemoryVersion.spec.stored)
        among, values = "", {"of": kind, "moment": self.dialect.encode(FieldType.TIMESTAMP, moment)}
        if keys is not None:
            condition, values_of_keys = statements.condition(In("memory_id", list(keys)))
            among, values = f" AND {condition}", {**values, **values_of_keys}
        of, then = self.names.parameter("of"), self.names.parameter("moment")
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
        self._delete_by_key(self.names.table(spec), spec.key, keys)
        if spec.tags_field is not None:
            self._delete_by_key(self.names.tags, "memory_id", keys)
        if spec.embeds:
            self._delete_vectors(spec, keys, None)

    def _count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        mark, later = self.placeholders(1)[1:-1], "max" if self.dialect.name == "sqlite" else "greatest"
        self.run_many(
            f'UPDATE "{self.names.table(spec)}" SET access_count = access_count + {mark}, '
            f'last_accessed_at = {later}(last_accessed_at, {mark}) WHERE "{spec.key}" = {mark}',
            [(each.count, self.dialect.encode(FieldType.TIMESTAMP, each.last), key) for key, each in reads.items()],
        )

    def _put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        mark, table = self.names.mark, self.names.embeddings
        self.run_many(
            f"DELETE FROM {table} WHERE memory_type = {mark} AND memory_id = {mark} AND model = {mark} AND part > 0",
            [(spec.kind, key, model) for key in passages],
        )
        self.insert_rows(
            table,
            ("memory_type", "memory_id", "model", "part", "dims", "embedding"),
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
        mark = self.names.mark
        self.run_many(
            f"DELETE FROM {self.names.embeddings} "
            f"WHERE memory_type = {mark} AND memory_id = {mark} AND model <> {mark}",
            [(spec.kind, key, model) for key in record_ids],
        )

    def _vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        table, keys = self.names.embeddings, list(record_ids)
        among = f"= {self.names.parameter('keys')}" if len(keys) == 1 else self._among("keys")
        found = self.rows(
            f"SELECT memory_id, model, part, embedding FROM {table} "
            f"WHERE memory_type = {self.names.parameter('kind')} AND memory_id {among}",
            {"kind": spec.kind, "keys": keys[0] if len(keys) == 1 else self._listed(keys)},
        )
        return [RecordVector(key, model, part, as_vector(data)) for key, model, part, data in found]

    @abstractmethod
    def _among(self, name: str) -> str:
        """The condition that a column is in the list bound to this name."""

    @abstractmethod
    def _listed(self, keys: Sequence[str]) -> Any:
        """A list of ids as a parameter of `_among`."""

    def _erase(self) -> None:
        for table in self.names.tables():
            self.run(f'DELETE FROM "{table}"', {})
        self._lengths.clear()
        self.projections = None

    def _without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        source, values = self._lacking(spec, model, where)
        table = self.names.table(spec)
        behind = "" if after is None else f'AND "{table}"."{spec.key}" > {self.names.parameter("after")} '
        rows = self.rows(
            f'SELECT "{table}"."{spec.key}" FROM {source} {behind}'
            f'ORDER BY "{table}"."{spec.key}" LIMIT {self.names.parameter("most")}',
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
        table, embeddings = statements.table, self.names.embeddings
        return (
            f'"{table}" WHERE {condition} AND NOT EXISTS (SELECT 1 FROM {embeddings} '
            f"WHERE {embeddings}.memory_type = '{spec.kind}' AND {embeddings}.model = {self.names.parameter('lacked')} "
            f'AND {embeddings}.memory_id = "{table}"."{spec.key}")',
            {**values, "lacked": model},
        )

    def _is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        embeddings = self.names.embeddings
        # Most stores know one model, which is seen at once.
        if len(self.rows(f"SELECT model FROM {self.names.models} LIMIT 2", {})) < 2:
            return False
        # In one go along the index, without looking each of them up.
        found = self.rows(
            f"SELECT 1 FROM {embeddings} WHERE memory_type = '{spec.kind}' GROUP BY memory_id "
            f"HAVING sum(CASE WHEN model = {self.names.parameter('own')} THEN 1 ELSE 0 END) = 0 LIMIT 1",
            {"own": model},
        )
        return bool(found)

    def _models(self) -> list[str]:
        models, embeddings = self.names.models, self.names.embeddings
        found = self.rows(
            f"SELECT model FROM {models} WHERE EXISTS "
            f"(SELECT 1 FROM {embeddings} WHERE {embeddings}.model = {models}.model) ORDER BY model",
            {},
        )
        return [model for (model,) in found]

    def _dims_of(self, model: str, claim: int | None) -> int | None:
        if model in self._lengths:
            return self._lengths[model]
        models = self.names.models
        known = self.rows(f"SELECT dims FROM {models} WHERE model = {self.names.parameter('model')}", {"model": model})
        if known:
            if model not in self._claimed:
                # Once committed it never changes; a claim of this transaction may yet be rolled back.
                self._lengths[model] = int(known[0][0])
            return int(known[0][0])
        if claim is not None:
            self._claimed.add(model)
            self.insert_rows(models, ("model", "dims"), [(model, claim)])
        return claim

    def _write_tags(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.tags_field is None:
            return
        rows = [(record.key, tag) for record in records for tag in getattr(record, spec.tags_field)]
        if rows:
            self.insert_rows(self.names.tags, ("memory_id", "tag"), rows)

    def _rewrite_tags(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        name = spec.tags_field
        if name is None:
            return
        changed = [new for new, old in zip(records, previous, strict=True) if getattr(new, name) != getattr(old, name)]
        if changed:
            self._delete_by_key(self.names.tags, "memory_id", [record.key for record in changed])
            self._write_tags(spec, changed)

    def _delete_by_key(self, table: str, column: str, keys: Sequence[Any]) -> None:
        mark = self.names.mark
        self.run_many(f'DELETE FROM "{table}" WHERE "{column}" = {mark}', [(key,) for key in keys])

    def _delete_vectors(self, spec: RecordSpec, keys: Collection[str], model: str | None) -> None:
        mark = self.names.mark
        sql = f"DELETE FROM {self.names.embeddings} WHERE memory_type = {mark} AND memory_id = {mark}"
        if model is None:
            self.run_many(sql, [(spec.kind, key) for key in keys])
        else:
            self.run_many(f"{sql} AND model = {mark}", [(spec.kind, key, model) for key in keys])

    def registered(self) -> list[tuple[str, str]]:
        """Which projections want to hear of which kinds."""
        found = self.rows(f"SELECT projection, kind FROM {self.names.projections} ORDER BY 1", {})
        return [(projection, kind) for projection, kind in found]

    def _mark(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        if self.projections is None:
            self.projections = self.registered()
        if self.projections:
            super()._mark(spec, keys)

    def _marks(self) -> MarkTable:
        return SqlMarks(self)

    def _chains(self) -> ChainTable:
        return SqlChains(self)


@cache
def _ceasing(names: Names, columns: tuple[str, ...]) -> str:
    """Gives the newest version of a record the content that only the record held, and says which it is."""
    table, named = names.table(MemoryVersion.spec), names.parameter
    same = f"memory_id = {named('memory_id')} AND kind = {named('kind')}"
    content = ", ".join(f"{name} = {named(name)}" for name in columns)
    newest = f"SELECT max(version_number) FROM {table} WHERE {same}"
    return f"UPDATE {table} SET {content} WHERE {same} AND version_number = ({newest}) RETURNING version_number"


@cache
def _following(names: Names) -> str:
    """Writes the version that comes after it, whose content is the record itself."""
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


class SqlChains(ChainTable):
    """The heads of the audit chains as a table."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx

    def take(self) -> ChainHead:
        # SQLite has one writer at a time. On a server a chain that another writer holds is left to it, and where all
        # are held a new one is begun: so nobody waits, and there are as many as ever wrote at once.
        only_free = "" if self._tx.dialect.name == "sqlite" else " FOR UPDATE SKIP LOCKED"
        found = self._tx.rows(f"{self._heads()} LIMIT 1{only_free}", {})
        if not found:
            table = self._tx.names.audit_chains
            begun = f"INSERT INTO {table} (length) VALUES (0) RETURNING chain, length, hash, unchained"
            found = self._tx.rows(begun, {})
        return ChainHead(*found[0])

    def move(self, head: ChainHead) -> None:
        self._tx.run(_moving(self._tx.names), {"length": head.length, "hash": head.hash, "chain": head.chain})

    def heads(self) -> list[ChainHead]:
        return [ChainHead(*row) for row in self._tx.rows(self._heads(), {})]

    def _heads(self) -> str:
        return f"SELECT chain, length, hash, unchained FROM {self._tx.names.audit_chains} ORDER BY chain"


@cache
def _moving(names: Names) -> str:
    """Writes down where a chain ends."""
    named = names.parameter
    return (
        f"UPDATE {names.audit_chains} SET length = {named('length')}, hash = {named('hash')} "
        f"WHERE chain = {named('chain')}"
    )


def marked_again(outbox: str) -> str:
    """What becomes of a mark that is there already when its record changes once more."""
    return (
        f"ON CONFLICT (projection, kind, record_id) DO UPDATE SET generation = {outbox}.generation + 1, "
        "marked_at = excluded.marked_at, attempts = 0, error = NULL, parked = false"
    )


class SqlMarks(MarkTable):
    """The outbox as a table."""

    _columns = "projection, kind, record_id, generation, marked_at, leased_until, attempts, error, parked"

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx
        self._outbox = tx.names.outbox
        self._projections = tx.names.projections
        self._named = tx.names.parameter
        self._mark = tx.names.mark

    @property
    def _same_mark(self) -> str:
        return " AND ".join(f"{name} = {self._mark}" for name in ("projection", "kind", "record_id"))

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._tx.projections = None
        self._delete_all(self._projections, name)
        self._tx.insert_rows(self._projections, ("projection", "kind"), [(name, kind) for kind in kinds])

    def drop(self, name: str) -> None:
        self._tx.projections = None
        for table in (self._projections, self._outbox):
            self._delete_all(table, name)

    def _delete_all(self, table: str, projection: str) -> None:
        self._tx.run(f"DELETE FROM {table} WHERE projection = {self._named('name')}", {"name": projection})

    def projections(self, kind: str) -> list[str]:
        if self._tx.projections is None:
            self._tx.projections = self._tx.registered()
        return [projection for projection, marked in self._tx.projections if marked == kind]

    def mark(self, projection: str, kind: str, keys: Sequence[str], moment: datetime) -> None:
        name = self._outbox
        sql = (
            f"INSERT INTO {name} (projection, kind, record_id, marked_at, generation) "
            f"VALUES {self._tx.placeholders(5)} {marked_again(name)}"
        )
        encoded = self._moment(moment)
        # Sorted, so that two batches over the same records take their row locks in the same order.
        self._tx.run_many(sql, [(projection, kind, key, encoded, 1) for key in sorted(keys)])

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        free = f"(leased_until IS NULL OR leased_until <= {self._named('now')})"
        skip = " FOR UPDATE SKIP LOCKED" if self._tx.dialect.name == "postgresql" else ""
        rows = self._tx.rows(
            f"{self._oldest_first(f'{free} AND NOT parked')} LIMIT {self._named('most')}{skip}",
            {"name": projection, "now": self._moment(moment), "most": limit},
        )
        marks = [self._mark_of(row, leased_until=until) for row in rows]
        lease = f"UPDATE {self._outbox} SET leased_until = {self._mark} WHERE {self._same_mark}"
        self._tx.run_many(lease, [(self._moment(until), *self._identity(mark)) for mark in marks])
        return marks

    def acknowledge(self, marks: Sequence[Mark]) -> int:
        cleared = 0
        named = {name: self._named(name) for name in ("projection", "kind", "record_id", "generation")}
        same = " AND ".join(f"{name} = {named[name]}" for name in ("projection", "kind", "record_id"))
        for mark in marks:
            values = {name: getattr(mark, name) for name in ("projection", "kind", "record_id")}
            delete = f"DELETE FROM {self._outbox} WHERE {same} AND generation = {named['generation']}"
            if self._tx.run(delete, {**values, "generation": mark.generation}):
                cleared += 1
            else:
                self._tx.run(f"UPDATE {self._outbox} SET leased_until = NULL WHERE {same}", values)
        return cleared

    def fail(self, mark: Mark, error: str, park_after: int) -> None:
        parked = mark.attempts + 1 >= park_after
        sql = (
            f"UPDATE {self._outbox} SET leased_until = NULL, attempts = attempts + 1, "
            f"error = {self._mark}, parked = {self._mark} WHERE {self._same_mark} AND generation = {self._mark}"
        )
        self._tx.run_many(sql, [(error, parked, *self._identity(mark), mark.generation)])

    def unpark(self, projection: str) -> int:
        freed = "parked = false, attempts = 0, error = NULL"
        sql = f"UPDATE {self._outbox} SET {freed} WHERE projection = {self._named('name')} AND parked"
        return self._tx.run(sql, {"name": projection})

    def pending(self, projection: str) -> list[Mark]:
        return [self._mark_of(row) for row in self._tx.rows(self._oldest_first("true"), {"name": projection})]

    # ------------------------------------------------------------------ spelling

    def _oldest_first(self, condition: str) -> str:
        return (
            f"SELECT {self._columns} FROM {self._outbox} WHERE projection = {self._named('name')} AND {condition} "
            f"ORDER BY marked_at, kind, record_id"
        )

    @staticmethod
    def _identity(mark: Mark) -> tuple[str, str, str]:
        return mark.projection, mark.kind, mark.record_id

    def _moment(self, moment: datetime) -> Any:
        return self._tx.dialect.encode(FieldType.TIMESTAMP, moment)

    def _mark_of(self, row: Sequence[Any], leased_until: datetime | None = None) -> Mark:
        decode = self._tx.dialect.timestamp_decoder
        projection, kind, record_id, generation, marked_at, leased, attempts, error, parked = row
        until = leased_until if leased_until is not None or leased is None else decode(leased)
        return Mark(projection, kind, record_id, generation, decode(marked_at), until, attempts, error, bool(parked))
