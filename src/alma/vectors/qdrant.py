"""Qdrant: the projection that keeps its collections equal to the store, and the vector index that searches them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from alma.lazy import lazy_regex
from alma.model.record import Record
from alma.model.secret import Secret
from alma.sync.projection import Change, Difference, Mismatch, Projection
from alma.vectors.qdrant_collections import Collections
from alma.vectors.qdrant_index import QdrantIndex as QdrantIndex
from alma.vectors.qdrant_points import HASH, KINDS, any_of, but, is_uuid, point_id, points_of
from alma.vectors.qdrant_server import MissingCollectionError, QdrantError, QdrantServer
from alma.vectors.qdrant_server import models as m

_BYTES_AT_ONCE = 8 << 20
_BYTES_PER_FLOAT = 13
_LISTED_AT_ONCE = 10_000
_COMPARED_AT_ONCE = 250
# The points of other programs may have numbers as ids, of 64 bits at most.
_NUMBER = lazy_regex("0|[1-9][0-9]{0,18}")
# Vectors are kept in single precision at length 1.
_VECTOR_TOLERANCE = 1e-5

Points = dict[str, dict[str, m.PointStruct]]
"""The points of each alias, by their ids."""


class QdrantProjection(Projection):
    """The vectors of memories, patterns and lessons with the documented payload, in a collection of each kind.

    A record without a vector has no point, one with passages has a point of each.
    """

    name: ClassVar[str] = "qdrant"
    kinds: ClassVar[tuple[type[Record], ...]] = tuple(KINDS)
    needs_vectors: ClassVar[bool] = True

    def __init__(
        self,
        url: str | Sequence[str] = "http://localhost:6333",
        api_key: str | Secret | None = None,
        prefix: str = "",
        timeout_seconds: float = 10.0,
        *,
        model: str | None = None,
        dims: int | None = None,
        replication_factor: int | None = None,
    ) -> None:
        self._server = QdrantServer(url, api_key, timeout_seconds)
        self._collections = Collections(self._server, prefix, model, replication_factor)
        self._model, self._dims = model, dims
        self._is_prepared = False
        # The ids of a kind, listed when its first page is read.
        self._listed: dict[type[Record], list[str]] = {}

    def ping(self) -> None:
        if self._is_prepared and self.is_lost():
            self._is_prepared = False
            raise QdrantError("the Qdrant server has lost its collections; they are filled again")
        self._server.ping()

    def is_lost(self) -> bool:
        aliases = self._collections.aliases()
        return self._lacks_collections(aliases) or bool(self._collections.misfits(self._dims, aliases))

    def prepare(self) -> None:
        aliases = self._collections.aliases()
        for cls in self.kinds:
            if self._model is not None and self._dims is not None:
                self._collections.create(cls, self._model, self._dims, aliases)
                self._collections.settle(cls, aliases)
        self._is_prepared = True

    def apply(self, changes: Sequence[Change]) -> None:
        aliases = self._collections.aliases()
        if self._is_prepared and self._lacks_collections(aliases):
            raise QdrantError("the Qdrant server has lost its collections")
        for cls, group in _by_kind(changes).items():
            wanted = self._points(group)
            for alias, points in wanted.items():
                if points and alias not in aliases:
                    self._create(cls, group, alias, aliases)
                    aliases = self._collections.aliases()
            known = self._collections.of_kind(cls, aliases)
            for alias in known:
                self._write(cls, alias, [each.record_id for each in group], wanted.get(alias, {}))
            self._collections.settle(cls, aliases)

    def compare(self, expected: Sequence[Change]) -> list[Mismatch]:
        aliases = self._collections.aliases()
        return [
            mismatch
            for cls, group in _by_kind(expected).items()
            for start in range(0, len(group), _COMPARED_AT_ONCE)
            for mismatch in self._compared(cls, group[start : start + _COMPARED_AT_ONCE], aliases)
        ]

    def held(self, cls: type[Record], after: str | None, limit: int) -> list[str]:
        if after is None or cls not in self._listed:
            self._listed[cls] = sorted(self._all_ids(cls))
        listed = self._listed[cls]
        start = 0 if after is None else bisect_right(listed, after)
        while page := listed[start : start + limit]:
            # What was listed may be deleted by now.
            if there := self._still_there(cls, page):
                return there
            start += limit
        return []

    def count(self, cls: type[Record]) -> int:
        return len(self._all_ids(cls))

    def clear(self) -> None:
        self._listed.clear()
        self._collections.delete_all(self._dims)

    def close(self) -> None:
        self._server.close()

    def _lacks_collections(self, aliases: Mapping[str, str]) -> bool:
        """Whether a collection is missing that `prepare` makes."""
        return self._model is not None and not all(self._collections.base(cls) in aliases for cls in self.kinds)

    # ------------------------------------------------------------------ applying

    def _points(self, changes: Iterable[Change]) -> Points:
        """The points that these records have, for each model that they have vectors of."""
        found: Points = defaultdict(dict)
        for change in changes:
            if change.record is None:
                continue
            for model in {each.model for each in change.vectors}:
                alias = self._collections.name(change.cls, model)
                vectors = [each for each in change.vectors if each.model == model]
                found[alias].update({str(each.id): each for each in points_of(change.record, vectors)})
        return found

    def _create(self, cls: type[Record], changes: Iterable[Change], alias: str, aliases: Mapping[str, str]) -> None:
        vectors = (vector for change in changes for vector in change.vectors)
        first = next(each for each in vectors if self._collections.name(cls, each.model) == alias)
        self._collections.create(cls, first.model, len(first.vector), aliases)

    def _write(
        self, cls: type[Record], alias: str, record_ids: Sequence[str], points: Mapping[str, m.PointStruct]
    ) -> None:
        """Write the points of these records, then delete what else they have."""
        for batch in _bounded(points.values()):
            # The client's own `upsert` looks into each point for texts to embed, which takes longer than all the rest.
            wanted = m.PointsList(points=batch)
            self._server.call(
                lambda client, wanted=wanted: client.http.points_api.upsert_points(  # type: ignore[misc]
                    alias, wait=True, point_insert_operations=wanted
                )
            )
        left = but([_of_records(cls, record_ids)], _ids_among(points))
        self._server.call(lambda client: client.delete(alias, m.FilterSelector(filter=left), wait=True))

    # ------------------------------------------------------------------ comparing

    def _compared(self, cls: type[Record], changes: Sequence[Change], aliases: Mapping[str, str]) -> Iterator[Mismatch]:
        wanted = self._points(changes)
        found: dict[str, tuple[Difference, str]] = {}
        for alias in {*self._collections.of_kind(cls, aliases), *wanted}:
            for record_id, difference, details in self._differences(cls, alias, changes, wanted.get(alias, {})):
                found.setdefault(record_id, (difference, details))
        gone = {each.record_id for each in changes if each.record is None}
        for record_id, (difference, details) in found.items():
            if record_id in gone:
                yield Mismatch(record_id, Difference.ORPHANED, "the store has no such record")
            else:
                yield Mismatch(record_id, difference, details)

    def _differences(
        self, cls: type[Record], alias: str, changes: Sequence[Change], points: Mapping[str, m.PointStruct]
    ) -> Iterator[tuple[str, Difference, str]]:
        key = KINDS[cls].key
        held = {str(each.id): each for each in self._retrieved(alias, list(points))}
        for number, point in points.items():
            problem = _difference(point, held.get(number))
            if problem is not None:
                yield (str((point.payload or {})[key]), *problem)
        rest = but([_of_records(cls, [each.record_id for each in changes])], _ids_among(points))
        known = {each.record_id for each in changes}
        for extra in self._scrolled(alias, rest, [key]):
            record_id = _record_id(extra, key)
            if record_id in known:
                yield record_id, Difference.STALE, f"{alias} has a point of it that the store has no vector of"

    def _retrieved(self, alias: str, ids: list[str]) -> list[m.Record]:
        try:
            return self._server.call(lambda client: client.retrieve(alias, ids, with_vectors=True)) if ids else []
        except MissingCollectionError:
            return []

    # ------------------------------------------------------------------ listing

    def _all_ids(self, cls: type[Record]) -> set[str]:
        """The ids of the records that have points; a point without one is listed with its own id."""
        key = KINDS[cls].key
        return {
            _record_id(point, key)
            for alias in self._collections.of_kind(cls, self._collections.aliases())
            for point in self._scrolled(alias, None, [key])
        }

    def _still_there(self, cls: type[Record], record_ids: Sequence[str]) -> list[str]:
        key = KINDS[cls].key
        chosen = _of_records(cls, record_ids)
        found = {
            _record_id(point, key)
            for alias in self._collections.of_kind(cls, self._collections.aliases())
            for point in self._scrolled(alias, chosen, [key])
        }
        return [each for each in record_ids if each in found]

    def _scrolled(self, alias: str, chosen: m.Filter | None, payload: list[str]) -> Iterator[m.Record]:
        """The points that a filter chooses, with a part of their payload."""
        offset: Any = None
        while True:
            try:
                points, offset = self._server.call(
                    lambda client, offset=offset: client.scroll(  # type: ignore[misc]
                        alias, scroll_filter=chosen, limit=_LISTED_AT_ONCE, offset=offset, with_payload=payload
                    )
                )
            except MissingCollectionError:
                return
            yield from points
            if offset is None:
                return


def _by_kind(changes: Iterable[Change]) -> dict[type[Record], list[Change]]:
    groups: dict[type[Record], list[Change]] = defaultdict(list)
    for change in changes:
        groups[change.cls].append(change)
    return groups


def _bounded(points: Iterable[m.PointStruct]) -> Iterator[list[m.PointStruct]]:
    """The points of many records, as many at once as the server takes in one request."""
    batch, size = list[m.PointStruct](), 0
    for point in points:
        size += _size(point)
        if batch and size > _BYTES_AT_ONCE:
            yield batch
            batch, size = [], _size(point)
        batch.append(point)
    if batch:
        yield batch


def _size(point: m.PointStruct) -> int:
    """About how many bytes a point takes as JSON."""
    floats: Any = point.vector
    return _BYTES_PER_FLOAT * len(floats) + sum(6 * len(str(value)) + 30 for value in (point.payload or {}).values())


def _record_id(point: m.Record, key: str) -> str:
    """The id of a point's record; its own where the payload names none."""
    named = (point.payload or {}).get(key)
    return named if isinstance(named, str) and named else str(point.id)


def _of_records(cls: type[Record], record_ids: Sequence[str]) -> m.Filter:
    """The filter for the points of records: by their payload, or by their id where that is damaged."""
    ids: list[Any] = [point_id(each) for each in record_ids]
    ids += [each for each in record_ids if is_uuid(each)]
    ids += [int(each) for each in record_ids if _NUMBER.fullmatch(each)]
    return m.Filter(should=[any_of(KINDS[cls].key, record_ids), m.HasIdCondition(has_id=ids)])


def _ids_among(points: Mapping[str, m.PointStruct]) -> list[Any]:
    return [m.HasIdCondition(has_id=list(points))]


def _difference(wanted: m.PointStruct, held: m.Record | None) -> tuple[Difference, str] | None:
    if held is None:
        return Difference.MISSING, "it has no point"
    mine, theirs = wanted.payload or {}, held.payload or {}
    if mine != theirs and mine[HASH] != theirs.get(HASH):
        return Difference.STALE, "its point is of another state"
    if mine != theirs:
        names = sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
        return Difference.CORRUPTED, f"{', '.join(names)}: the payload differs"
    if not _is_near(wanted.vector, held.vector):
        return Difference.CORRUPTED, "the vector differs"
    return None


def _is_near(one: Any, other: Any) -> bool:
    same_length = isinstance(other, list) and len(one) == len(other)
    return same_length and all(abs(mine - theirs) <= _VECTOR_TOLERANCE for mine, theirs in zip(one, other, strict=True))
