"""The words of a scope on SQLite: how many records of a kind lie inside, how many have a word, and which of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from alma.model.query import Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.ranking import CountCache
from alma.storage.sqlite import postings as sqlite_postings
from alma.storage.sqlite.fulltext import owner_tokens
from alma.storage.sqlite.postings import varints

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend

SMALL_SCOPE = 20_000
COUNTED = 1_500
"""A word is not counted further; beyond that its frequency is estimated from how far so many entries reach."""
# A word is counted inside so small a scope; in a larger one it is about as common as everywhere.
_FEW_INSIDE = 1_000
# Where its records have more of the words than that on average, leaping takes longer than what is done otherwise.
_ENTRIES_OF_EACH = 1.5


class ScopedWords:
    """The full-text table of a kind, as far as it concerns one scope."""

    def __init__(self, backend: SQLiteBackend, spec: RecordSpec, where: Predicate) -> None:
        self._backend = backend
        self._table = backend.dialect.names.table(spec)
        self._fts = backend.dialect.names.fts_table(spec)
        self._counts: CountCache[int] = backend.cache.word_counts
        matching = f"FROM {self._fts} WHERE {self._fts} MATCH :question LIMIT"
        self._counting = f"SELECT count(*) FROM (SELECT 1 {matching} :most)"
        self._reaching = f"SELECT rowid {matching} 1 OFFSET :most - 1"
        self._records, self._mean_length = self._totals()
        # Most kinds have no records in most stores, and need no further query.
        self._newest = self._records and backend.rows(f'SELECT coalesce(max(seq), 0) FROM "{self._table}"', {})[0][0]
        self._scope = _scope_expression(where)
        everything = not self._scope or not self._records
        self.inside = self._records if everything else self._counted(self._scope, SMALL_SCOPE)
        # Asking for the owner inside the index pays while there are few entries of it to leap over.
        self._narrowed = bool(self._scope) and self.inside < SMALL_SCOPE

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many records a small scope has and how many of them each word; of a larger one, how many anywhere."""
        if not self._records:
            return 0, dict.fromkeys(words, 0)
        small = self._narrowed and self.inside <= _FEW_INSIDE
        scope = self._scope if small else ""
        counts = {word: self._counted(all_of((quoted(word), scope)), COUNTED) for word in words}
        return self.inside if small else self._records, counts

    def _totals(self) -> tuple[int, float]:
        """How many records the full-text table has, and how many terms each on average, as FTS5 keeps them itself."""
        rows = self._backend.rows(f"SELECT block FROM {self._fts}_data WHERE id = 1", {})
        records, *lengths = varints(rows[0][0]) if rows and rows[0][0] else (0,)
        return records, sum(lengths) / max(records, 1)

    def _counted(self, expression: str, most: int) -> int:
        """How many entries an expression has; beyond `most` estimated by how far so many reached."""
        known = self._counts.get((self._fts, expression), self._records)
        if known is not None:
            return known
        asked = {"question": expression, "most": most}
        count: int = self._backend.rows(self._counting, asked)[0][0]
        if count == most:
            # Few words are as common; to note of every entry where it stands would take half as long again.
            last: int = self._backend.rows(self._reaching, asked)[0][0]
            count = max(count, round(count * self._newest / last))
        return self._counts.put((self._fts, expression), self._records, count)

    def _few_inside_with(self, words: Sequence[str]) -> list[sqlite_postings.Numbers] | None:
        """The records of the owner that have each word, unless they have too many of the words."""
        room = round(_ENTRIES_OF_EACH * self.inside)
        if sum(map(self._supposed_inside, words)) > room:
            return None
        lists = []
        for word in words:
            expression = self._inside_with(word)
            found = sqlite_postings.listed(self._backend, self._fts, expression, room + 1)
            room -= len(found)
            if room < 0:
                return None
            self._counts.put((self._fts, expression), self._records, len(found))
            lists.append(found)
        return lists

    def _inside_with(self, word: str) -> str:
        """What finds the records of the scope that have a word."""
        return all_of((quoted(word), self._scope))

    def _supposed_inside(self, word: str) -> float:
        """How many records of the owner have a word, if it is as common among them as everywhere; 0 if unknown."""
        everywhere = self._counts.get((self._fts, quoted(word)), self._records) or 0
        return everywhere * self.inside / self._records


def _scope_expression(where: Predicate) -> str:
    """The FTS5 expression of a scope; empty where it has no owner."""
    tokens = owner_tokens(ranking.owners(where))
    if "agent" in tokens:
        # An agent's token says its project as well, and the project's would be the longer list to read.
        del tokens["project_id"]
    return all_of(any_of(map(quoted, each)) for each in tokens.values())


def quoted(word: str) -> str:
    """A word that leaves nothing for FTS5 to interpret."""
    return '"' + word.replace('"', '""') + '"'


def any_of(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def all_of(expressions: Iterable[str]) -> str:
    return " AND ".join(filter(None, expressions))
