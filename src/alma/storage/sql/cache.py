"""StoreCache: what the transactions of one store remember for each other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from alma.storage.ranking import Remembered
from alma.storage.sql.names import DialectName

# Each has some ten bytes for every vector.
_MOST_PLACES = 128


class StoreCache:
    """Numbers that decide how a search is run, and the few facts that never change once they are committed."""

    def __init__(self, dialect: DialectName) -> None:
        # How long the vectors of each model are.
        self.vector_lengths: dict[str, int] = {}
        # How many records have a word: on SQLite while the table keeps its size, on a server for a minute.
        self.word_counts: Remembered[int] = Remembered(slack=0.02 if dialect == "sqlite" else 0)
        # SQLite: which few records fulfil a predicate, with a mark of what was stored then.
        self.listings: dict[Hashable, tuple[Hashable, Any]] = {}
        # PostgreSQL: of each table, the share of records with a common term, and the mean number of terms.
        self.term_shares: Remembered[Mapping[str, float]] = Remembered(slack=0)
        self.mean_lengths: Remembered[float] = Remembered(slack=0)
        # PostgreSQL: whether a scope has many records, and how many have one of some tags.
        self.large_scopes: Remembered[bool] = Remembered(slack=0)
        self.tagged_records: Remembered[int] = Remembered(slack=0)
        # PostgreSQL: where the vectors of a small owner are stored, until the next commit.
        self.vector_places: Remembered[str] = Remembered(slack=0, most=_MOST_PLACES)
