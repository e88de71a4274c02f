"""Memories for a hook without a resident process: read from an SQLite store by words, without any model.

It imports no store: that takes half a second, and a hook has a tenth. What it reads is read-only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from alma import tokens
from alma.hooks.hosts import START, Event
from alma.hooks.places import DEFAULT_PROJECT, Place
from alma.hooks.texts import BLOCK_TOKENS, TASK_TOKENS
from alma.model.injection import Block, Shown, block_of
from alma.model.learning import DEMOTED, IS_DEMOTED, AntiPattern, DomainKnowledge, Heuristic, UserPreference
from alma.model.memory import INSTRUCTION_TYPES, Memory
from alma.model.record import Record
from alma.model.slice import ESTABLISHED_CONFIDENCE, ESTABLISHED_OUTCOMES, MemorySlice
from alma.text.tokens import terms

T = TypeVar("T", bound=Record)

_WAIT_SECONDS = 0.03
_LEAST_SHARED_WORDS = 2
_MOST_WORDS = 24
_MOST_PREFERENCES, _MOST_LESSONS, _MOST_WARNINGS, _MOST_FOUND = 20, 8, 5, 4
_FIELDS: Mapping[type[Record], str] = {
    Heuristic: "id, agent, project_id, condition, strategy, confidence, occurrence_count, success_count",
    AntiPattern: "id, agent, project_id, pattern, why_bad, better_alternative, occurrence_count",
    UserPreference: "id, user_id, category, preference, confidence",
    DomainKnowledge: "id, agent, project_id, domain, fact, confidence",
    Memory: "id, user_id, project_id, title, content, memory_type, event_time, created_at",
}
_ALIVE = (
    "is_active = 1 AND is_archived = 0 AND is_private = 0 AND (expires_at IS NULL OR expires_at > :now) "
    "AND (layer_session = 0 OR layer_project = 1 OR layer_global = 1)"
)
_DEMOTABLE = {Heuristic.spec.table, DomainKnowledge.spec.table}
_IN_USE = f"json_extract({{table}}.metadata, '$.{DEMOTED}.{IS_DEMOTED}') IS NOT 1"
_CURRENT = (
    "NOT EXISTS (SELECT 1 FROM memory_relationships AS newer "
    "WHERE newer.to_memory_id = {table}.id AND newer.relationship_type = 'supersedes')"
)


def found_offline(place: Place, event: Event, agent: str, user: str | None, shown: Shown) -> Block | None:
    """The answer to an event of a session; None if the store is not a readable SQLite file."""
    where = _file_and_project(place)
    if where is None or not where[0].is_file():
        return None
    # Loading the vocabularies takes longer than everything else.
    tokens.use_estimates()
    connection = sqlite3.connect(f"{where[0].as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
    try:
        reader = _Reader(connection, where[1], agent, user)
        if event.act == START:
            return block_of(reader.block(), shown, BLOCK_TOKENS)
        return block_of(reader.matching(event.prompt), shown, TASK_TOKENS)
    finally:
        connection.close()


class _Reader:
    """Reads the memories of an agent in a project."""

    def __init__(self, connection: sqlite3.Connection, project: str, agent: str, user: str | None) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        now = datetime.now(UTC).isoformat()
        self._values = {
            "project": project,
            "agent": agent,
            "user": user,
            "now": now,
            "confidence": ESTABLISHED_CONFIDENCE,
            "outcomes": ESTABLISHED_OUTCOMES,
        }

    def block(self) -> MemorySlice:
        """The stable part of a session: preferences, standing instructions, established lessons."""
        own = "agent = :agent AND project_id = :project"
        types = ", ".join(f"'{each}'" for each in INSTRUCTION_TYPES)
        warnings = self._read(
            AntiPattern, f"{own} AND occurrence_count >= :outcomes ORDER BY last_seen DESC", _MOST_WARNINGS
        )
        strong = f"{own} AND {_current('heuristics')} AND confidence >= :confidence AND occurrence_count >= :outcomes"
        lessons = self._read(Heuristic, f"{strong} ORDER BY confidence DESC, id", _MOST_LESSONS)
        in_force = f"project_id = :project AND {_ALIVE} AND memory_type IN ({types})"
        return MemorySlice(
            heuristics=lessons,
            anti_patterns=warnings,
            preferences=self._read(
                UserPreference,
                f"user_id = :user AND {_current('preferences')} ORDER BY timestamp DESC",
                _MOST_PREFERENCES,
            ),
            instructions=self._read(
                Memory, f"{in_force} AND {_current('memories')} ORDER BY created_at DESC", _MOST_PREFERENCES
            ),
        )

    def matching(self, prompt: str) -> MemorySlice:
        """The records that share words with a prompt."""
        asked = list(dict.fromkeys(terms(prompt)))[:_MOST_WORDS]
        own = "agent = :agent AND project_id = :project"
        memories = f"project_id = :project AND {_ALIVE}"
        return MemorySlice(
            query=prompt,
            heuristics=self._like(Heuristic, own, asked),
            anti_patterns=self._like(AntiPattern, own, asked),
            domain_knowledge=self._like(DomainKnowledge, own, asked),
            memories=self._like(Memory, memories, asked),
        )

    def _read(self, cls: type[T], where: str, most: int) -> list[T]:
        rows = self._connection.execute(
            f"SELECT {_FIELDS[cls]} FROM {cls.spec.table} WHERE {where} LIMIT {most}", self._values
        )
        return [_record(cls, row) for row in rows]

    def _like(self, cls: type[T], where: str, asked: Sequence[str]) -> list[T]:
        """The records that share the most distinctive words with a prompt, best first."""
        if not asked:
            return []
        table = cls.spec.table
        fields = ", ".join(f"{table}.{name}" for name in _FIELDS[cls].split(", "))
        words = " OR ".join(f'"{word}"' for word in asked if '"' not in word)
        current = _current(table)
        rows = self._connection.execute(
            f"SELECT {fields} FROM {table}_fts JOIN {table} ON {table}.seq = {table}_fts.rowid "
            f"WHERE {table}_fts MATCH :words AND {where} AND {current} ORDER BY bm25({table}_fts) LIMIT {_MOST_FOUND}",
            {**self._values, "words": words},
        )
        records = [_record(cls, row) for row in rows]
        least = min(_LEAST_SHARED_WORDS, len(asked))
        return [each for each in records if len(set(asked).intersection(_words(each))) >= least]


def _current(table: str) -> str:
    """The condition that a record of a table was not superseded, and not demoted."""
    current = _CURRENT.format(table=table)
    return f"{current} AND {_IN_USE.format(table=table)}" if table in _DEMOTABLE else current


def _words(record: Record) -> Iterable[str]:
    return terms(" ".join(str(getattr(record, name) or "") for name in record.spec.text))


def _record(cls: type[T], row: sqlite3.Row) -> T:
    values: dict[str, Any] = dict(row)
    for name in ("created_at", "event_time"):
        if isinstance(values.get(name), str):
            values[name] = datetime.fromisoformat(values[name])
    return cls(**values)


def _file_and_project(place: Place) -> tuple[Path, str] | None:
    if place.store is not None:
        return None if "://" in place.store else (Path(place.store), place.project or DEFAULT_PROJECT)
    assert place.config is not None
    found = _configured(Path(place.config))
    return None if found is None else (found[0], place.project or found[1])


def _configured(file: Path) -> tuple[Path, str] | None:
    """The SQLite file and the project of a configuration; None where only the loader can tell."""
    import yaml

    loaded = yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    held = loaded.get("alma", loaded) if isinstance(loaded, dict) else {}
    values = [held.get("storage_dir", ".alma"), held.get("db_name", "alma.db"), held.get("project_id", DEFAULT_PROJECT)]
    if held.get("storage", "sqlite") != "sqlite" or any("${" in str(value) for value in values):
        return None
    root = file.parent.parent if file.parent.name == ".alma" else file.parent
    return root / str(values[0]) / str(values[1]), str(values[2])
