"""BM25 in SQL for PostgreSQL, computed from the server's own rank of each word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from alma.storage.postgres.fulltext import quoted
from alma.storage.postgres.types import Floats
from alma.storage.ranking import K1, Pair, rarity_in_sql

# A statement has room for so many words, so that the server knows it already whatever the number of words.
ROOM = (0, 12, 24, 48, 96)
# The server's rank of one word that occurs n times is 1 + 1/4 + … + 1/n², divided by what that sum tends to; from how
# much is missing, n follows: it is nearly 1 / missing - 0.52.
_SUM = 1.64493406685


@cache
def score(room: int) -> str:
    """The sum of the weights of the words that a record has."""
    return " + ".join(map(_worth_if_there, range(room))) or "0.0::float8"


@cache
def having_each(room: int) -> str:
    """How many records have each of the words."""
    return ", ".join(f"count(*) FILTER (WHERE search @@ word{i}) AS met{i}" for i in range(room))


@cache
def weighed(room: int) -> str:
    """The words of the query, the weight of each by how many of the found records have it, and that number."""
    each = range(room)
    words, met = (", ".join(f"{name}{i}" for i in each) for name in ("word", "met"))
    counted = f"SELECT {having_each(room)} FROM found CROSS JOIN {asked(room)}"
    weights = ", ".join(f"{rarity_in_sql('%(records)s::float8', f'met{i}')} * {K1 + 1} AS weight{i}" for i in each)
    return (
        f"SELECT {words}, {weights}, concat_ws(',', {met}) AS met "
        f"FROM ({counted} OFFSET 0) AS counted CROSS JOIN {asked(room)}"
    )


def _worth_if_there(place: int) -> str:
    """The weight of the word at a place in a record, 0 where the record lacks it."""
    return f"CASE WHEN search @@ word{place} THEN {worth(f'weight{place}', f'word{place}', 'norm')} ELSE 0 END"


def weighted(name: str, *further: str) -> str:
    """A list of words with their weights, as rows; and further numbers about them."""
    lists = hidden(name), *(hidden(f"{name}_{each}", "float8[]") for each in ("weight", *further))
    return f"unnest({', '.join(lists)}) AS asked({', '.join(('word', 'weight', *further))})"


def weighing(
    name: str, words: Sequence[str], weights: Mapping[str, float], pairs: Sequence[Pair] = ()
) -> dict[str, Any]:
    """The values of such a list.

    Pairs of words behind them are worth nothing by themselves, but promise what those of their words are worth that are
    not in the list.
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
    """The words of the query and the weight of each, as columns of one row, NULL in the rest of the room.

    They are bound as two lists, so that the server knows the statement already, and neither list is read twice.
    """
    each = (f"words[{i + 1}] AS word{i}, worth[{i + 1}] AS weight{i}" for i in range(room))
    given = "SELECT %(words)s::text[]::tsquery[] AS words, %(worth)s::float8[] AS worth OFFSET 0"
    return f"(SELECT {', '.join(each)} FROM ({given}) AS given OFFSET 0) AS asked"


def worth(weight: str, word: str, norm: str) -> str:
    """The weight of a word in a record: BM25's saturation, with the frequency derived from the server's rank."""
    missing = f"{_SUM}::float8 - {_SUM}::float8 * ts_rank('{{1,1,1,1}}', search, {word})"
    # Every number is said to be one of the machine's; the server would reckon with decimals, ten times as long.
    # Of two words together the rank says something else, which must not be taken for none.
    often = f"greatest(round(1::float8 / greatest({missing}, 1e-6::float8) - 0.52::float8), 1::float8)"
    return f"{weight} / (1::float8 + {norm} / {often})"


def hidden(name: str, kind: str = "text[]::tsquery[]") -> str:
    """A list whose length the planner does not see: it would take that for a reason to plan anew every time."""
    return f"(SELECT %({name})s::{kind})"


def room_for(words: Collection[str]) -> int:
    return next((room for room in ROOM if room >= len(words)), len(words))


def any_of(words: Sequence[str]) -> str:
    return " | ".join(map(quoted, words))


def all_of(words: Sequence[str]) -> str:
    return " & ".join(map(quoted, words))
