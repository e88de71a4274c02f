"""Read the committed state of records as the changes that a projection applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from alma.model.kinds import kind_named
from alma.model.query import Cursor
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import RecordVector, Transaction
from alma.sync.projection import Change, Projection

EVERYWHERE = Scope.everywhere()

RecordName = tuple[str, str]
"""Kind and id of a record."""


def changes_of(tx: Transaction, projection: Projection, names: Iterable[RecordName]) -> list[Change]:
    """The state of each of these records, in their order."""
    wanted = list(names)
    kinds = {kind: [key for each, key in wanted if each == kind] for kind, _ in wanted}
    states = {
        (kind, change.record_id): change
        for kind, keys in kinds.items()
        for change in _states(tx, projection, kind_named(kind), keys)
    }
    return [states[name] for name in wanted]


def _states(tx: Transaction, projection: Projection, cls: type[Record], keys: Sequence[str]) -> list[Change]:
    found = {str(record.key): record for record in tx.get_many(cls, keys, EVERYWHERE)}
    vectors = _vectors(tx, projection, cls, list(found))
    return [Change(cls, key, found.get(key), vectors.get(key, ())) for key in keys]


def page_of(tx: Transaction, projection: Projection, cls: type[Record], after: str | None, limit: int) -> list[Change]:
    """The states of the records of a kind, by id, from behind the id that is given."""
    found = tx.find(cls, EVERYWHERE, limit=limit, after=_behind(after))
    vectors = _vectors(tx, projection, cls, [record.key for record in found])
    return [Change(cls, record.key, record, vectors.get(record.key, ())) for record in found]


def keys_behind(tx: Transaction, cls: type[Record], after: str | None, limit: int) -> list[str]:
    """The ids of a kind in order, from behind the id that is given."""
    return [key for (key,) in tx.values(cls, (cls.spec.key,), EVERYWHERE, limit=limit, after=_behind(after))]


def _behind(after: str | None) -> Cursor | None:
    return None if after is None else Cursor((), after)


def _vectors(
    tx: Transaction, projection: Projection, cls: type[Record], keys: Sequence[str]
) -> Mapping[str, tuple[RecordVector, ...]]:
    found: dict[str, tuple[RecordVector, ...]] = {}
    if projection.needs_vectors and cls.spec.embeds:
        for vector in tx.vectors_of(cls, keys):
            found[vector.record_id] = (*found.get(vector.record_id, ()), vector)
    return found
