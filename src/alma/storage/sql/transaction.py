"""The relational transaction: what both databases do the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alma.model.fields import FieldType
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.storage.chain import ChainTable
from alma.storage.primitives import Query, Reads
from alma.storage.sql.chains import SqlChains
from alma.storage.sql.clauses import Encoder
from alma.storage.sql.history import SqlHistory
from alma.storage.sql.outbox import SqlOutbox
from alma.storage.sql.vectors import SqlVectors
from alma.storage.sql.walking import walk_statement
from alma.storage.traversal import Reached, Walk


class SqlTransaction(SqlVectors, SqlHistory, SqlOutbox):
    """Reads and writes records by the statements of their kinds, with vectors, history and marks."""

    # ------------------------------------------------------------------ reading

    def _locked(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        if self._all_newer(self.names.table(spec), spec.key, keys):
            self._require_writable()
            return {}
        return super()._locked(spec, keys, scope)

    def _select(self, query: Query) -> list[Record]:
        statements = self.dialect.kind(query.spec)
        sql, values = statements.select(query, self.embedding_model)
        return statements.records(self.rows(sql, values))

    def _values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        sql, values = self.dialect.kind(query.spec).select_values(query, names)
        rows, decoders = self.rows(sql, values), self.dialect.kind(query.spec).decoders(tuple(names))
        return [_decoded(row, decoders) for row in rows] if decoders else rows

    def _count(self, spec: RecordSpec, where: Predicate) -> int:
        sql, values = self.dialect.kind(spec).count(where)
        return int(self.rows(sql, values)[0][0])

    def _reachable(self, walk: Walk) -> list[Reached]:
        sql, values = walk_statement(self.dialect, walk)
        return [Reached(key, depth) for key, depth in self.rows(sql, values)]

    # ------------------------------------------------------------------ writing

    def _remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        keys = [record.key for record in records]
        self._delete_by_key(self.names.table(spec), spec.key, keys)
        if spec.tags_field is not None:
            self._delete_by_key(self.names.tags, "memory_id", keys)
        if spec.embeds:
            self._delete_vectors(spec, keys)

    def _count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        mark, later = self.placeholders(1)[1:-1], "max" if self.dialect.name == "sqlite" else "greatest"
        self.run_many(
            f'UPDATE "{self.names.table(spec)}" SET access_count = access_count + {mark}, '
            f'last_accessed_at = {later}(last_accessed_at, {mark}) WHERE "{spec.key}" = {mark}',
            [(each.count, self.dialect.encode(FieldType.TIMESTAMP, each.last), key) for key, each in reads.items()],
        )

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

    def _erase(self) -> None:
        for table in self.names.tables():
            self.run(f'DELETE FROM "{table}"', {})
        self.dialect.vector_lengths.clear()
        self.projections = None

    def _chains(self) -> ChainTable:
        return SqlChains(self)


def _decoded(row: Sequence[Any], decoders: Sequence[tuple[int, Encoder]]) -> tuple[Any, ...]:
    values = list(row)
    for i, decode in decoders:
        if values[i] is not None:
            values[i] = decode(values[i])
    return tuple(values)
