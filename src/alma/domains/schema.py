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
_SUBJECT = "domain schema"


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


def get_coding_schema() -> DomainSchema:
    """Writing and testing software."""
    return DomainSchema(
        name="coding",
        description="Writing, testing and reviewing software",
        entity_types=(
            EntityType("component", "A part of the system that can be named", ("path", "language", "owner")),
            EntityType("endpoint", "An address the system answers at", ("method", "path", "auth")),
            EntityType("test", "A check that runs", ("framework", "type", "is_flaky")),
            EntityType("bug", "Something that does not work as it should", ("severity", "status", "cause")),
            EntityType("dependency", "Code of others that is used", ("version", "purpose")),
        ),
        relationship_types=(
            RelationshipType("depends_on", "component", "component"),
            RelationshipType("uses", "component", "dependency"),
            RelationshipType("serves", "component", "endpoint"),
            RelationshipType("tests", "test", "component"),
            RelationshipType("found_in", "bug", "component"),
            RelationshipType("caught_by", "bug", "test"),
        ),
        learning_categories=(
            "testing_strategies",
            "selector_patterns",
            "ui_component_patterns",
            "api_patterns",
            "api_testing_patterns",
            "database_queries",
            "database_validation",
            "error_handling_patterns",
            "debugging_strategies",
            "code_review",
            "refactoring",
            "build_and_deployment",
        ),
    )


def get_research_schema() -> DomainSchema:
    """Finding, judging and joining what is known."""
    return DomainSchema(
        name="research",
        description="Finding sources, judging them and joining what they say",
        entity_types=(
            EntityType("paper", "A published work", ("authors", "year", "venue", "url")),
            EntityType("source", "Any other place that knowledge comes from", ("type", "url", "reliability")),
            EntityType("hypothesis", "What is to be shown or refuted", ("statement", "status")),
            EntityType("finding", "What was found out", ("statement", "strength")),
            EntityType("dataset", "Data that can be looked at", ("size", "licence", "url")),
            EntityType("method", "How something is found out", ("assumptions", "limits")),
        ),
        relationship_types=(
            RelationshipType("cites", "paper", "paper"),
            RelationshipType("reports", "paper", "finding"),
            RelationshipType("states", "source", "finding"),
            RelationshipType("supports", "finding", "hypothesis"),
            RelationshipType("contradicts", "finding", "hypothesis"),
            RelationshipType("applied_to", "method", "dataset"),
        ),
        learning_categories=(
            "search_strategies",
            "source_evaluation",
            "synthesis_methods",
            "hypothesis_testing",
            "data_analysis",
            "citation_practice",
            "methodology",
        ),
        excluded_categories=("medical_advice", "legal_advice"),
    )


def get_sales_schema() -> DomainSchema:
    """From a first contact to a signed contract."""
    return DomainSchema(
        name="sales",
        description="Finding customers, understanding them and closing with them",
        entity_types=(
            EntityType("lead", "Somebody who may buy", ("stage", "value", "origin")),
            EntityType("account", "A company one deals with", ("industry", "size", "region")),
            EntityType("contact", "A person at a company", ("role", "influence")),
            EntityType("objection", "A reason not to buy", ("type", "response")),
            EntityType("competitor", "Whoever else could be bought from", ("strengths", "weaknesses")),
        ),
        relationship_types=(
            RelationshipType("works_at", "contact", "account"),
            RelationshipType("belongs_to", "lead", "account"),
            RelationshipType("raised", "lead", "objection"),
            RelationshipType("considers", "lead", "competitor"),
        ),
        learning_categories=(
            "objection_handling",
            "closing_techniques",
            "qualification_patterns",
            "outreach_patterns",
            "pricing_conversations",
            "follow_up_timing",
        ),
        excluded_categories=("contract_law", "personal_data"),
    )


def get_general_schema() -> DomainSchema:
    """Whatever fits no other domain: every category may be learned."""
    return DomainSchema(
        name="general",
        description="Work of any kind",
        entity_types=(
            EntityType("person", "Somebody", ("role",)),
            EntityType("organization", "A company, team or institution", ("type",)),
            EntityType("task", "Something to be done", ("status", "deadline")),
            EntityType("document", "Something written", ("type", "location")),
            EntityType("topic", "What things are about", ()),
        ),
        relationship_types=(
            RelationshipType("member_of", "person", "organization"),
            RelationshipType("assigned_to", "task", "person"),
            RelationshipType("wrote", "person", "document"),
            RelationshipType("about", "document", "topic"),
        ),
    )


def get_customer_support_schema() -> DomainSchema:
    """Helping those who use a product."""
    return DomainSchema(
        name="customer_support",
        description="Answering questions and solving the problems of those who use a product",
        entity_types=(
            EntityType("customer", "Somebody who uses the product", ("plan", "since", "mood")),
            EntityType("ticket", "A request for help", ("priority", "status", "channel")),
            EntityType("product", "What is used", ("version", "platform")),
            EntityType("issue", "A problem that can be named", ("cause", "workaround")),
            EntityType("article", "Help that is written down", ("url", "last_checked")),
        ),
        relationship_types=(
            RelationshipType("opened", "customer", "ticket"),
            RelationshipType("concerns", "ticket", "product"),
            RelationshipType("caused_by", "ticket", "issue"),
            RelationshipType("solved_by", "issue", "article"),
        ),
        learning_categories=(
            "issue_resolution",
            "escalation_patterns",
            "communication_style",
            "troubleshooting_steps",
            "customer_sentiment",
        ),
        excluded_categories=("payment_details", "personal_data"),
    )


def get_content_creation_schema() -> DomainSchema:
    """Writing for readers."""
    return DomainSchema(
        name="content_creation",
        description="Writing, editing and publishing for readers",
        entity_types=(
            EntityType("article", "A piece of writing", ("format", "status", "length")),
            EntityType("audience", "Whom it is for", ("knowledge", "interests")),
            EntityType("campaign", "Pieces that belong together", ("goal", "period")),
            EntityType("channel", "Where it appears", ("tone", "limits")),
            EntityType("style_guide", "Rules of writing", ("voice", "terms")),
        ),
        relationship_types=(
            RelationshipType("written_for", "article", "audience"),
            RelationshipType("part_of", "article", "campaign"),
            RelationshipType("published_on", "article", "channel"),
            RelationshipType("follows", "article", "style_guide"),
        ),
        learning_categories=(
            "headline_patterns",
            "tone_and_voice",
            "structure",
            "audience_engagement",
            "editing_practice",
            "search_visibility",
            "documentation_patterns",
        ),
        excluded_categories=("legal_claims",),
    )


PREBUILT = {
    schema.name: schema
    for schema in (
        get_coding_schema(),
        get_research_schema(),
        get_sales_schema(),
        get_general_schema(),
        get_customer_support_schema(),
        get_content_creation_schema(),
    )
}
