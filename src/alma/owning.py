"""Owning: parts that work on a store they are given, or without one on a store of their own in memory."""

from __future__ import annotations

from alma.closing import Closing
from alma.storage.base import StorageBackend, checked_storage


class OwnStore(Closing):
    """Works on the store it is given; without one it opens one in memory, which goes when it is closed."""

    def __init__(self, storage: StorageBackend | None) -> None:
        self._owns_storage = storage is None
        if storage is None:
            from alma.bootstrap import IN_MEMORY, open_storage

            storage = open_storage(IN_MEMORY)
        self._storage = checked_storage(type(self).__name__, storage)

    def close(self) -> None:
        """Release what was opened here; a store that was given stays open."""
        if self._owns_storage:
            self._storage.close()
