"""What graph stores share: how two entities become one, which name fits best, what may be stored."""

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
"""Gives a text without its secrets; the second text is the name it stands under, if it has one."""

Kept = TypeVar("Kept", Entity, Relationship)


def masked(text: str, name: str) -> str:
    """What may be stored where nothing else is said: what ingest would let in."""
    return DEFAULT_REDACTOR.redact(text, name).text


def merged_entity(kept: Entity, added: Entity) -> Entity:
    """The entity with what the added one says."""
    return replace(kept, properties={**kept.properties, **added.properties})


def merged_relationship(kept: Relationship, added: Relationship) -> Relationship:
    """The relationship with what the added one says."""
    united = {**kept.properties, **added.properties}
    return replace(kept, properties=united, confidence=max(kept.confidence, added.confidence))


def entity_order(entity: Entity) -> tuple[str, str]:
    """By name, then by id."""
    return name_key(entity.name), entity.id


def without_secrets(value: Kept, redact: Redact | None) -> Kept:
    """The entity or relationship as it may be stored."""
    if not isinstance(value, Entity | Relationship):
        raise ValidationError("graph", None, value, "must be an Entity or a Relationship")
    if redact is None:
        return value
    clean = replace(value, properties=redacted_value(value.properties, "", "", _telling(redact), []))
    if isinstance(clean, Entity):
        return replace(clean, name=redact(clean.name, "name"), entity_type=redact(clean.entity_type, "type"))
    return replace(clean, relation_type=redact(clean.relation_type, "type"))


def _telling(redact: Redact) -> Callable[[str, str], Redacted]:
    """The same with a word on whether anything was taken out."""

    def redacted(text: str, name: str) -> Redacted:
        clean = redact(text, name)
        return Redacted(clean, () if clean == text else (Masked("secret", name),))

    return redacted


def best_named(candidates: Iterable[Entity], name: str, limit: int) -> list[Entity]:
    """Those that have this name, then those whose names contain all of its words, shorter ones first."""
    key, wanted = name_key(name), set(query_terms(name))
    fitting = [e for e in candidates if name_key(e.name) == key or (wanted and wanted <= set(terms(e.name)))]
    fitting.sort(key=lambda e: (name_key(e.name) != key, len(e.name), *entity_order(e)))
    return fitting[:limit]
