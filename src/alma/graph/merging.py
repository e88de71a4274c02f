"""Merging, ranking by name and masking of secrets, shared by the graph stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from alma.errors import ValidationError
from alma.graph.base import Entity, Relationship, name_key
from alma.redaction.nested import Masked, Redacted, redacted_value
from alma.redaction.redactor import DEFAULT_REDACTOR
from alma.text.tokens import query_terms, terms

Redact = Callable[[str, str], str]
"""Masks secrets in a text; the second argument is the name of the field."""

Kept = TypeVar("Kept", Entity, Relationship)


def masked(text: str, name: str) -> str:
    """Mask secrets as ingest does by default."""
    return DEFAULT_REDACTOR.redact(text, name).text


def merged_entity(kept: Entity, added: Entity) -> Entity:
    """The stored entity with the properties of the added one."""
    return replace(kept, properties={**kept.properties, **added.properties})


def merged_relationship(kept: Relationship, added: Relationship) -> Relationship:
    """The stored relationship with the properties and the higher confidence."""
    united = {**kept.properties, **added.properties}
    return replace(kept, properties=united, confidence=max(kept.confidence, added.confidence))


def entity_order(entity: Entity) -> tuple[str, str]:
    """By name, then by id."""
    return name_key(entity.name), entity.id


def without_secrets(value: Kept, redact: Redact | None) -> Kept:
    """The entity or relationship with its secrets masked."""
    if not isinstance(value, Entity | Relationship):
        raise ValidationError("graph", None, value, "must be an Entity or a Relationship")
    if redact is None:
        return value
    clean = replace(value, properties=redacted_value(value.properties, "", "", _reporting(redact), []))
    if isinstance(clean, Entity):
        return replace(clean, name=redact(clean.name, "name"), entity_type=redact(clean.entity_type, "type"))
    return replace(clean, relation_type=redact(clean.relation_type, "type"))


def _reporting(redact: Redact) -> Callable[[str, str], Redacted]:
    """Adapt `redact` to the interface of `redacted_value`."""

    def redacted(text: str, name: str) -> Redacted:
        clean = redact(text, name)
        return Redacted(clean, () if clean == text else (Masked("secret", name),))

    return redacted


def best_named(candidates: Iterable[Entity], name: str, limit: int) -> list[Entity]:
    """The entities with this name, then those whose names contain all of its words, shorter names first."""
    key, wanted = name_key(name), set(query_terms(name))
    fitting = [e for e in candidates if name_key(e.name) == key or (wanted and wanted <= set(terms(e.name)))]
    fitting.sort(key=lambda e: (name_key(e.name) != key, len(e.name), *entity_order(e)))
    return fitting[:limit]
