"""Write memories: embed the text of records before they are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from alma.embeddings.base import EmbeddingProvider, as_provider
from alma.errors import ConfigurationError
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.record import Record
from alma.model.vector import Vector
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, redact_record
from alma.storage.base import DEFAULT_MODEL, StorageBackend, Transaction, checked_storage

Progress = Callable[[int, int], None]
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Embedded:
    """A record with the vector of its text, and those of its passages where it is long."""

    record: Record
    passages: tuple[Vector, ...] = ()

    def save(self, tx: Transaction) -> str:
        """Store it; returns its id."""
        tx.save(self.record)
        if self.passages:
            tx.put_passages(type(self.record), {str(self.record.key): self.passages})
        return str(self.record.key)


def embedded(embedder: EmbeddingProvider, records: Sequence[Record]) -> list[Embedded]:
    """The records with vectors; one that already has a vector, or has no text, is unchanged.

    Embedding is slow, so it is done before the transaction, which blocks other writers.
    """
    wanting = {i: record.embedded_text() for i, record in enumerate(records) if _wants_vector(record)}
    encoded = dict(zip(wanting, embedder.encode_texts(wanting.values()), strict=True))
    ready = [Embedded(record) for record in records]
    for i, vectors in encoded.items():
        ready[i] = Embedded(records[i].replace(embedding=vectors.vector), vectors.passages)
    return ready


def join_space(storage: StorageBackend, embedder: EmbeddingProvider) -> EmbeddingProvider:
    """Name the model of a store without one after the embedder, and reject an embedder of another model.

    Vectors of two models are never compared. Returns an `EmbeddingProvider`, even for an object that only has its
    methods.
    """
    embedder = as_provider(embedder)
    checked_storage("memory", storage)
    if storage.embedding_dim == embedder.dimension:
        storage.name_model(embedder.model)
    own = (embedder.model, DEFAULT_MODEL)
    if storage.embedding_dim != embedder.dimension or storage.embedding_model not in own:
        raise ConfigurationError(
            f"the store keeps vectors of {storage.embedding_model!r} with {storage.embedding_dim} dimensions, the "
            f"provider makes those of {embedder.model!r} with {embedder.dimension}: open the store with "
            f"embedding_model={embedder.model!r} and embedding_dim={embedder.dimension}, and move what it holds with "
            f"alma reembed"
        )
    return embedder


class MemoryWriter:
    """Saves records with the vectors of their text and, if it is long, of its passages.

    Secrets are masked; `redactor=None` is for callers that have masked them already.
    """

    def __init__(
        self, storage: StorageBackend, embedder: EmbeddingProvider, redactor: Redactor | None = DEFAULT_REDACTOR
    ) -> None:
        self._embedder = join_space(storage, embedder)
        self._storage = storage
        self._redactor = checked_redactor("writer", redactor)

    def save(self, record: Record, by: Attribution = ANONYMOUS) -> str:
        """Save one record; returns its id."""
        return self.save_many([record], by)[0]

    def save_many(
        self, records: Iterable[Record], by: Attribution = ANONYMOUS, progress: Progress | None = None
    ) -> list[str]:
        """Save records in batches, one transaction for each batch; returns their ids."""
        every = list(records)
        ids: list[str] = []
        for start in range(0, len(every), _AT_ONCE):
            ids.extend(self._save(every[start : start + _AT_ONCE], by))
            if progress is not None:
                progress(len(ids), len(every))
        return ids

    def _save(self, batch: Sequence[Record], by: Attribution) -> list[str]:
        ready = embedded(self._embedder, [self._clean(record) for record in batch])

        def save(tx: Transaction) -> None:
            tx.save(*(each.record for each in ready))
            for each in ready:
                if each.passages:
                    tx.put_passages(type(each.record), {str(each.record.key): each.passages})

        self._storage.write(save, by)
        return [str(each.record.key) for each in ready]

    def _clean(self, record: Record) -> Record:
        return record if self._redactor is None else redact_record(record, self._redactor)[0]


def _wants_vector(record: Record) -> bool:
    return record.spec.embeds and getattr(record, "embedding", None) is None and bool(record.embedded_text().strip())
