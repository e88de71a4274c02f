"""Writing so that it is found again: records get the vectors of their text before they are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from alma.embeddings.base import EmbeddingProvider
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.base import StorageBackend

Progress = Callable[[int, int], None]
_AT_ONCE = 256


class MemoryWriter:
    """Saves records with the vectors of their text, and of its passages where it is long."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider) -> None:
        self._storage = storage
        self._embedder = embedder

    def save(self, record: Record, by: Attribution = ANONYMOUS) -> str:
        """Save one record; returns its id."""
        return self.save_many([record], by)[0]

    def save_many(
        self, records: Iterable[Record], by: Attribution = ANONYMOUS, progress: Progress | None = None
    ) -> list[str]:
        """Save records in batches, each in a transaction of its own; returns their ids."""
        every = list(records)
        ids: list[str] = []
        for start in range(0, len(every), _AT_ONCE):
            ids.extend(self._save(every[start : start + _AT_ONCE], by))
            if progress is not None:
                progress(len(ids), len(every))
        return ids

    def _save(self, batch: Sequence[Record], by: Attribution) -> list[str]:
        # Embedding takes its time, so it is done before the transaction holds up other writers.
        wanting = [record for record in batch if record.spec.embeds and getattr(record, "embedding", None) is None]
        passages = dict(zip(map(id, wanting), self._embedded(wanting), strict=True))
        ready = [self._with_vector(record, passages.get(id(record))) for record in batch]
        with self._storage.transaction(by) as tx:
            tx.save(*ready)
            for record, original in zip(ready, batch, strict=True):
                parts = passages.get(id(original), [])
                if len(parts) > 1:
                    tx.put_passages(type(record), {str(record.key): parts})
        return [str(record.key) for record in ready]

    def _embedded(self, records: Sequence[Record]) -> list[list[Vector]]:
        return self._embedder.encode_passages([record.text() for record in records])

    def _with_vector(self, record: Record, passages: list[Vector] | None) -> Record:
        if passages is None:
            return record
        whole = passages[0] if len(passages) == 1 else self._embedder.encode(record.text())
        return record.replace(embedding=whole)
