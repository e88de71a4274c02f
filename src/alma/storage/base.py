"""The storage contract that every store fulfils."""

from __future__ import annotations

from alma.model.common import checked_part
from alma.storage.audit import ChainHead, ChainTable
from alma.storage.backend import TEXT_LENGTH, Backend, Hit, Query, Reads, RecordVector
from alma.storage.feed import FoundVector, StoredVector, VectorFeed, VectorQuery
from alma.storage.outbox import Backlog, Mark, MarkTable
from alma.storage.records import DEFAULT_MODEL, Capability, RecordStore
from alma.storage.transaction import Transaction
from alma.storage.traversal import Direction, Reached, Walk
from alma.storage.typed import TypedMemories

__all__ = [
    "DEFAULT_MODEL",
    "TEXT_LENGTH",
    "Backend",
    "Backlog",
    "Capability",
    "ChainHead",
    "ChainTable",
    "Direction",
    "FoundVector",
    "Hit",
    "Mark",
    "MarkTable",
    "Query",
    "Reached",
    "Reads",
    "RecordStore",
    "RecordVector",
    "StorageBackend",
    "StoredVector",
    "Transaction",
    "TypedMemories",
    "VectorFeed",
    "VectorQuery",
    "Walk",
    "checked_storage",
]


class StorageBackend(TypedMemories):
    """A system of record.

    What a store promises:

    * **One transaction for everything that must agree.** A record, its vector, its full-text entry, its version, its
      audit event and its outbox marks become visible together or not at all, whatever is killed meanwhile. A call
      that returned is durable against the death of any process.
    * **Saving is idempotent.** Saving a record with a known id replaces it; what the record says is what is stored,
      so a record without an embedding has none afterwards. An id that belongs to another user, project or agent is
      refused.
    * **Validation comes first.** An input that breaks a rule raises `ValidationError` before anything is written.
    * **Reads name their scope.** Nothing outside it is returned, counted or ranked; `Scope.everywhere()` says "all".
    * **Order is total.** Results follow the requested order, records without a value last, with the id (byte-wise) for
      tie-breaking; so pages joined by a `Cursor` neither repeat nor miss a record that did not change.
    * **Vector search is exact by default**: cosine similarity, computed inside the scope. A vector has a model and a
      length; vectors of different models are never compared, and one of the wrong length is refused. A store that
      has vectors, but none of the model it was opened for, refuses to save or search any. When a record's text
      changes, its vectors of other models are dropped, as they say what it no longer does.
      A record may have further vectors for its passages; it is found once, by its best one.
    * **Full-text search** finds the records that contain at least one term of the query, better matches (BM25) first;
      where very many do, it may leave out the most common terms (see `matching_ids`).
    * **Relationships are followed inside the scope**: a walk neither starts from, passes through nor ends at a memory
      that the scope does not show.
    * **Writers wait, readers do not.** Any number of threads and processes may use one store; a reader sees the last
      committed state. Two writers of one record are serialised, so counters lose nothing.
    * **Subscribers are notified** after each commit of this object, in the thread that wrote; not of a rolled back
      transaction. Errors of a listener affect nothing else.
    * **History is kept** for every kind that is `versioned`; `as_of` reads the past from it, without vectors.

    What a store does not do: decide who may learn, decay, rank by anything but the match itself, or compute embeddings.

    A subclass implements `_begin`, which opens a `Backend`, `_generation` and `close`; the operations on records
    (`RecordStore`, `Transaction`) and ALMA's named methods (`TypedMemories`) are written once on the backend.
    """


def checked_storage(owner: str, storage: StorageBackend) -> StorageBackend:
    """The argument, if it is a store."""
    return checked_part(owner, "storage", storage, StorageBackend, "an open store, as open_storage() opens one")
