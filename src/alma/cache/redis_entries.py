"""The form of a record on a Redis server: its documents, and its places in lists, sets and arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from alma.cache.keys import (
    ACTIVE_SESSION,
    INCOMING,
    LAYER_CONFIG,
    MEMORY,
    OUTGOING,
    PROJECT_ACTIVE,
    PROJECT_CONTEXT,
    PROJECT_PATTERNS,
    SESSION_CONTEXT,
    USER_PREFERENCES,
    USER_PROJECTS,
    USER_RECENT,
    WORKING_MEMORY,
    Pattern,
)
from alma.model.governance import Setting
from alma.model.learning import UserPreference
from alma.model.memory import Layer, Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.workspace import Project, Session, SessionMemory, User
from alma.storage.document import to_document

# Reads are counted without a change of the record.
_COUNTED = ("access_count", "last_accessed_at")


@dataclass(frozen=True, slots=True)
class Document:
    """A record as the value of a key; gone at `until`, if that is before the time to live ends."""

    pattern: Pattern
    parts: tuple[str, ...]
    text: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A record's part of the value of a key that several records share; higher scores come first."""

    pattern: Pattern
    parts: tuple[str, ...]
    member: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything a record is on the server."""

    documents: tuple[Document, ...] = ()
    places: tuple[Place, ...] = ()
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        parts: list[list[Any]] = [[each.pattern.template, each.parts, each.text] for each in self.documents]
        parts += [[each.pattern.template, each.parts, each.member, each.score] for each in self.places]
        object.__setattr__(self, "digest", sha256(json.dumps(parts).encode()).hexdigest()[:32])


def entry_of(record: Record) -> Entry:
    """The entry of a record of a projected kind; a deleted memory has neither documents nor places."""
    parts = list(_CONTENTS[type(record)](record))
    return Entry(
        tuple(each for each in parts if isinstance(each, Document)),
        tuple(each for each in parts if isinstance(each, Place)),
    )


Content = Iterator[Document | Place]


def _memory(memory: Memory) -> Content:
    if not memory.is_active:
        return
    yield Document(MEMORY, (memory.id,), _json(memory, _COUNTED), memory.expires_at)
    if memory.is_archived:
        return
    written = memory.created_at.timestamp()
    if memory.user_id is not None:
        yield Place(USER_RECENT, (memory.user_id,), memory.id, written)
    if memory.project_id is not None and not memory.is_private:
        yield Place(PROJECT_ACTIVE, (memory.project_id,), memory.id, written)


def _relationship(edge: MemoryRelationship) -> Content:
    yield Place(OUTGOING, (edge.from_memory_id,), edge.to_memory_id, edge.strength)
    yield Place(INCOMING, (edge.to_memory_id,), edge.from_memory_id, edge.strength)


def _session(session: Session) -> Content:
    yield Document(SESSION_CONTEXT, (session.id,), _json(session))
    if session.user_id is not None and session.is_active and session.ended_at is None:
        yield Place(ACTIVE_SESSION, (session.user_id,), session.id, session.last_active_at.timestamp())


def _session_memory(place: SessionMemory) -> Content:
    if place.working_memory:
        yield Place(WORKING_MEMORY, (place.session_id,), place.memory_id, -(place.position_in_session or 0))


def _project(project: Project) -> Content:
    yield Document(PROJECT_CONTEXT, (project.id,), _json(project))
    if project.is_active:
        yield Place(USER_PROJECTS, (project.user_id,), project.id, project.last_accessed_at.timestamp())


def _pattern(pattern: ProjectPattern) -> Content:
    yield Place(PROJECT_PATTERNS, (pattern.project_id,), _json(pattern), pattern.success_rate)


def _user(user: User) -> Content:
    profile = {"kind": "profile", "preferences": user.preferences_json}
    yield Place(USER_PREFERENCES, (user.id,), _text(profile), 2.0)


def _preference(preference: UserPreference) -> Content:
    learned = {"kind": "preference", **to_document(preference, ("embedding",))}
    yield Place(USER_PREFERENCES, (preference.user_id,), _text(learned), preference.confidence)


def _setting(setting: Setting) -> Content:
    layers: Iterable[Layer] = (Layer.SESSION,) if setting.key == "max_memories_per_session" else Layer
    for layer in layers:
        yield Place(LAYER_CONFIG, (str(layer),), _json(setting))


def _json(record: Record, without: Iterable[str] = ()) -> str:
    return _text(to_document(record, (*without, record.spec.vector_field or "")))


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


_CONTENTS: dict[type[Record], Callable[[Any], Content]] = {
    Memory: _memory,
    MemoryRelationship: _relationship,
    Session: _session,
    SessionMemory: _session_memory,
    Project: _project,
    ProjectPattern: _pattern,
    User: _user,
    UserPreference: _preference,
    Setting: _setting,
}
PROJECTED: tuple[type[Record], ...] = tuple(_CONTENTS)
"""The kinds that have entries."""
