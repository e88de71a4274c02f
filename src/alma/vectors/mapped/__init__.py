"""The index of SQLite stores: vectors in memory-mapped files, found by quantized codes, confirmed by the store."""

from __future__ import annotations

from alma.vectors.mapped.index import MappedIndex

__all__ = ["MappedIndex"]
