"""The index beside an SQLite store: vectors in mapped files, found by quantised codes, judged by the store."""

from __future__ import annotations

from alma.vectors.mapped.index import MappedIndex

__all__ = ["MappedIndex"]
