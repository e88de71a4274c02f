"""Full text on SQLite: what the FTS5 tables hold, and how a question of many words stays fast in a store of millions.

FTS5 scores about a record per microsecond, and before the first it counts every entry of each word in the whole table.
So a question is answered in up to three steps, each bounded:

1. Its rarest words are looked up and scored by FTS5's BM25. In a small scope, or while the words are rare, these are
   all the words, and the answer is exact.
2. If that gives too few records, the newest ones are taken that have all of the other words, then fewer of them.
3. The best of these get what the words left out in step 1 add to their score, counted in their text.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Protocol

from alma.model.fields import FieldType
from alma.model.kinds import KINDS
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.text import spaced_terms, terms
from alma.storage import ranking
from alma.storage.ranking import COUNTED, OWNERS, Remembered, Selection, idf, saturation
from alma.storage.sql.statements import Dialect

OWNER_COLUMN = "scope"
# No term has this character, so that an owner is never found as a word.
_OWNER_MARK = "\u00b7"
_SMALL_SCOPE = 20_000
# FTS5 counts every entry of a word in the whole table before it scores the first: a millisecond for so many.
_MOST_SCORABLE = 30_000
_FEWEST_RESCORED = 50
_MOST_RESCORED = 200
_RESCORED_CHARACTERS = 100_000
_LOOKED_AT = 2_000
_TRIED_PER_RESULT = 3
_FAINT = 1e-9


class Reader(Protocol):
    """What asks the database."""

    dialect: Dialect

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]: ...


# ---------------------------------------------------------------------- what the index holds


def entry(record: Record) -> list[str]:
    """A record's row of its full-text table: the terms of each searchable field, and whose they are."""
    names, texts, owners = _fields(record.spec.kind)
    return _entry(texts(record), names, owners(record))


def _entry(texts: Iterable[str | None], names: tuple[str, ...], owners: tuple[str | None, ...]) -> list[str]:
    row = [spaced_terms(text) if text else "" for text in texts]
    row.append(_owner_text(names, owners))
    return row


@cache
def _fields(kind: str) -> tuple[tuple[str, ...], Callable[[Record], Any], Callable[[Record], Any]]:
    """The names of a kind's owners, and what reads its searchable texts and its owners."""
    spec = next(cls.spec for cls in KINDS if cls.spec.kind == kind)
    names = _owner_names(spec)
    return names, _getter(spec.text), _getter(names)


def _getter(names: tuple[str, ...]) -> Callable[[Record], Any]:
    """What reads these fields as a tuple; of one name alone `attrgetter` would make a plain value."""
    return attrgetter(*names) if len(names) > 1 else lambda record: tuple(getattr(record, name) for name in names)


def _owner_names(spec: RecordSpec) -> tuple[str, ...]:
    return tuple(name for name in OWNERS if name in spec.by_name)


@lru_cache(maxsize=4096)
def _owner_text(names: tuple[str, ...], values: tuple[str | None, ...]) -> str:
    owned = {name: (value,) for name, value in zip(names, values, strict=True) if value is not None}
    return " ".join(token for tokens in _owner_tokens(owned) for token in tokens)


def _owner_tokens(owned: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """For each owner the tokens that stand for it; an agent's name means something only inside a project."""
    for name, values in owned.items():
        if name != "agent":
            yield [_token(name, value) for value in values]
        elif "project_id" in owned:
            yield [_token(name, project, value) for project in owned["project_id"] for value in values]


@lru_cache(maxsize=4096)
def _token(*names: str) -> str:
    digest = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8)
    return _OWNER_MARK + digest.hexdigest()


def index_everything(connection: sqlite3.Connection) -> None:
    """Fill empty full-text tables from the records there are."""
    for spec in (cls.spec for cls in KINDS if cls.spec.text):
        owners = _owner_names(spec)
        columns = ", ".join(f'"{name}"' for name in (*spec.text, *owners))
        records = connection.execute(f'SELECT seq, {columns} FROM "{spec.table}"')
        last = 1 + len(spec.text)
        connection.executemany(
            f"INSERT INTO {spec.table}_fts (rowid, {', '.join((*spec.text, OWNER_COLUMN))}) "
            f"VALUES ({', '.join('?' * (last + 1))})",
            ((row[0], *_entry(row[1:last], owners, row[last:])) for row in records),
        )


# ---------------------------------------------------------------------- how it is asked


class WordSearch:
    """One question to the full-text table of a kind."""

    def __init__(self, tx: Reader, spec: RecordSpec, where: Predicate) -> None:
        statements = tx.dialect.kind(spec)
        self._tx = tx
        self._spec = spec
        self._table = statements.table.name
        self._fts = tx.dialect.schema.fts_table(spec)
        self._condition, self._values = statements.condition(where)
        self._counts: Remembered = tx.dialect.word_counts
        self._records, self._mean_length = self._totals()
        self._newest = tx.rows(f'SELECT coalesce(max(seq), 0) FROM "{self._table}"', {})[0][0]
        self._scope = _all_of(_any_of(tokens) for tokens in _owner_tokens(ranking.owners(where)))
        self._inside = self._records if not self._scope else self._counted(self._scope, _SMALL_SCOPE)
        # Asking for the owner inside the index pays while there are few entries of it to leap over.
        self._narrowed = bool(self._scope) and self._inside < _SMALL_SCOPE

    def matching(self, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """The keys of the records that match, with their scores, best first."""
        if not self._records:
            return []
        everywhere = {word: self._counted(_quoted(word), COUNTED) for word in words}
        inside = {word: self._counted_inside(word, everywhere[word]) for word in words}
        selection = ranking.select(inside, self._inside, may=lambda word: everywhere[word] <= _MOST_SCORABLE)
        if not selection.left_out:
            return [(key, score) for _, key, score in self._scored(selection.chosen, limit)]
        rescored = min(max(2 * limit, _FEWEST_RESCORED), _MOST_RESCORED)
        found = self._scored(selection.chosen, max(limit, rescored))
        scores = {seq: score for seq, _, score in found}
        for seq in self._newest_with(selection, inside, rescored - len(scores)):
            scores.setdefault(seq, _FAINT)
        weights = {word: idf(self._records, everywhere[word]) for word in selection.left_out}
        added = self._added(list(scores)[:rescored], weights)
        ranked = [(key, scores[seq] + added.get(seq, 0.0)) for seq, key in self._keys(scores)]
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))[:limit]

    # ------------------------------------------------------------------ counting

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many records the scope has, and how many of them have each word, about."""
        if not self._records:
            return 0, dict.fromkeys(words, 0)
        everywhere = {word: self._counted(_quoted(word), COUNTED) for word in words}
        if not self._narrowed:
            return self._records, everywhere
        return self._inside, {word: self._counted_inside(word, count) for word, count in everywhere.items()}

    def _totals(self) -> tuple[int, float]:
        """How many records the full-text table has, and how many terms each on average, as FTS5 keeps them itself."""
        rows = self._tx.rows(f"SELECT block FROM {self._fts}_data WHERE id = 1", {})
        records, *lengths = _varints(rows[0][0]) if rows and rows[0][0] else (0,)
        return records, sum(lengths) / max(records, 1)

    def _counted(self, expression: str, most: int) -> int:
        """How many entries an expression has; beyond `most` estimated by how far so many reached."""
        known = self._counts.get((self._fts, expression), self._records)
        if known is not None:
            return known
        sql = (
            f"SELECT count(*), max(rowid) FROM "
            f"(SELECT rowid FROM {self._fts} WHERE {self._fts} MATCH :question LIMIT :most)"
        )
        count, last = self._tx.rows(sql, {"question": expression, "most": most})[0]
        if count == most:
            count = max(count, round(count * self._newest / last))
        return self._counts.put((self._fts, expression), self._records, count)

    def _counted_inside(self, word: str, everywhere: int) -> int:
        """How many entries a word has in a small scope; where a word is rare everywhere that will do."""
        if not self._narrowed or everywhere <= ranking.BUDGET // 10:
            return everywhere
        return self._counted(f"{_quoted(word)} AND {self._scope}", COUNTED)

    # ------------------------------------------------------------------ looking up

    def _scored(self, words: Sequence[str], limit: int) -> list[tuple[int, str, float]]:
        """The records with any of the words, by FTS5's BM25; the owner's column weighs nothing.

        Looking a record up takes longer than scoring it, so only those with the highest scores are; where too many of
        them are outside the predicate, all.
        """
        if not words:
            return []
        question = _any_of(map(_quoted, words))
        if self._narrowed:
            question = f"{question} AND {self._scope}"
        elif _TRIED_PER_RESULT * self._inside < self._records:
            return self._scored_inside(question, limit)
        best = self._tx.rows(
            f"SELECT rowid, {self._bm25} AS score FROM {self._fts} WHERE {self._fts} MATCH :question "
            f"ORDER BY score DESC LIMIT :most",
            {"question": question, "most": _TRIED_PER_RESULT * limit},
        )
        if len(best) == _TRIED_PER_RESULT * limit:
            found = self._inside_of([(seq, score) for seq, score in best if score > best[-1][1]])
            return found[:limit] if len(found) >= limit else self._scored_inside(question, limit)
        return self._inside_of(best)[:limit]

    def _inside_of(self, scored: Sequence[tuple[int, float]]) -> list[tuple[int, str, float]]:
        """Those of the scored records that fulfil the predicate, best first, keys breaking ties."""
        scores = dict(scored)
        rows = self._tx.rows(
            f'SELECT "{self._table}".seq, "{self._table}"."{self._spec.key}" FROM json_each(:seqs) AS asked '
            f'CROSS JOIN "{self._table}" ON "{self._table}".seq = asked.value WHERE {self._condition}',
            {**self._values, "seqs": self._tx.dialect.encode(FieldType.STRINGS, list(scores))},
        )
        found = [(seq, key, scores[seq]) for seq, key in rows]
        return sorted(found, key=lambda hit: (-hit[2], hit[1]))

    def _scored_inside(self, question: str, limit: int) -> list[tuple[int, str, float]]:
        return self._tx.rows(
            f'SELECT "{self._table}".seq, "{self._table}"."{self._spec.key}", {self._bm25} AS score '
            # A cross join keeps SQLite from walking the records and asking the full-text table about each.
            f'FROM {self._fts} CROSS JOIN "{self._table}" ON "{self._table}".seq = {self._fts}.rowid '
            f"WHERE {self._fts} MATCH :question AND {self._condition} "
            f'ORDER BY score DESC, "{self._table}"."{self._spec.key}" LIMIT :most',
            {**self._values, "question": question, "most": limit},
        )

    @property
    def _bm25(self) -> str:
        weights = ", ".join(["1.0"] * len(self._spec.text))
        return f"-bm25({self._fts}, {weights}, 0.0)"

    def _newest_with(self, selection: Selection, counts: Mapping[str, int], wanted: int) -> list[int]:
        """The newest records with all of the words left out, then with the rarer half, then with one of them."""
        found: dict[int, None] = {}
        for group in ranking.conjunctions(selection.left_out):
            if len(found) >= wanted:
                break
            found.update(dict.fromkeys(self._newest_with_all(group, counts[group[0]], wanted)))
        return list(found)

    def _newest_with_all(self, words: Sequence[str], rarest: int, wanted: int) -> list[int]:
        """Only so far back as the rarest of the words has few enough entries: words that never meet cost no more."""
        question = _all_of((*map(_quoted, words), self._scope))
        reach = self._newest if rarest <= COUNTED else round(self._newest * COUNTED / rarest)
        rows = self._tx.rows(
            f"SELECT newest.seq FROM (SELECT rowid AS seq FROM {self._fts} WHERE {self._fts} MATCH :question "
            f"AND rowid > :oldest ORDER BY rowid DESC LIMIT {_LOOKED_AT}) AS newest "
            f'CROSS JOIN "{self._table}" ON "{self._table}".seq = newest.seq WHERE {self._condition} LIMIT :most',
            {**self._values, "question": question, "oldest": self._newest - reach, "most": wanted},
        )
        return [seq for (seq,) in rows]

    # ------------------------------------------------------------------ scoring what was left out

    def _added(self, seqs: Sequence[int], weights: Mapping[str, float]) -> dict[int, float]:
        """What further words add to the scores of records, counted in the beginning of their texts."""
        most = _RESCORED_CHARACTERS // max(len(seqs), 1) // len(self._spec.text)
        texts = ", ".join(f'substr("{name}", 1, {most})' for name in self._spec.text)
        rows = self._by_seq(f"seq, {texts}", seqs)
        return {seq: self._worth(" ".join(filter(None, parts)), weights) for seq, *parts in rows}

    def _worth(self, text: str, weights: Mapping[str, float]) -> float:
        found = terms(text)
        counts = Counter(word for word in found if word in weights)
        return sum(weights[word] * saturation(n, len(found), self._mean_length) for word, n in counts.items())

    def _keys(self, seqs: Iterable[int]) -> list[tuple[int, str]]:
        return self._by_seq(f'seq, "{self._spec.key}"', list(seqs))

    def _by_seq(self, columns: str, seqs: Sequence[int]) -> list[Any]:
        sql = f'SELECT {columns} FROM "{self._table}" WHERE seq IN (SELECT value FROM json_each(:seqs))'
        return self._tx.rows(sql, {"seqs": self._tx.dialect.encode(FieldType.STRINGS, seqs)})


def _quoted(word: str) -> str:
    """Terms hold letters and digits only, so that a quoted one leaves nothing for FTS5 to interpret."""
    return f'"{word}"'


def _any_of(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def _all_of(expressions: Iterable[str]) -> str:
    return " AND ".join(filter(None, expressions))


def _varints(block: bytes) -> list[int]:
    """The whole numbers in a record of FTS5: seven bits in each byte, the highest bit says that more follow."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers
