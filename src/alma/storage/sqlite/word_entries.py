"""What the full-text tables of SQLite hold: the terms of each record's texts, and whose it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from alma.model.kinds import KINDS, kind_named
from alma.model.record import Record, RecordSpec, reading
from alma.storage.ranking import OWNERS
from alma.text.tokens import spaced_terms

OWNER_COLUMN = "scope"
# No term has this character, so that an owner is never found as a word.
_OWNER_MARK = "\u00b7"
_LONGEST_REMEMBERED = 500
_BATCH = 1_000


def entries(spec: RecordSpec, records: Sequence[Record]) -> list[Sequence[str]]:
    """The columns of a full-text table: the terms of each searchable field of the records, and whose they are."""
    texts, owners = _readers(spec.kind)
    if len(records) == 1:
        owner = _owner_text(_owner_names(spec), owners(records[0]))
        return [*((_terms_again(text),) for text in texts(records[0])), (owner,)]
    return _entries(spec, map(texts, records), map(owners, records))


def same_entries(old: Record, new: Record) -> bool:
    """Whether two records of a kind say the same in every searchable field and belong to the same."""
    texts, owners = _readers(old.spec.kind)
    return bool(texts(old) == texts(new) and owners(old) == owners(new))


def _entries(
    spec: RecordSpec, texts: Iterable[Sequence[str | None]], owners: Iterable[Sequence[str | None]]
) -> list[Sequence[str]]:
    names = _owner_names(spec)
    columns = list(zip(*texts, strict=True)) or [()] * len(spec.text)
    return [
        *([spaced_terms(text or "") for text in column] for column in columns),
        [_owner_text(names, tuple(values)) for values in owners],
    ]


def _terms_again(text: str | None) -> str:
    """The terms of a text; who writes one record after another says much of it again."""
    if not text:
        return ""
    return _remembered_terms(text) if len(text) <= _LONGEST_REMEMBERED else spaced_terms(text)


_remembered_terms = lru_cache(maxsize=4096)(spaced_terms)


@cache
def _readers(kind: str) -> tuple[Callable[[Record], Any], Callable[[Record], Any]]:
    """What reads the searchable texts and the owners of a kind's records."""
    spec = kind_named(kind).spec
    return reading(spec.text), reading(_owner_names(spec))


@cache
def _owner_names(spec: RecordSpec) -> tuple[str, ...]:
    return tuple(name for name in OWNERS if name in spec.by_name)


@lru_cache(maxsize=4096)
def _owner_text(names: tuple[str, ...], values: tuple[str | None, ...]) -> str:
    owned = {name: (value,) for name, value in zip(names, values, strict=True) if value is not None}
    return " ".join(token for tokens in owner_tokens(owned).values() for token in tokens)


def owner_tokens(owned: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The tokens that stand for each owner; an agent's name means something only inside a project."""
    tokens = {name: [_token(name, value) for value in values] for name, values in owned.items() if name != "agent"}
    if "agent" in owned and "project_id" in owned:
        agents = ((project, agent) for project in owned["project_id"] for agent in owned["agent"])
        tokens["agent"] = [_token("agent", *each) for each in agents]
    return tokens


@lru_cache(maxsize=4096)
def _token(*names: str) -> str:
    digest = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8)
    return _OWNER_MARK + digest.hexdigest()


def index_everything(connection: sqlite3.Connection) -> None:
    """Fill empty full-text tables from the records there are."""
    index_all_of(connection, [cls.spec for cls in KINDS if cls.spec.text])


def index_all_of(connection: sqlite3.Connection, specs: Iterable[RecordSpec]) -> None:
    """Fill the empty full-text tables of these kinds."""
    for spec in specs:
        last = 1 + len(spec.text)
        for rows in _stored(connection, spec):
            words = _entries(spec, (row[1:last] for row in rows), (row[last:] for row in rows))
            connection.executemany(_indexing(spec), zip((row[0] for row in rows), *words, strict=True))


def _stored(connection: sqlite3.Connection, spec: RecordSpec) -> Iterator[list[Any]]:
    """Where each record stands, its searchable texts and its owners, many at once."""
    columns = ", ".join(f'"{name}"' for name in (*spec.text, *_owner_names(spec)))
    records = connection.execute(f'SELECT seq, {columns} FROM "{spec.table}"')
    while rows := records.fetchmany(_BATCH):
        yield rows


def _indexing(spec: RecordSpec) -> str:
    names = ", ".join((*spec.text, OWNER_COLUMN))
    return f"INSERT INTO {spec.table}_fts (rowid, {names}) VALUES ({', '.join('?' * (2 + len(spec.text)))})"
