"""In memory: a store that lasts as long as the object, for work that need not outlive its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from alma.clock import new_id
from alma.errors import StorageError
from alma.storage.backend import Backend
from alma.storage.base import DEFAULT_MODEL, StorageBackend
from alma.storage.tables import TableBackend, new_tables


class InMemoryStorage(StorageBackend):
    """A store without files: the tables of the file store, kept by this object alone."""

    storage_type = "memory"

    def __init__(self, embedding_dim: int = 384, embedding_model: str = DEFAULT_MODEL) -> None:
        super().__init__(embedding_dim, embedding_model)
        self._tables = new_tables()
        self._writer = threading.Lock()
        self._committed = new_id()
        self._closed = False

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Backend]:
        if self._closed:
            raise StorageError("the store in memory was closed, and what it held is gone")
        if not write:
            yield TableBackend(self._tables, self.embedding_dim, self.embedding_model, writable=False)
            return
        with self._writer:
            backend = TableBackend(self._tables, self.embedding_dim, self.embedding_model, writable=True)
            yield backend
            if backend.changed:
                # Another dictionary, so that concurrent readers keep the state they began with.
                self._tables = {**self._tables, **backend.changed}
                self._committed = new_id()

    def _generation(self) -> str:
        return self._committed

    def close(self) -> None:
        self._closed = True
        self._tables = {}
