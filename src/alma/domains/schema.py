"""Schemas: the things of a domain, how they relate, and what an agent may learn there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from alma.errors import ValidationError
from alma.model.common import checked_name, checked_prose, same_name
from alma.model.fields import JsonObject
from alma.model.scope import MemoryScope

Part = TypeVar("Part", "EntityType", "RelationshipType")


@dataclass(frozen=True, slots=True)
class EntityType:
    """A kind of thing that the domain is about, and what is worth knowing of one."""

    name: str
    description: str = ""
    attributes: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("entity type", "name", self.name)
        object.__setattr__(self, "description", checked_prose("entity type", "description", self.description))
        object.__setattr__(self, "attributes", _names("entity type", "attributes", self.attributes))


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """How things of two types can stand to each other."""

    name: str
    source_type: str
    target_type: str
    description: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "source_type", "target_type"):
            checked_name("relationship type", name, getattr(self, name))
        object.__setattr__(self, "description", checked_prose("relationship type", "description", self.description))


@dataclass(frozen=True, slots=True)
class DomainSchema:
    """A domain: its entities and relationships, what may be learned in it and what may not.

    `excluded_categories` are what an agent of this domain never learns; `min_occurrences` is how often a strategy must
    have been seen before it becomes a heuristic.
    """

    name: str
    description: str = ""
    entity_types: Sequence[EntityType] = ()
    relationship_types: Sequence[RelationshipType] = ()
    learning_categories: Sequence[str] = ()
    excluded_categories: Sequence[str] = ()
    min_occurrences: int = 3

    def __post_init__(self) -> None:
        checked_name(_SUBJECT, "name", self.name)
        object.__setattr__(self, "description", checked_prose(_SUBJECT, "description", self.description))
        for name, part in (("entity_types", EntityType), ("relationship_types", RelationshipType)):
            object.__setattr__(self, name, _parts(name, getattr(self, name), part))
        for name in ("learning_categories", "excluded_categories"):
            object.__setattr__(self, name, _names(_SUBJECT, name, getattr(self, name)))
        least = self.min_occurrences
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValidationError(_SUBJECT, "min_occurrences", least, "must be a whole number of at least 1")
        self._check_ends()
        excluded = set(map(same_name, self.excluded_categories))
        for category in self.learning_categories:
            if same_name(category) in excluded:
                raise ValidationError(_SUBJECT, "learning_categories", category, "is among excluded_categories as well")

    @classmethod
    def from_dict(cls, name: str, config: Mapping[str, Any]) -> DomainSchema:
        """The schema that a dict describes; a key that is not known, or is given twice, is an error that names it."""
        if not isinstance(config, Mapping):
            raise ValidationError(_SUBJECT, None, config, "must be described by a dict")
        known = [field.name for field in fields(cls) if field.name != "name"]
        for key in config:
            if key not in known and not (key == "name" and config[key] == name):
                raise ValidationError(_SUBJECT, str(key), config[key], f"is not known; {_suggestion(str(key), known)}")
        return cls(name=name, **{key: value for key, value in config.items() if key != "name"})

    def to_dict(self) -> JsonObject:
        """The schema as a JSON object that `from_dict` reads."""
        return {
            "description": self.description,
            "entity_types": [_as_dict(each) for each in self.entity_types],
            "relationship_types": [_as_dict(each) for each in self.relationship_types],
            "learning_categories": list(self.learning_categories),
            "excluded_categories": list(self.excluded_categories),
            "min_occurrences": self.min_occurrences,
        }

    def get_entity_type(self, name: str) -> EntityType | None:
        """The entity type with this name."""
        return next((each for each in self.entity_types if each.name == name), None)

    def get_relationship_type(self, name: str) -> RelationshipType | None:
        """The first relationship type with this name."""
        return next((each for each in self.relationship_types if each.name == name), None)

    def scope_of(self, agent: str) -> MemoryScope:
        """What an agent of this domain may learn."""
        return MemoryScope(
            agent_name=agent,
            can_learn=self.learning_categories,
            cannot_learn=self.excluded_categories,
            min_occurrences_for_heuristic=self.min_occurrences,
        )

    def _check_ends(self) -> None:
        known = {each.name for each in self.entity_types}
        for relationship in self.relationship_types:
            for end in (relationship.source_type, relationship.target_type):
                if end not in known:
                    raise ValidationError(
                        _SUBJECT,
                        "relationship_types",
                        end,
                        f"has {relationship.name!r} between entity types of which one is not described",
                    )


_SUBJECT = "domain schema"


def _parts(field: str, values: Any, part: type[Part]) -> tuple[Part, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ValidationError(_SUBJECT, field, values, "must be a list")
    made = tuple(_part(field, value, part) for value in values)
    keys = [(each.name, getattr(each, "source_type", ""), getattr(each, "target_type", "")) for each in made]
    _refuse_twice(_SUBJECT, field, keys)
    return made


def _part(field: str, value: Any, part: type[Part]) -> Part:
    if isinstance(value, part):
        return value
    if not isinstance(value, Mapping):
        raise ValidationError(_SUBJECT, field, value, "must hold dicts with a name")
    known = [each.name for each in fields(part)]
    for key in value:
        if key not in known:
            where = f"{field}.{key}"
            raise ValidationError(_SUBJECT, where, value[key], f"is not known; {_suggestion(str(key), known)}")
    required = known[:1] if part is EntityType else known[:3]
    for key in required:
        if key not in value:
            raise ValidationError(_SUBJECT, f"{field}.{key}", dict(value), "is missing; add it")
    return part(**value)


def _names(subject: str, field: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ValidationError(subject, field, values, "must be a list of names")
    names = tuple(checked_name(subject, field, value) for value in values)
    _refuse_twice(subject, field, names)
    return names


def _refuse_twice(subject: str, field: str, values: Sequence[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            name = value[0] if isinstance(value, tuple) else value
            raise ValidationError(subject, field, name, "is given twice; keep one of them")


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _as_dict(part: EntityType | RelationshipType) -> JsonObject:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
