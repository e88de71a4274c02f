"""Writing so that it is found again: records get the vectors of their text before they are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from alma.embeddings.base import EmbeddingProvider
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.record import Record
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
        wanting = {i: record.embedded_text() for i, record in enumerate(batch) if _wants_vector(record)}
        encoded = dict(zip(wanting, self._embedder.encode_texts(wanting.values()), strict=True))
        ready = list(batch)
        for i, vectors in encoded.items():
            ready[i] = batch[i].replace(embedding=vectors.vector)
        with self._storage.transaction(by) as tx:
            tx.save(*ready)
            for i, vectors in encoded.items():
                if vectors.passages:
                    tx.put_passages(type(ready[i]), {str(ready[i].key): vectors.passages})
        return [str(record.key) for record in ready]


def _wants_vector(record: Record) -> bool:
    return record.spec.embeds and getattr(record, "embedding", None) is None and bool(record.embedded_text().strip())
