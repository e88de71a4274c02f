"""Move a store to another embedding model while it is in use."""

from __future__ import annotations

import random
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
# The number of batches from which concurrent workers choose.
_STRETCH = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of the records have a vector of the new model."""

    done: int
    total: int


def reembed(
    storage: StorageBackend,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
) -> int:
    """Create a vector of the embedder's model for every record; returns the number of vectors created.

    Every batch is a transaction, and records with a vector are skipped: an interrupted run continues where it stopped,
    and concurrent runs share the work. Readers and writers are not blocked. Records written in the meantime are
    included, and a vector is only stored if its record has not changed since it was encoded. Vectors of other models
    are kept.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValidationError("reembed", "batch_size", batch_size, "must be a whole number of at least 1")
    move = _Move(storage, as_provider(embedder), batch_size)
    while True:
        made, by_others = move.made, move.by_others
        progress = move.progress()
        on_progress(progress)
        for _ in move.batch_by_batch():
            on_progress(Progress(min(progress.done + move.made - made, progress.total), progress.total))
        if (move.made, move.by_others) == (made, by_others):
            return move.made


class _Move:
    """One of possibly several workers, which see each other only by the vectors that they store.

    A worker that finds records done by another takes a stretch of several batches in random order, so that two workers
    seldom encode the same records. A worker that dies blocks no other.
    """

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider, batch_size: int) -> None:
        self._storage = storage
        self._embedder = embedder
        self._size = batch_size
        self.made = 0
        self.by_others = 0

    def progress(self) -> Progress:
        model = self._embedder.model
        with self._storage.snapshot() as tx:
            total = sum(tx.count(cls, _EVERYWHERE) for cls in _EMBEDDED)
            missing = sum(tx.count_without_vector(cls, model, _EVERYWHERE) for cls in _EMBEDDED)
        return Progress(total - missing, total)

    def batch_by_batch(self) -> Iterator[None]:
        """Encode the records without a vector, kind by kind, each at most once."""
        for cls in _EMBEDDED:
            after: str | None = None
            while stretch := self._missing(cls, self._size * (_STRETCH if self.by_others else 1), after):
                for batch in self._in_turn(stretch):
                    self._embed(cls, batch)
                    yield
                after = stretch[-1].key

    def _missing(self, cls: type[Record], limit: int, after: str | None) -> Sequence[Record]:
        return self._storage.without_vector(cls, self._embedder.model, _EVERYWHERE, limit, after)

    def _in_turn(self, stretch: Sequence[Record]) -> Sequence[Sequence[Record]]:
        batches = [stretch[i : i + self._size] for i in range(0, len(stretch), self._size)]
        return random.sample(batches, len(batches)) if self.by_others else batches

    def _embed(self, cls: type[Record], batch: Sequence[Record]) -> None:
        # A record without text is found without a vector.
        texts = {record.key: text for record in batch if (text := record.embedded_text()).strip()}
        if self.by_others:
            with self._storage.snapshot() as tx:
                texts = self._left(tx, cls, texts)
        encoded = dict(zip(texts, self._embedder.encode_texts(texts.values()), strict=True))
        if encoded:
            made, left = self._storage.write(lambda tx: self._put(tx, cls, texts, encoded))
            self.made += made
            self.by_others += len(texts) - left

    def _left(self, tx: Transaction, cls: type[Record], texts: Mapping[str, str]) -> dict[str, str]:
        """The texts whose records still have no vector."""
        done = {each.record_id for each in tx.vectors_of(cls, texts) if each.model == self._embedder.model}
        return {key: text for key, text in texts.items() if key not in done}

    def _put(
        self, tx: Transaction, cls: type[Record], texts: Mapping[str, str], encoded: Mapping[str, Encoded]
    ) -> tuple[int, int]:
        """Store the vectors of unchanged records; returns how many were stored, and how many were still missing."""
        model, left = self._embedder.model, self._left(tx, cls, texts)
        made = tx.put_vectors(cls, {key: encoded[key].vector for key in left}, model, made_from=left)
        long = [key for key in left if encoded[key].passages]
        unchanged = (
            record.key for record in tx.get_many(cls, long, _EVERYWHERE) if record.embedded_text() == left[record.key]
        )
        tx.put_passages(cls, {key: encoded[key].passages for key in unchanged}, model)
        return made, len(left)
