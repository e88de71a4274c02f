"""Tags in a predicate on PostgreSQL: rare ones lead to their records, of others a record is asked as late as possible.

Whether a record has a tag stands in another table, and looking there takes longer than all other conditions together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.model.fields import FieldType
from alma.model.query import EVERYTHING, And, Has, Or, Predicate
from alma.model.record import RecordSpec
from alma.storage.ranking import minute

if TYPE_CHECKING:
    from alma.storage.postgres.backend import PostgresBackend

_FEW = 20_000


def divided(spec: RecordSpec, where: Predicate) -> tuple[Predicate, Predicate]:
    """What a predicate says besides of tags, and what it says of tags: both together say what it says."""
    if _tags_of(spec, where):
        return EVERYTHING, where
    if isinstance(where, And):
        parts = [divided(spec, part) for part in where.parts]
        return And(*(plain for plain, _ in parts)), And(*(tagged for _, tagged in parts if tagged != EVERYTHING))
    return where, EVERYTHING


def rare_tags(backend: PostgresBackend, spec: RecordSpec, wanted: Predicate) -> tuple[str, ...]:
    """Tags that few records have, and of which every record has one that fulfils the predicate; none if there are none.

    How many have a tag is remembered for a while: it decides on the way to the records, not on what is found.
    """
    return next((tags for tags in _alternatives(spec, wanted) if tagged(backend, tags) < _FEW), ())


def tagged(backend: PostgresBackend, tags: tuple[str, ...]) -> int:
    """How many records have one of the tags, as far as they are counted."""
    known = backend.cache.tagged_records.get(tags, minute())
    if known is None:
        some = f"SELECT 1 FROM {backend.dialect.names.tags} WHERE tag = ANY(%(tags)s) LIMIT {_FEW}"
        [(count,)] = backend.rows(f"SELECT count(*) FROM ({some}) AS tagged", {"tags": list(tags)})
        known = backend.cache.tagged_records.put(tags, minute(), int(count))
    return known


def _alternatives(spec: RecordSpec, tagged: Predicate) -> list[tuple[str, ...]]:
    """Lists of tags, of each of which a record must have one."""
    parts = tagged.parts if isinstance(tagged, And) else (tagged,)
    return [
        tags
        for part in parts
        for tags in (_alternatives(spec, part) if isinstance(part, And) else [_tags_of(spec, part)])
        if tags
    ]


def _tags_of(spec: RecordSpec, part: Predicate) -> tuple[str, ...]:
    """The tags one of which a predicate asks for, where it says nothing else."""
    match part:
        case Has(name, tag) if spec.by_name[name].type is FieldType.TAGS:
            return (tag,)
        case Or(parts) if parts and all(_tags_of(spec, each) for each in parts):
            return tuple(tag for each in parts for tag in _tags_of(spec, each))
    return ()
