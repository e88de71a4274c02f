"""jarvis_memory_pc2: a row is a user with preferences, entity knowledge, interactions and skill states."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, Rejected, Row, RowRefused
from alma.importers.records import IMPORT, build_memory, time_fields
from alma.importers.values import (
    entries,
    first,
    json_object,
    mapping,
    moment,
    named,
    speaker_of,
    text_of,
    time_of,
    turn_text,
)
from alma.model.workspace import AgentState, Session, User

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
