"""Importers of memory systems: Mem0, JARVIS, contextual_memory_pc2 and the MCP memory server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, Rejected, Row, RowRefused
from alma.importers.records import (
    IMPORT,
    build_memory,
    entity_items,
    entity_memory,
    entries,
    first,
    json_object,
    mapping,
    maybe_named,
    mentioned_session,
    moment,
    named,
    relation_item,
    speaker_of,
    structured,
    tags,
    text_of,
    time_fields,
    time_of,
    turn_text,
    vector,
)
from alma.model.workspace import AgentState, Session, User

_TEXTS = ("memory", "data", "text", "content")


class Mem0(Importer):
    """Memories with user, agent, run, metadata, hash and times; relations become entities and relationships."""

    name = "mem0"
    key = "id"
    fields = frozenset(
        {"id", "memory", "hash", "metadata", "user_id", "agent_id", "run_id", "created_at", "updated_at"}
    )

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under in ("relations", "graph"):
            yield from self._relation(data, options)
            return
        if row.under is not None and not row.listed:
            data.setdefault("id", row.under)
        yield from self._memory({**_payload(data), **data}, options)

    def _memory(self, data: Mapping[str, Any], options: ImportOptions) -> Iterator[Found]:
        legacy_id = named("id", data.get("id"))
        created = moment("created_at", data.get("created_at"), options.zone)
        changed = moment("updated_at", data.get("updated_at"), options.zone)
        run = maybe_named("run_id", data.get("run_id"))
        metadata = json_object("metadata", data.get("metadata")) or {}
        details = {"system": self.name, **({"hash": data["hash"]} if data.get("hash") else {})}
        if run is not None:
            yield mentioned_session(run, options, self.name, created)
        memory = build_memory(
            options,
            system=self.name,
            id=self.derived_id(legacy_id),
            external_id=legacy_id[:200],
            user_id=maybe_named("user_id", data.get("user_id")),
            source_agent=maybe_named("agent_id", data.get("agent_id")),
            session_id=run,
            content=text_of(first(data, _TEXTS)),
            category=_category(metadata),
            tags=tags(data.get("categories")),
            context_json={IMPORT: details, **({"metadata": metadata} if metadata else {})},
            created_at=created,
            updated_at=changed or created,
            expires_at=moment("expiration_date", data.get("expiration_date"), options.zone),
        )
        embedding = vector(data.get("embedding") or data.get("vector"))
        model = options.embedding_model or self.name
        yield Item(memory, {} if embedding is None else {model: embedding}, changed_at=changed)

    def _relation(self, data: Mapping[str, Any], options: ImportOptions) -> Iterator[Found]:
        ends = first(data, ("source",)), first(data, ("target", "destination"))
        relation = first(data, ("relationship", "relation", "relation_type"))
        if None in (*ends, relation):
            raise RowRefused("a relation needs source, relationship and target")
        yield from entity_items(self, str(ends[0]), str(relation), str(ends[1]), options)


def _payload(data: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a row dumped from Mem0's vector store."""
    inside = data.get("payload")
    return dict(inside) if isinstance(inside, Mapping) else {}


def _category(metadata: Mapping[str, Any]) -> str | None:
    found = metadata.get("category")
    return found[:200] if isinstance(found, str) and found else None


class ContextualMemory(Importer):
    """context_id → the id of a memory; context_data → its content; embedding → its vector; the rest by name."""

    name = "contextual_memory_pc2"
    key = "context_id"
    fields = frozenset(
        {"context_id", "session_id", "context_data", "embedding", "created_at", "expires_at", "source_agent", "tags"}
    )

    def __init__(self) -> None:
        self._last: Item | None = None

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under is not None and not row.listed:
            data.setdefault("context_id", row.under)
        context_id = named("context_id", data.get("context_id"))
        content = json_object("context_data", data.get("context_data"))
        if not content:
            raise RowRefused("context_data is missing")
        session_id = maybe_named("session_id", data.get("session_id"))
        created = moment("created_at", data.get("created_at"), options.zone)
        memory = build_memory(
            options,
            system=self.name,
            id=context_id,
            external_id=context_id,
            session_id=session_id,
            memory_type=maybe_named("memory_type", data.get("memory_type")) or "context",
            content=text_of(content),
            content_json=content,
            source_agent=maybe_named("source_agent", data.get("source_agent")),
            user_id=maybe_named("user_id", data.get("user_id")),
            tags=tags(data.get("tags")),
            created_at=created,
            expires_at=moment("expires_at", data.get("expires_at"), options.zone),
            **_priority(data),
        )
        embedding = vector(data.get("embedding"))
        model = maybe_named("embedding_model", data.get("embedding_model")) or options.embedding_model or self.name
        if session_id is not None:
            yield self._session(session_id, options, created)
        yield Item(memory, {} if embedding is None else {model: embedding})

    def _session(self, session_id: str, options: ImportOptions, created: datetime | None) -> Item:
        """The session that a row names; rows of a session mostly follow each other, so the last one is cached."""
        if self._last is None or self._last.record.key != session_id:
            self._last = mentioned_session(session_id, options, self.name, created)
        return self._last


def _priority(data: Mapping[str, Any]) -> dict[str, Any]:
    return {} if data.get("priority") is None else {"priority": data["priority"]}


_KNOWN = ("user_id", "preferences", "entity_knowledge", "interaction_history", "skill_states")
_ENTITY_NAMES = ("entity", "name", "entity_name", "title", "subject", "id")
_SKILL_NAMES = ("agent_id", "skill", "skill_name", "skill_id", "name", "id")
_SKILL_STATES = ("state_data", "state", "data", "value")


class JarvisMemory(Importer):
    """user_id, preferences → a user; entity_knowledge, interaction_history → memories; skill_states → agent states."""

    name = "jarvis_memory_pc2"
    key = "user_id"
    fields = frozenset(_KNOWN)
    lists = frozenset({"entity_knowledge", "interaction_history", "skill_states"})

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under is not None and not row.listed:
            data.setdefault("user_id", row.under)
        user_id = named("user_id", data.get("user_id"))
        changed = moment("updated_at", data.get("updated_at"), options.zone)
        mention = not {*data} - {"user_id", *self.lists}
        yield Item(self._user(user_id, data, options, changed, mention), changed_at=changed, mention=mention)
        for field, made in (("entity_knowledge", self._entity), ("interaction_history", self._interaction)):
            for number, (key, entry) in enumerate(entries(field, data.get(field))):
                try:
                    yield made(user_id, number, key, entry, options)
                except (RowRefused, ValidationError) as exc:
                    yield Rejected(f"{row.where}, {field}[{key or number}]", user_id, str(exc))
        for number, (key, entry) in enumerate(entries("skill_states", data.get("skill_states"))):
            try:
                yield self._state(user_id, key, entry, options)
            except (RowRefused, ValidationError) as exc:
                yield Rejected(f"{row.where}, skill_states[{key or number}]", user_id, str(exc))

    def _user(
        self, user_id: str, data: Mapping[str, Any], options: ImportOptions, changed: datetime | None, mention: bool
    ) -> User:
        created = moment("created_at", data.get("created_at"), options.zone) or changed
        legacy = {name: value for name, value in data.items() if name not in (*_KNOWN, "created_at", "updated_at")}
        return User(
            id=user_id,
            username=str(data.get("username") or user_id),
            preferences_json=json_object("preferences", data.get("preferences")) or {},
            profile_json={
                IMPORT: {"system": self.name, **({"mentioned": True} if mention else {})},
                **({"legacy": legacy} if legacy else {}),
            },
            **time_fields(created, changed),
        )

    def _entity(self, user_id: str, number: int, key: str | None, entry: Any, options: ImportOptions) -> Item:
        inside = entry if isinstance(entry, Mapping) else {}
        name = str(key if key is not None else first(inside, _ENTITY_NAMES) or "")
        knowledge = {field: value for field, value in inside.items() if value != name} if inside else entry
        said = text_of(knowledge)
        return self._memory(
            options,
            user_id,
            ("entity", _own_id(inside) or _entity_id(name, key, said) or number),
            memory_type="entity",
            title=name,
            category=str(inside["type"])[:200] if inside.get("type") else None,
            content=said if not name or name in said else f"{name}: {said}" if said.strip() else name,
            content_json={**inside, "entity": name} if inside else {"entity": name, "text": said, "value": entry},
            created_at=time_of(inside, options.zone),
        )

    def _interaction(self, user_id: str, number: int, key: str | None, entry: Any, options: ImportOptions) -> Item:
        inside = entry if isinstance(entry, Mapping) else {}
        return self._memory(
            options,
            user_id,
            ("interaction", _own_id(inside) or key or number),
            speaker=speaker_of(inside),
            said_at=time_of(inside, options.zone),
            memory_type="interaction",
            content=turn_text(entry),
            content_json=dict(inside) if inside else {"text": entry},
        )

    def _memory(self, options: ImportOptions, user_id: str, legacy: tuple[str, object], **fields: Any) -> Item:
        part, name = legacy
        memory = build_memory(
            options,
            system=self.name,
            id=self.derived_id(user_id, part, name),
            external_id=f"{user_id}#{part}/{name}"[:200],
            user_id=user_id,
            **fields,
        )
        return Item(memory)

    def _state(self, user_id: str, key: str | None, entry: Any, options: ImportOptions) -> Item:
        """The state of a skill as an agent state; in a session of the user if another user's state exists already."""
        inside = entry if isinstance(entry, Mapping) else {}
        skill = key if key is not None else first(inside, _SKILL_NAMES)
        if skill is None:
            raise RowRefused("it names no skill")
        held = entry if key is not None else first(inside, _SKILL_STATES)
        if held is None:
            held = {field: value for field, value in inside.items() if field not in _SKILL_NAMES}
        changed = time_of({"at": inside.get("updated_at")}, options.zone) if inside else None
        own = Session(
            id=self.derived_id(user_id, "session"),
            user_id=user_id,
            name=f"{user_id} in {self.name}"[:200],
            session_type="import",
            is_active=False,
            context_json={IMPORT: {"system": self.name}},
        )
        state = AgentState(
            id=self.derived_id(user_id, "skill", skill),
            agent_id=str(skill),
            state_data=json_object("skill_states", held) or {},
            **time_fields(changed),
        )
        return Item(state, changed_at=changed, instead=(own, state.replace(session_id=own.id)))


def _entity_id(name: str, key: str | None, said: str) -> str:
    """What identifies an entity: its name if it is a key, otherwise name and text."""
    if not name or key is not None:
        return name
    return f"{name}/{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _own_id(entry: Mapping[str, Any]) -> object:
    return first(entry, ("id", "entity_id", "interaction_id"))


_UNDER = {"entities": "entity", "relations": "relation"}


class McpMemory(Importer):
    """Entities become memories with their observations, and relations become relationships."""

    name = "mcp-memory"
    fields = frozenset({"type", "name", "entityType", "observations", "from", "to", "relationType"})
    # A relation may come before its entities.
    stages = ("entity", "relation")

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        what = data.get("type") or _UNDER.get(row.under or "")
        if what not in _UNDER.values():
            if stage == self.stages[0]:
                raise RowRefused(f"it is neither an entity nor a relation but {what!r}")
            return
        if what != stage:
            return
        if what == "entity":
            observations = [text_of(each) for each in _listed(data, "observations")]
            kind = data.get("entityType")
            yield entity_memory(
                self, str(data.get("name") or ""), options, str(kind) if kind else "entity", observations
            )
        else:
            ends = [data.get(name) for name in ("from", "relationType", "to")]
            if any(not isinstance(end, str) or not end for end in ends):
                raise RowRefused("a relation needs from, relationType and to")
            yield relation_item(self, str(ends[0]), str(ends[1]), str(ends[2]))


def _listed(data: Mapping[str, Any], name: str) -> list[Any]:
    found = structured(name, data.get(name))
    if found is None:
        return []
    if not isinstance(found, list):
        raise RowRefused(f"{name} must be a list")
    return found
