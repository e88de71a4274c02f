"""Build records from imported data: memories, conversation turns, sessions, entities and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from alma.importers.base import Found, Importer, ImportOptions, Item, RowRefused
from alma.memory.relationships import relationship_id
from alma.model.memory import Memory, MemoryRelationship
from alma.model.record import Record
from alma.model.relations import stored_ends
from alma.model.workspace import Session

IMPORT = "import"
"""The context key of a record's origin."""


def owner_fields(options: ImportOptions, **fields: Any) -> dict[str, Any]:
    """The fields for owner and layers: visible in the project, or wherever its user is."""
    user = fields.pop("user_id", None) or options.user_id
    agent = fields.pop("source_agent", None) or options.agent
    project = fields.pop("project_id", None) or options.project_id
    return {
        **fields,
        "user_id": user,
        "project_id": project,
        "source_agent": agent,
        "layer_session": fields.get("session_id") is not None,
        "layer_project": project is not None,
        "layer_global": project is None and user is not None,
    }


def build_memory(
    options: ImportOptions, *, system: str, speaker: str = "", said_at: datetime | None = None, **fields: Any
) -> Memory:
    """A memory with the source's times; `said_at` makes it a conversation turn."""
    if not str(fields.get("content", "")).strip():
        raise RowRefused("it has no text")
    fields = {name: value for name, value in fields.items() if value is not None}
    created = fields.pop("created_at", None) or said_at
    if created is not None:
        fields = {"updated_at": created, "last_accessed_at": created, **fields, "created_at": created}
    known = owner_fields(options, **fields)
    known = {"source_tool": system, **known}
    if speaker or said_at is not None:
        return Memory.said(speaker, known.pop("content"), said_at, **known)
    return Memory(**known)


def time_fields(created: datetime | None, changed: datetime | None = None, *, active: bool = False) -> dict[str, Any]:
    """The fields for creation and change times, if the source has them."""
    if created is None:
        return {}
    last = changed or created
    return {"created_at": created, "updated_at": last, **({"last_active_at": last} if active else {})}


def mentioned_session(session_id: str, options: ImportOptions, system: str, created: datetime | None) -> Item:
    """A session that a row only names."""
    session = Session(
        id=session_id,
        user_id=options.user_id,
        project_id=options.project_id,
        context_json={IMPORT: {"system": system, "mentioned": True}},
        **time_fields(created, active=True),
    )
    return Item(session, mention=True)


def is_mention(record: Record) -> bool:
    """Whether a record was only mentioned by some row."""
    context = record.values().get("context_json") or record.values().get("profile_json")
    known = context.get(IMPORT) if isinstance(context, dict) else None
    return isinstance(known, dict) and bool(known.get("mentioned"))


_LONGEST = 64


def entity_memory(
    importer: Importer, name: str, options: ImportOptions, kind: str | None = None, observations: Sequence[str] = ()
) -> Item:
    """A memory of an entity with its observations; an entity that is only named gives way to one with data."""
    if not name.strip():
        raise RowRefused("the entity has no name")
    mentioned = kind is None and not observations
    content: dict[str, Any] = {"name": name, "entityType": kind, "observations": list(observations)}
    memory = build_memory(
        options,
        system=importer.name,
        id=entity_id(importer, name),
        external_id=name[:200],
        title=name,
        memory_type="entity",
        category=kind[:200] if kind else None,
        content="\n".join(text for text in observations if text.strip()) or name,
        content_json=content,
        context_json={IMPORT: {"system": importer.name, **({"mentioned": True} if mentioned else {})}},
    )
    return Item(memory, mention=mentioned)


def entity_id(importer: Importer, name: str) -> str:
    """The id of the memory of an entity."""
    return importer.derived_id("entity", name)


def relation_item(importer: Importer, source: str, relation: str, target: str) -> Item:
    """A relationship between two entities."""
    if source == target:
        raise RowRefused(f"it relates {source!r} to itself")
    names = {entity_id(importer, name): name for name in (source, target)}
    ends = stored_ends(_spelled(relation), *names)
    return Item(
        MemoryRelationship(
            id=relationship_id(ends),
            from_memory_id=ends.from_id,
            to_memory_id=ends.to_id,
            relationship_type=ends.relation,
            metadata={
                "system": importer.name,
                "from": names[ends.from_id],
                "to": names[ends.to_id],
                "relation": relation,
            },
        )
    )


def _spelled(relation: str) -> str:
    """A relation name as used in ALMA: words joined by underscores."""
    name = re.sub(r"\W+", "_", relation.lower()).strip("_")[:_LONGEST]
    if not name:
        raise RowRefused("the relation has no type")
    return name if name[0].isalpha() else f"is_{name}"[:_LONGEST]


def entity_items(
    importer: Importer, source: str, relation: str, target: str, options: ImportOptions
) -> Iterator[Found]:
    """A relation with its two entities, which nothing else describes."""
    yield entity_memory(importer, source, options)
    yield entity_memory(importer, target, options)
    yield relation_item(importer, source, relation, target)
