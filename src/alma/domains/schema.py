"""Domain schemas: entity types, relationship types, and what an agent may learn."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from alma.arguments import earlier, renamed
from alma.domains.earlier import EARLIER_FIELDS, EarlierSchema, with_present_names
from alma.errors import ValidationError
from alma.model.common import checked_name, checked_prose, checked_whole, same_name
from alma.model.fields import JsonObject
from alma.model.scope import MemoryScope

Part = TypeVar("Part", "EntityType", "RelationshipType")
_SUBJECT = "domain schema"


@earlier(renamed({"attribute_types": None}))
@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of entity in the domain, its attributes, and those that each entity must have."""

    name: str
    description: str = ""
    attributes: Sequence[str] = ()
    required_attributes: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("entity type", "name", self.name)
        object.__setattr__(self, "description", checked_prose("entity type", "description", self.description))
        for name in ("attributes", "required_attributes"):
            object.__setattr__(self, name, _names("entity type", name, getattr(self, name)))

    def validate_entity(self, entity: Mapping[str, Any]) -> list[str]:
        """What is wrong with an entity of this type: a sentence for each required attribute it lacks."""
        return [f"{self.name} needs {name}" for name in self.required_attributes if name not in entity]


@earlier(renamed({"many_to_many": None, "required": None}))
@dataclass(frozen=True, slots=True)
class RelationshipType:
    """A type of relationship between two entity types."""

    name: str
    source_type: str
    target_type: str
    description: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "source_type", "target_type"):
            checked_name("relationship type", name, getattr(self, name))
        object.__setattr__(self, "description", checked_prose("relationship type", "description", self.description))


@earlier(with_present_names)
@dataclass(frozen=True, slots=True)
class DomainSchema(EarlierSchema):
    """A domain: entity and relationship types, and learnable categories.

    `excluded_categories` are never learned; `min_occurrences` is how often a strategy must occur before it becomes a
    heuristic.
    """

    name: str
    description: str = ""
    entity_types: Sequence[EntityType] = ()
    relationship_types: Sequence[RelationshipType] = ()
    learning_categories: Sequence[str] = ()
    excluded_categories: Sequence[str] = ()
    min_occurrences: int = 3
    metadata: JsonObject = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        checked_name(_SUBJECT, "name", self.name)
        object.__setattr__(self, "description", checked_prose(_SUBJECT, "description", self.description))
        for name in ("entity_types", "relationship_types", "learning_categories", "excluded_categories"):
            object.__setattr__(self, name, self.checked_list(name, getattr(self, name)))
        checked_whole(_SUBJECT, "min_occurrences", self.min_occurrences, 1)
        self.check_ends()
        excluded = set(map(same_name, self.excluded_categories))
        for category in self.learning_categories:
            if same_name(category) in excluded:
                raise ValidationError(_SUBJECT, "learning_categories", category, "is among excluded_categories as well")

    @staticmethod
    def checked_list(name: str, values: Any) -> tuple[Any, ...]:
        """The values of a field that is a list, each of its type."""
        part = {"entity_types": EntityType, "relationship_types": RelationshipType}.get(name)
        return _names(_SUBJECT, name, values) if part is None else _parts(name, values, part)

    @classmethod
    def from_dict(cls, name: str | Mapping[str, Any], config: Mapping[str, Any] | None = None) -> DomainSchema:
        """The schema that a dict describes, alone or after the name; unknown and repeated keys are errors."""
        if isinstance(name, Mapping):
            return cls.from_dict(name.get("name", ""), name)
        if not isinstance(config, Mapping):
            raise ValidationError(_SUBJECT, None, config, "must be described by a dict")
        known = [each.name for each in fields(cls) if each.name != "name"]
        for key in config:
            if key not in (*known, *EARLIER_FIELDS) and not (key == "name" and config[key] == name):
                raise ValidationError(_SUBJECT, str(key), config[key], f"is not known; {_suggestion(str(key), known)}")
        return cls(name=name, **{key: value for key, value in config.items() if key != "name"})

    def to_dict(self) -> JsonObject:
        """The schema as a JSON object that `from_dict` reads."""
        return {
            "name": self.name,
            "description": self.description,
            "entity_types": [_as_dict(each) for each in self.entity_types],
            "relationship_types": [_as_dict(each) for each in self.relationship_types],
            "learning_categories": list(self.learning_categories),
            "excluded_categories": list(self.excluded_categories),
            "min_occurrences": self.min_occurrences,
            "metadata": dict(self.metadata),
        }

    def validate(self) -> list[str]:
        """What is wrong with the schema: a sentence for each end of a relationship that is not described."""
        return [f"{name!r} has an entity type that is not described: {end}" for name, end in self._open_ends()]

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

    def check_ends(self) -> None:
        """Raise an error for a relationship with an entity type that is not described."""
        for name, end in self._open_ends():
            reason = f"has {name!r} with an entity type that is not described"
            raise ValidationError(_SUBJECT, "relationship_types", end, reason)

    def _open_ends(self) -> list[tuple[str, str]]:
        known = {each.name for each in self.entity_types}
        ends = [(each.name, end) for each in self.relationship_types for end in (each.source_type, each.target_type)]
        return [(name, end) for name, end in ends if end not in known]


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


@cache
def prebuilt_schemas() -> Mapping[str, DomainSchema]:
    """The schemas that come with ALMA, by name."""
    tables = tomllib.loads(resources.files("alma.domains").joinpath("schemas.toml").read_text(encoding="utf-8"))
    return {name: _prebuilt(name, **table) for name, table in tables.items()}


def _prebuilt(name: str, entities: list[Any], relationships: list[Any], **fields: Any) -> DomainSchema:
    things = tuple(EntityType(*each) for each in entities)
    return DomainSchema(
        name, entity_types=things, relationship_types=tuple(RelationshipType(*each) for each in relationships), **fields
    )


def get_coding_schema() -> DomainSchema:
    """Writing and testing software."""
    return replace(prebuilt_schemas()["coding"])


def get_research_schema() -> DomainSchema:
    """Finding, evaluating and combining sources."""
    return replace(prebuilt_schemas()["research"])


def get_sales_schema() -> DomainSchema:
    """From a first contact to a signed contract."""
    return replace(prebuilt_schemas()["sales"])


def get_general_schema() -> DomainSchema:
    """Any other work: every category may be learned."""
    return replace(prebuilt_schemas()["general"])


def get_customer_support_schema() -> DomainSchema:
    """Customer support for a product."""
    return replace(prebuilt_schemas()["customer_support"])


def get_content_creation_schema() -> DomainSchema:
    """Writing for readers."""
    return replace(prebuilt_schemas()["content_creation"])
