"""Moving a store to another embedding model, while it is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from alma.embeddings.base import EmbeddingProvider, Encoded, as_provider
from alma.errors import ValidationError
from alma.model.kinds import KINDS
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction

_EVERYWHERE = Scope.everywhere()
_EMBEDDED = tuple(cls for cls in KINDS if cls.spec.embeds)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of the records that can have a vector have one of the new model."""

    done: int
    total: int


def reembed(
    storage: StorageBackend,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
) -> int:
    """Give every record of every embedded kind a vector of the embedder's model; returns how many were made.

    Each batch is a transaction of its own, and what has a vector is not encoded again: after any interruption the same
    call goes on where the last one ended. Readers and writers need not wait. Records that are written meanwhile are
    covered, and a vector is only stored if its record still says what was encoded; it is finished when no record is
    left. The vectors of other models stay, so a store can be used with its old model until then.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValidationError("reembed", "batch_size", batch_size, "must be a whole number of at least 1")
    embedder = as_provider(embedder)
    made = 0
    while True:
        made_before = made
        progress = _progress(storage, embedder.model)
        on_progress(progress)
        for batch in _batches(storage, embedder.model, batch_size):
            made += _embed(storage, embedder, batch)
            on_progress(Progress(min(progress.done + made - made_before, progress.total), progress.total))
        if made == made_before:
            return made


def _progress(storage: StorageBackend, model: str) -> Progress:
    with storage.snapshot() as tx:
        total = sum(tx.count(cls, _EVERYWHERE) for cls in _EMBEDDED)
        missing = sum(tx.count_without_vector(cls, model, _EVERYWHERE) for cls in _EMBEDDED)
    return Progress(total - missing, total)


def _batches(storage: StorageBackend, model: str, size: int) -> Iterator[Sequence[Record]]:
    """The records without a vector, kind by kind; each is met once, whether or not it gets one."""
    for cls in _EMBEDDED:
        after: str | None = None
        while batch := storage.without_vector(cls, model, _EVERYWHERE, size, after):
            yield batch
            after = batch[-1].key


def _embed(storage: StorageBackend, embedder: EmbeddingProvider, batch: Sequence[Record]) -> int:
    # A record that says nothing has nothing to encode and is found without a vector.
    texts = {record.key: text for record in batch if (text := record.embedded_text()).strip()}
    encoded = dict(zip(texts, embedder.encode_texts(texts.values()), strict=True))
    if not encoded:
        return 0
    return storage.write(lambda tx: _put(tx, type(batch[0]), texts, encoded, embedder.model))


def _put(
    tx: Transaction, cls: type[Record], texts: Mapping[str, str], encoded: Mapping[str, Encoded], model: str
) -> int:
    """Store the vectors of a batch's records that still say what was encoded."""
    made = tx.put_vectors(cls, {key: each.vector for key, each in encoded.items()}, model, made_from=texts)
    long = [key for key, each in encoded.items() if each.passages]
    unchanged = (
        record.key for record in tx.get_many(cls, long, _EVERYWHERE) if record.embedded_text() == texts[record.key]
    )
    tx.put_passages(cls, {key: encoded[key].passages for key in unchanged}, model)
    return made
