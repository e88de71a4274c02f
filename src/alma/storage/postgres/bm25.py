"""BM25 in SQL for PostgreSQL, with term frequencies derived from ts_rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from alma.storage.postgres.fulltext import quoted
from alma.storage.postgres.types import Floats
from alma.storage.ranking import K1, Pair, rarity_in_sql

# Sizes of prepared statements: queries are padded to the next size, so that few statements are prepared.
ROOM = (0, 12, 24, 48, 96)
# ts_rank of one word that occurs n times is (1 + 1/4 + … + 1/n²) divided by the limit of that sum. The difference to
# the limit gives n: about 1 / difference - 0.52.
_SUM = 1.64493406685


@cache
def score(room: int) -> str:
    """The sum of the weights of the words in a record."""
    return " + ".join(map(_worth_if_there, range(room))) or "0.0::float8"


@cache
def having_each(room: int) -> str:
    """The number of records with each of the words."""
    return ", ".join(f"count(*) FILTER (WHERE search @@ word{i}) AS met{i}" for i in range(room))


@cache
def weighed(room: int) -> str:
    """The words of the query with their weights and document counts among the records found."""
    each = range(room)
    words, met = (", ".join(f"{name}{i}" for i in each) for name in ("word", "met"))
    counted = f"SELECT {having_each(room)} FROM found CROSS JOIN {asked(room)}"
    weights = ", ".join(f"{rarity_in_sql('%(records)s::float8', f'met{i}')} * {K1 + 1} AS weight{i}" for i in each)
    return (
        f"SELECT {words}, {weights}, concat_ws(',', {met}) AS met "
        f"FROM ({counted} OFFSET 0) AS counted CROSS JOIN {asked(room)}"
    )


def _worth_if_there(place: int) -> str:
    """The weight of a word in a record; 0 if the record does not contain it."""
    return f"CASE WHEN search @@ word{place} THEN {worth(f'weight{place}', f'word{place}', 'norm')} ELSE 0 END"


def weighted(name: str, *further: str) -> str:
    """Words with their weights and further numbers, as rows."""
    lists = hidden(name), *(hidden(f"{name}_{each}", "float8[]") for each in ("weight", *further))
    return f"unnest({', '.join(lists)}) AS asked({', '.join(('word', 'weight', *further))})"


def weighing(
    name: str, words: Sequence[str], weights: Mapping[str, float], pairs: Sequence[Pair] = ()
) -> dict[str, Any]:
    """The parameters of `weighted`.

    Pairs of words follow the words. Their weight is 0, and their promise is the weight of their words that are not in
    the list.
    """
    listed = set(words)
    promises = (sum(weights[word] for word in pair if word not in listed) for pair in pairs)
    return {
        name: [*map(quoted, words), *map(all_of, pairs)],
        f"{name}_weight": Floats([*(weights[word] * (K1 + 1) for word in words), *(0.0 for _ in pairs)]),
        f"{name}_promise": Floats([*(0.0 for _ in words), *(promise * (K1 + 1) for promise in promises)]),
    }


@cache
def asked(room: int) -> str:
    """The words of the query and their weights as columns of one row, padded with NULL.

    They are bound as two arrays, so that the statement is the same for every query.
    """
    each = (f"words[{i + 1}] AS word{i}, worth[{i + 1}] AS weight{i}" for i in range(room))
    given = "SELECT %(words)s::text[]::tsquery[] AS words, %(worth)s::float8[] AS worth OFFSET 0"
    return f"(SELECT {', '.join(each)} FROM ({given}) AS given OFFSET 0) AS asked"


def worth(weight: str, word: str, norm: str) -> str:
    """The BM25 weight of a word in a record, with the term frequency derived from ts_rank."""
    missing = f"{_SUM}::float8 - {_SUM}::float8 * ts_rank('{{1,1,1,1}}', search, {word})"
    # Casts to float8 keep the server from computing with numeric, which takes ten times as long. The rank of a pair of
    # words is not a frequency; `greatest` keeps the result above zero.
    often = f"greatest(round(1::float8 / greatest({missing}, 1e-6::float8) - 0.52::float8), 1::float8)"
    return f"{weight} / (1::float8 + {norm} / {often})"


def hidden(name: str, kind: str = "text[]::tsquery[]") -> str:
    """An array parameter whose length is hidden from the planner, which would otherwise replan for every length."""
    return f"(SELECT %({name})s::{kind})"


def room_for(words: Collection[str]) -> int:
    return next((room for room in ROOM if room >= len(words)), len(words))


def any_of(words: Sequence[str]) -> str:
    return " | ".join(map(quoted, words))


def all_of(words: Sequence[str]) -> str:
    return " & ".join(map(quoted, words))
