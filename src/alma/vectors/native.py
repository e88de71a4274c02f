"""Vector search inside the store: an exact scan, or the approximate index of the store (HNSW)."""

from __future__ import annotations

from typing import Any

from alma.errors import StorageError
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.vectors.base import Nearest


class NativeIndex:
    """Searches in the storage; with `exact=False` it may use its approximate index, as pgvector's HNSW."""

    def __init__(self, storage: StorageBackend, model: str | None = None, exact: bool = True) -> None:
        self._storage = storage
        self._model = model
        self._exact = exact
        self._closed = False

    def search(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Nearest]:
        if self._closed:
            raise StorageError("the vector index was closed")
        found = self._storage.nearest_ids(cls, vector, scope, where, limit, self._model, self._exact)
        return [Nearest(key, cosine) for key, cosine in found]

    def close(self) -> None:
        self._closed = True
