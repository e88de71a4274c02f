"""ALMA as a system under test for the retrieval harness: general memories in an SQLite store.

    python evaluate.py --dataset locomo --granularity turn --retriever alma_retriever:AlmaRetriever

Nothing is tuned for a data set: items are saved as memories, and questions go to `RetrievalEngine.retrieve` with its
defaults.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from alma import Memory
from alma.bootstrap import create_embedder, open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from remembered_vectors import RememberedEmbedder

_PROJECT, _AGENT = "benchmark", "reader"
# A role says nothing about a turn; a name does.
_ROLES = ("", "user", "assistant", "system")
VECTORS = Path(__file__).parent / "results" / "quality-vectors.sqlite"


class Item(Protocol):
    """An item of the harness."""

    id: str
    text: str
    timestamp: str
    speaker: str
    session: str


class AlmaRetriever:
    """Returns the ids of the memories that ALMA retrieves, best first."""

    name = "alma"
    embedder: EmbeddingProvider | None = None

    def __init__(self) -> None:
        self._folder: str | None = None
        self._ids: dict[str, str] = {}
        self._engine: RetrievalEngine | None = None

    def reset(self) -> None:
        self.close()
        if AlmaRetriever.embedder is None:
            path = Path(os.environ.get("ALMA_BENCH_VECTORS", VECTORS))
            AlmaRetriever.embedder = RememberedEmbedder(create_embedder("local", cache_size=0), path)
        self._folder = tempfile.mkdtemp(prefix="alma-quality-")
        self._engine = RetrievalEngine(open_storage(f"{self._folder}/alma.db"), AlmaRetriever.embedder)

    def ingest(self, items: Sequence[Item]) -> None:
        assert self._engine is not None
        memories = [_memory(item) for item in items]
        self._ids = {memory.id: item.id for memory, item in zip(memories, items, strict=True)}
        MemoryWriter(self._engine.storage, self._engine.embedder).save_many(memories)

    def query(self, text: str, k: int, now: str = "") -> list[str]:
        assert self._engine is not None
        found = self._engine.retrieve(
            text, _AGENT, _PROJECT, top_k=k, kinds=[Memory], now=_moment(now), bypass_cache=True
        )
        return [self._ids[memory.id] for memory in found.memories]

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine.storage.close()
            self._engine = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _memory(item: Item) -> Memory:
    fields: dict[str, Any] = {"project_id": _PROJECT, "session_id": item.session}
    if item.speaker.lower() in _ROLES:
        return Memory(content=item.text, event_time=_moment(item.timestamp), **fields)
    return Memory.said(item.speaker, item.text, _moment(item.timestamp), **fields)


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
