"""The vectors of records, as both databases keep them: one table, keyed by kind, id, model and part."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from alma.model.query import In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.primitives import Query, RecordVector
from alma.storage.sql.connected import Connected
from alma.storage.sql.statements import as_vector


class SqlVectors(Connected):
    """Keeps vectors, and knows of which models there are any."""

    # The models whose first vectors this transaction brings.
    _claimed: frozenset[str] = frozenset()

    def _put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._delete_vectors(spec, passages, f"AND model = {self.names.mark} AND part > 0", model)
        self.insert_rows(
            self.names.embeddings,
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
        self._delete_vectors(spec, record_ids, f"AND model = {self.names.mark}", model)

    def _drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._delete_vectors(spec, record_ids, f"AND model <> {self.names.mark}", model)

    def _delete_vectors(self, spec: RecordSpec, keys: Collection[str], further: str = "", *values: Any) -> None:
        """Delete the vectors of these records, all or those that fulfil a further condition with these values."""
        mark = self.names.mark
        self.run_many(
            f"DELETE FROM {self.names.embeddings} WHERE memory_type = {mark} AND memory_id = {mark} {further}",
            [(spec.kind, key, *values) for key in keys],
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
        keys = [key for (key,) in rows]
        records = {record.key: record for record in self._select(Query(spec, In(spec.key, keys)))}
        return [records[key] for key in keys]

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
        lengths, models = self.dialect.vector_lengths, self.names.models
        if model in lengths:
            return lengths[model]
        known = self.rows(f"SELECT dims FROM {models} WHERE model = {self.names.parameter('model')}", {"model": model})
        if known:
            if model not in self._claimed:
                # Once committed it never changes; a claim of this transaction may yet be rolled back.
                lengths[model] = int(known[0][0])
            return int(known[0][0])
        if claim is not None:
            self._claimed |= {model}
            self.insert_rows(models, ("model", "dims"), [(model, claim)])
        return claim
