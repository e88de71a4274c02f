"""Say where the bytes of an SQLite store are: texts, vectors, words, history, indexes, and what pages leave unused.

    python bench/bytes.py                              # 10,000 memories of about 2,000 characters, less than a minute
    python bench/bytes.py --characters 300 --changed   # each memory changed once as well

The memories are synthetic texts with 384-dimensional vectors. Their words are as frequent as in LoCoMo's conversations
(the full-text index of these takes 919 bytes for 2,000 characters), and their lengths vary by half. The sizes are those
of the pages (`dbstat`) after the store was closed, and of the files of the mapped vector index beside it.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import numpy as np

from alma.bootstrap import open_vector_index
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.sqlite_local import SQLiteStorage

DIMS = 384
_WORDS = 5_000
_BATCH = 1_000
_EVERYWHERE = Scope.everywhere()
# By the beginnings of tables and indexes, the first that fits.
_PARTS = {
    "memories_fts": "words (FTS5)",
    "memories": "memories",
    "embeddings": "vectors",
    "memory_versions": "history",
    "idx_memory_versions": "history",
    "audit_log": "audit log",
    "idx_audit": "audit log",
    "idx_embeddings": "indexes of vectors",
    "idx_": "indexes of memories",
    "sqlite_autoindex": "indexes of memories",
}


class Texts:
    """Texts of words that are drawn from a seed."""

    def __init__(self) -> None:
        self._source = random.Random(3)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = ["".join(self._source.choices(letters, k=self._source.randint(3, 9))) for _ in range(_WORDS)]
        self._frequencies = list(accumulate(1 / (rank + 5) for rank in range(_WORDS)))

    def text(self, characters: int) -> str:
        """A text of this length on average."""
        length = self._source.randint(characters // 2, 3 * characters // 2)
        words = self._source.choices(self._words, cum_weights=self._frequencies, k=length // 4)
        return " ".join(words)[:length].strip()


def fill(path: Path, memories: int, characters: int, *, changed: bool) -> None:
    """Save the memories, change each of them once if wanted, and have the index take in their vectors."""
    texts, numbers = Texts(), np.random.default_rng(1)
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        for start in range(0, memories, _BATCH):
            store.save_many(
                Memory(
                    id=f"{i:032x}",
                    project_id="bench",
                    content=texts.text(characters),
                    embedding=_vector(numbers),
                )
                for i in range(start, min(start + _BATCH, memories))
            )
        for i in range(memories if changed else 0):
            store.update(Memory, f"{i:032x}", {"importance_score": 0.9}, _EVERYWHERE)
        with closing(open_vector_index(store)) as index:
            index.search(Memory, [1.0] * DIMS, _EVERYWHERE, limit=1)


def _vector(numbers: np.random.Generator) -> Vector:
    """A unit vector of 16-bit fixed-point numbers, as the local model makes them."""
    vector = numbers.normal(size=DIMS)
    return Vector((np.rint(vector / np.linalg.norm(vector) * (1 << 15)) / (1 << 15)).tolist())


def parts(path: Path) -> dict[str, tuple[float, float]]:
    """Megabytes of pages by what they hold, and how many of them are unused."""
    found: dict[str, tuple[float, float]] = {}
    with closing(sqlite3.connect(path)) as connection:
        for name, size, unused in connection.execute("SELECT name, sum(pgsize), sum(unused) FROM dbstat GROUP BY name"):
            part = next((part for start, part in _PARTS.items() if name.startswith(start)), "the rest")
            before = found.get(part, (0.0, 0.0))
            found[part] = (before[0] + size / 1e6, before[1] + unused / 1e6)
    beside = sum(file.stat().st_size for file in path.with_name(f"{path.name}.vectors").rglob("*") if file.is_file())
    return {**found, "vectors, mapped index": (beside / 1e6, 0.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--characters", type=int, default=2_000, help="the mean length of the texts")
    parser.add_argument("--changed", action="store_true", help="change each memory once, for its history")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "alma.db"
        fill(path, options.memories, options.characters, changed=options.changed)
        found = parts(path)
    for part, (size, unused) in sorted(found.items(), key=lambda each: -each[1][0]):
        print(f"{part:24} {size:6.1f} MB, {unused:4.1f} unused")
    print(f"{'all':24} {sum(size for size, _ in found.values()):6.1f} MB")


if __name__ == "__main__":
    main()
