"""The history of records, as both databases write and read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from alma.model.fields import FieldType
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In
from alma.model.record import Record
from alma.storage.primitives import Query
from alma.storage.sql.connected import Connected
from alma.storage.sql.names import Names
from alma.storage.versions import superseded


class SqlHistory(Connected):
    """Keeps the versions of records, and finds what was then."""

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
