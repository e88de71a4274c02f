"""CrewAI: a storage of its unified memory that keeps records in ALMA."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from alma.errors import MissingDependencyError
from alma.integration.documents import Document, Documents, Kept, Path
from alma.model.vector import Vector

try:
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ModuleNotFoundError as exc:
    raise MissingDependencyError("crewai", "crewai") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMAStorage"]

_MOST = 100_000


class ALMAStorage:
    """A storage backend of CrewAI: `Memory(storage=storage, embedder=storage.embed)` with `ALMAStorage(memory)`.

    Records are memories of the project with a history; secrets in them are masked. Vectors are those of the memory's
    own embedding model, which `embed` makes.
    """

    def __init__(self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None) -> None:
        self._documents = Documents(alma, "crewai", "record", user_id=user_id, agent=agent)
        self._embedder = alma.retrieval.embedder

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, for the `embedder` of CrewAI's `Memory`."""
        return [[float(value) for value in each.vector] for each in self._embedder.encode_texts(texts)]

    # ------------------------------------------------------------------ writing

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records; one with a known id replaces the stored one, wherever that was."""
        known = self._paths([record.id for record in records])
        made = [_document(record) for record in records]
        moved = {path for path in known.values() if path not in {document.path for document in made}}
        self._documents.put(made, sorted(moved))

    def update(self, record: MemoryRecord) -> None:
        """Replace a record."""
        self.save([record])

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that fulfil all conditions; returns how many. They can be restored until a purge."""
        fulfils = _condition(categories, metadata_filter, record_ids, older_than)
        gone = [each.path for each in self._within(scope_prefix) if fulfils(_record(each))]
        self._documents.put([], gone)
        return len(gone)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope."""
        self.delete(scope_prefix)

    # ------------------------------------------------------------------ reading

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The nearest records of a scope that fulfil all conditions, with their cosines."""
        if len(query_embedding) != self._embedder.dimension:
            raise EmbeddingDimensionMismatchError(self._embedder.dimension, len(query_embedding))
        narrowed = bool(categories or metadata_filter)
        vector, folder = Vector(query_embedding), _folder(scope_prefix)
        found = self._documents.read(
            lambda reader: reader.nearest(vector, folder, (), _MOST if narrowed else max(limit, 1))
        )
        fulfils = _condition(categories, metadata_filter)
        hits = [(_record(each), each.score or 0.0) for each in found]
        return [(record, score) for record, score in hits if score >= min_score and fulfils(record)][:limit]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with this id."""
        path = self._paths([record_id]).get(record_id)
        found = None if path is None else self._documents.read(lambda reader: reader.get([path]).get(path))
        return None if found is None else _record(found)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """The records of a scope, newest first."""
        records = [_record(each) for each in self._within(scope_prefix)]
        return sorted(records, key=lambda each: _aware(each.created_at), reverse=True)[offset : offset + limit]

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope has."""
        return len(self._documents.read(lambda reader: reader.paths(_folder(scope_prefix))))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """The contents of a scope: records, categories, times and the scopes below."""
        records = [_record(each) for each in self._within(scope)]
        times = sorted((record.created_at for record in records), key=_aware)
        return ScopeInfo(
            path=_shown(_folder(scope)),
            record_count=len(records),
            categories=sorted({each for record in records for each in record.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes directly below a scope."""
        folder = _folder(parent)
        paths = self._documents.read(lambda reader: reader.paths(folder))
        return sorted({_shown(path[: len(folder) + 1]) for path in paths if len(path) > len(folder) + 1})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories in a scope, with how many records have them."""
        counts: dict[str, int] = {}
        for each in self._within(scope_prefix):
            for category in each.payload["categories"]:
                counts[category] = counts.get(category, 0) + 1
        return counts

    # ------------------------------------------------------------------ without blocking the event loop

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], **conditions: Any) -> list[tuple[MemoryRecord, float]]:
        return await asyncio.to_thread(lambda: self.search(query_embedding, **conditions))

    async def adelete(self, **conditions: Any) -> int:
        return await asyncio.to_thread(lambda: self.delete(**conditions))

    # ------------------------------------------------------------------ internals

    def _within(self, scope_prefix: str | None) -> list[Kept]:
        return self._documents.read(lambda reader: reader.within(_folder(scope_prefix)))

    def _paths(self, ids: Iterable[str]) -> dict[str, Path]:
        wanted = set(ids)
        paths = self._documents.read(lambda reader: reader.paths())
        return {path[-1]: path for path in paths if path[-1] in wanted}


def _folder(scope: str | None) -> Path:
    return tuple(part for part in (scope or "").split("/") if part)


def _shown(folder: Path) -> str:
    return "/" + "/".join(folder)


def _document(record: MemoryRecord) -> Document:
    path = (*_folder(record.scope), record.id)
    return Document(path, record.model_dump(mode="json"), [record.content])


def _record(kept: Kept) -> MemoryRecord:
    return MemoryRecord.model_validate(kept.payload)


def _condition(
    categories: list[str] | None,
    metadata: dict[str, Any] | None,
    ids: list[str] | None = None,
    older_than: datetime | None = None,
) -> Callable[[MemoryRecord], bool]:
    def fulfils(record: MemoryRecord) -> bool:
        return (
            (not categories or any(each in record.categories for each in categories))
            and all(record.metadata.get(key) == value for key, value in (metadata or {}).items())
            and (ids is None or record.id in ids)
            and (older_than is None or _aware(record.created_at) < _aware(older_than))
        )

    return fulfils


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
