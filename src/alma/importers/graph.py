"""Entities and relations of other systems' graphs, as memories and the relationships between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from alma.importers.base import Found, Importer, ImportOptions, Item, RowRefused
from alma.importers.said import IMPORT, a_memory
from alma.memory.relationships import relationship_id
from alma.model.memory import MemoryRelationship
from alma.model.relations import stored_ends

_LONGEST = 64


def an_entity(
    importer: Importer, name: str, options: ImportOptions, kind: str | None = None, observations: Sequence[str] = ()
) -> Item:
    """A memory of something that has a name, with what was observed of it; only named, it gives way to more."""
    if not name.strip():
        raise RowRefused("the entity has no name")
    mentioned = kind is None and not observations
    content: dict[str, Any] = {"name": name, "entityType": kind, "observations": list(observations)}
    memory = a_memory(
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


def a_relation(importer: Importer, source: str, relation: str, target: str) -> Item:
    """How one entity stands to another."""
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
    """The relation's name as it is asked for here: words joined by underscores."""
    name = re.sub(r"\W+", "_", relation.lower()).strip("_")[:_LONGEST]
    if not name:
        raise RowRefused("the relation has no type")
    return name if name[0].isalpha() else f"is_{name}"[:_LONGEST]


def entity_items(
    importer: Importer, source: str, relation: str, target: str, options: ImportOptions
) -> Iterator[Found]:
    """Two entities that only their relation names, and the relation."""
    yield an_entity(importer, source, options)
    yield an_entity(importer, target, options)
    yield a_relation(importer, source, relation, target)
