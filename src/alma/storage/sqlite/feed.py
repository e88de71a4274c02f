"""The vector feed of SQLite: the ids of the embeddings, which are numbered once and for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from alma.model.fields import FieldType
from alma.model.kinds import kind_named
from alma.model.query import Predicate
from alma.model.record import RecordSpec
from alma.storage.feed import OWNERS, FoundVector, StoredVector, VectorFeed, VectorQuery
from alma.storage.migrations.base import HISTORY_TABLE
from alma.storage.ranking import without_expiry
from alma.storage.sqlite.filters import Listing, can_be_listed, listed, mark_of, remember, remembered

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend

_POSITION = "SELECT seq FROM sqlite_sequence WHERE name = 'embeddings'"
Owners = tuple[str | None, str | None, str | None, str | None]
_NO_OWNERS: Owners = (None, None, None, None)
# What `FoundVector._make` does, without a step of the interpreter for each of hundreds.
_found_vector: Callable[[Any], FoundVector] = partial(tuple.__new__, FoundVector)


class SQLiteFeed(VectorFeed):
    """The vector feed: the ids of the embeddings, which are numbered once and for all."""

    def __init__(self, backend: SQLiteBackend) -> None:
        self._backend = backend
        self._marks_of: dict[str, Hashable] = {}

    def name(self) -> str:
        # No two stores were made in the same microsecond, least of all in one place.
        return str(self._backend.rows(f"SELECT min(applied_at) FROM {HISTORY_TABLE}", {})[0][0])

    def position(self) -> int:
        rows = self._backend.rows(_POSITION, {})
        return int(rows[0][0]) if rows else 0

    def after(self, model: str, position: int, limit: int) -> list[StoredVector]:
        rows = self._backend.rows(
            "SELECT id, memory_type, memory_id, part, embedding FROM embeddings "
            "WHERE id > :position AND model = :model ORDER BY id LIMIT :most",
            {"position": position, "model": model, "most": limit},
        )
        owners = {kind: self._owners(kind_named(kind).spec, keys) for kind, keys in _keys_by_kind(rows)}
        return [
            StoredVector(number, kind, key, part, *owners[kind].get(key, _NO_OWNERS), data)
            for number, kind, key, part, data in rows
        ]

    def at(self, question: VectorQuery, positions: Sequence[int]) -> list[FoundVector]:
        statements = self._backend.dialect.kind(question.spec)
        table, key = statements.table, question.spec.key
        condition, values = statements.condition(question.where)
        rows = self._backend.rows(
            f"SELECT embeddings.id, embeddings.memory_id, CASE WHEN {condition} THEN embeddings.embedding END "
            # CROSS JOIN fixes the join order: SQLite would rather scan all vectors of the kind.
            f"FROM json_each(:positions) AS asked CROSS JOIN embeddings ON embeddings.id = asked.value "
            f'CROSS JOIN "{table}" ON "{table}"."{key}" = embeddings.memory_id '
            f"WHERE embeddings.memory_type = :kind AND embeddings.model = :model",
            {
                **values,
                # Written as JSON writes it.
                "positions": str(list(positions)),
                "kind": question.spec.kind,
                "model": question.model,
            },
        )
        return list(map(_found_vector, rows))

    def inside(self, question: VectorQuery, most: int, *, known: bool = False) -> Sequence[int] | None:
        listing = self.listing(question.spec, question.where, question.model, 0 if known else most)
        return None if listing is None else listing.positions.tolist()

    def listing(
        self, spec: RecordSpec, where: Predicate, model: str | None = None, make_up_to: int = 0
    ) -> Listing | None:
        """The few records that fulfil a predicate, if that is known or may be found out."""
        if not (make_up_to or self._backend.cache.listings) or self._backend.writable or not can_be_listed(spec, where):
            return None
        wanted = model or self._backend.embedding_model
        key = (spec.kind, wanted, without_expiry(where))
        if spec.kind not in self._marks_of:
            self._marks_of[spec.kind] = mark_of(self._backend, spec)
        mark = self._marks_of[spec.kind]
        known, listing = remembered(self._backend, key, mark)
        if known or not make_up_to:
            return listing
        return remember(self._backend, key, mark, listed(self._backend, spec, wanted, where, make_up_to))

    def held(self, model: str) -> list[int]:
        rows = self._backend.rows("SELECT id FROM embeddings WHERE model = :model", {"model": model})
        return [number for (number,) in rows]

    def _owners(self, spec: RecordSpec, keys: Collection[str]) -> Mapping[str, Owners]:
        """Whose the records are, None where a kind knows no such owner."""
        columns = ", ".join(f'"{name}"' if name in spec.by_name else "NULL" for name in OWNERS)
        rows = self._backend.rows(
            f'SELECT "{spec.key}", {columns} FROM "{spec.table}" '
            f'WHERE "{spec.key}" IN (SELECT value FROM json_each(:keys))',
            {"keys": self._backend.dialect.encode(FieldType.STRINGS, list(keys))},
        )
        return {key: (user, project, session, agent) for key, user, project, session, agent in rows}


def _keys_by_kind(rows: Iterable[Sequence[Any]]) -> list[tuple[str, set[str]]]:
    pairs = sorted({(kind, key) for _, kind, key, *_ in rows})
    return [(kind, {key for _, key in group}) for kind, group in groupby(pairs, key=lambda pair: pair[0])]
