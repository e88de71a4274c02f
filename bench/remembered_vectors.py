"""Vectors cached on disk between runs of a benchmark."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path

from alma.embeddings.base import EmbeddingProvider, Passage
from alma.model.vector import Vector

_AT_ONCE = 64


class RememberedEmbedder(EmbeddingProvider):
    """Caches the vectors of another provider on disk."""

    def __init__(self, inner: EmbeddingProvider, path: Path) -> None:
        self._inner = inner
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS texts (hash BLOB PRIMARY KEY, passages BLOB)")
        self._known: dict[bytes, list[Passage]] = {}

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def reads(self, text: str) -> bool:
        return self._inner.reads(text)

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        keys = [hashlib.blake2b(f"{self.model}\0{text}".encode(), digest_size=24).digest() for text in texts]
        wanting = {key: text for key, text in zip(keys, texts, strict=True) if not self._read(key)}
        for start in range(0, len(wanting), _AT_ONCE):
            self._make(dict(list(wanting.items())[start : start + _AT_ONCE]))
        return [self._known[key] for key in keys]

    def _read(self, key: bytes) -> bool:
        if key not in self._known:
            row = self._database.execute("SELECT passages FROM texts WHERE hash = ?", (key,)).fetchone()
            if row is not None:
                self._known[key] = _passages(row[0], self.dimension)
        return key in self._known

    def _make(self, texts: dict[bytes, str]) -> None:
        made = dict(zip(texts, self._inner._embed(list(texts.values())), strict=True))
        self._known.update(made)
        rows = [(key, _packed(passages)) for key, passages in made.items()]
        self._database.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", rows)


def _packed(passages: Sequence[Passage]) -> bytes:
    return b"".join(struct.pack("<i", passage.tokens) + passage.vector.to_bytes() for passage in passages)


def _passages(data: bytes, dims: int) -> list[Passage]:
    size = 4 + 4 * dims
    parts = (data[start : start + size] for start in range(0, len(data), size))
    return [Passage(Vector.from_bytes(part[4:]), struct.unpack("<i", part[:4])[0]) for part in parts]
