"""Schemas of domains, and memories that are made for them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from alma import domains
from alma.bootstrap import open_storage
from alma.domains import DomainMemoryFactory, DomainSchema, EntityType, RelationshipType, get_research_schema
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ConfigurationError, ScopeViolationError, ValidationError
from alma.storage.base import StorageBackend
from tests.extensions.conftest import on_each_database

SIX = ["coding", "research", "sales", "general", "customer_support", "content_creation"]
SALES: dict[str, Any] = {
    "entity_types": [
        {"name": "lead", "attributes": ["stage", "value"]},
        {"name": "objection", "attributes": ["type", "response"]},
    ],
    "learning_categories": ["objection_handling", "closing_techniques", "qualification_patterns"],
}


@pytest.fixture
def factory() -> DomainMemoryFactory:
    return DomainMemoryFactory()


# ---------------------------------------------------------------------- schemas


def test_there_are_six_schemas_each_with_a_function_of_its_own(factory: DomainMemoryFactory) -> None:
    assert factory.list_schemas() == SIX
    for name in SIX:
        schema = getattr(domains, f"get_{name}_schema")()
        assert schema == factory.get_schema(name)
        assert schema.entity_types
        assert schema.relationship_types
        assert DomainSchema.from_dict(name, schema.to_dict()) == schema


def test_the_documented_dict_makes_a_schema(factory: DomainMemoryFactory) -> None:
    schema = factory.create_schema("sales", SALES)
    assert [each.name for each in schema.entity_types] == ["lead", "objection"]
    assert schema.get_entity_type("lead") == EntityType("lead", attributes=["stage", "value"])
    assert schema.learning_categories == ("objection_handling", "closing_techniques", "qualification_patterns")
    assert factory.get_schema("sales") is schema


def test_ones_own_schema_goes_first_and_the_one_of_alma_comes_back_without_it(factory: DomainMemoryFactory) -> None:
    prebuilt = factory.get_schema("sales")
    factory.create_schema("sales", SALES)
    factory.create_schema("law", {})
    assert factory.list_schemas() == [*SIX, "law"]
    assert factory.unregister_schema("sales")
    assert factory.get_schema("sales") == prebuilt
    assert factory.unregister_schema("law")
    assert not factory.unregister_schema("law")
    assert not factory.unregister_schema("coding")
    assert factory.get_schema("law") is None


def test_a_schema_can_be_made_by_hand(factory: DomainMemoryFactory) -> None:
    schema = DomainSchema(
        "law",
        entity_types=[EntityType("case"), EntityType("court")],
        relationship_types=[RelationshipType("heard_by", "case", "court")],
        excluded_categories=["advice"],
    )
    factory.register_schema(schema)
    assert factory.get_schema("law") == schema
    assert schema.get_relationship_type("heard_by") is not None
    assert schema.scope_of("clerk").cannot_learn == ["advice"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"entities": []}, "domain schema.entities is not known; did you mean entity_types"),
        ({"entity_types": "lead"}, "entity_types must be a list"),
        ({"entity_types": ["lead"]}, "entity_types must hold dicts with a name"),
        ({"entity_types": [{"attributes": []}]}, "entity_types.name is missing; add it"),
        ({"entity_types": [{"name": "lead", "atributes": []}]}, "atributes is not known; did you mean attributes"),
        ({"entity_types": [{"name": "lead"}, {"name": "lead"}]}, "entity_types is given twice.*'lead'"),
        ({"entity_types": [{"name": "lead", "attributes": ["a", "a"]}]}, "attributes is given twice"),
        ({"entity_types": [{"name": " "}]}, "name must have 1 to"),
        ({"learning_categories": "closing"}, "learning_categories must be a list of names"),
        ({"learning_categories": ["a", "a"]}, "learning_categories is given twice"),
        ({"learning_categories": ["a"], "excluded_categories": ["a"]}, "is among excluded_categories as well"),
        ({"learning_categories": ["a"], "excluded_categories": ["A"]}, "is among excluded_categories as well"),
        ({"min_occurrences": 0}, "min_occurrences must be a whole number of at least 1"),
        (
            {
                "entity_types": [{"name": "lead"}],
                "relationship_types": [{"name": "knows", "source_type": "lead", "target_type": "contact"}],
            },
            "has 'knows' with an entity type that is not described",
        ),
        ({"relationship_types": [{"name": "knows"}]}, "relationship_types.source_type is missing"),
        ({"description": 7}, "description must be text"),
        ([], "must be described by a dict"),
    ],
)
def test_a_wrong_dict_is_refused_in_one_sentence(factory: DomainMemoryFactory, config: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        factory.create_schema("sales", config)
    assert "\n" not in str(refused.value)
    assert factory.get_schema("sales") == domains.get_sales_schema()


@on_each_database
def test_with_storage_schemas_are_there_for_other_factories(store: StorageBackend, place: str) -> None:
    schema = DomainMemoryFactory(store).create_schema("law", {"entity_types": [{"name": "case"}]})
    with open_storage(place) as another:
        elsewhere = DomainMemoryFactory(another)
        assert elsewhere.get_schema("law") == schema
        assert elsewhere.list_schemas() == [*SIX, "law"]
        assert elsewhere.unregister_schema("law")
    assert DomainMemoryFactory(store).get_schema("law") is None


# ---------------------------------------------------------------------- memories


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@on_each_database
def test_a_memory_for_a_domain_learns_what_its_schema_says(
    factory: DomainMemoryFactory, store: StorageBackend, embedder: EmbeddingProvider
) -> None:
    with factory.create_alma(get_research_schema(), "my-research-project", store, embedder) as alma:
        assert alma.project_id == "my-research-project"
        assert alma.scopes["research_agent"].can_learn == list(get_research_schema().learning_categories)
        for _ in range(3):
            alma.learn("ada", "judge a paper", "success", "look at the sample size", task_type="source_evaluation")
        found = alma.retrieve("judge another paper", "ada")
        assert [rule.strategy for rule in found.heuristics] == ["look at the sample size"]
        with pytest.raises(ScopeViolationError):
            alma.learn("ada", "close a deal", "success", "offer a discount", task_type="closing_techniques")
        with pytest.raises(ScopeViolationError):
            alma.learn("ada", "prescribe", "success", "ask a doctor", task_type="medical_advice")


def test_a_memory_is_where_the_factory_keeps_its_schemas(store: StorageBackend, embedder: EmbeddingProvider) -> None:
    with DomainMemoryFactory(store).create_alma("sales", "shop", embedding_provider=embedder) as alma:
        assert alma.storage is store


def test_with_agents_only_those_named_learn(
    factory: DomainMemoryFactory, tmp_path: Path, embedder: EmbeddingProvider
) -> None:
    with factory.create_alma("sales", "shop", str(tmp_path / "s.db"), embedder, agents=["sam"]) as alma:
        assert list(alma.scopes) == ["sam"]
        assert alma.learn("sam", "call a lead", "success", "ask about the budget")
        with pytest.raises(ScopeViolationError, match="has no scope"):
            alma.learn("eve", "call a lead", "success", "ask about the budget")


def test_the_general_schema_lets_everything_be_learned(
    factory: DomainMemoryFactory, tmp_path: Path, embedder: EmbeddingProvider
) -> None:
    with factory.create_alma("general", "home", str(tmp_path / "g.db"), embedder) as alma:
        assert alma.learn("ada", "water the plants", "ok", "in the morning", task_type="gardening")


def test_without_storage_the_memory_is_where_configurations_put_it_and_says_so(
    factory: DomainMemoryFactory, here: Path, embedder: EmbeddingProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="alma.domains")
    with factory.create_alma(get_research_schema(), "p", embedding_provider=embedder) as alma:
        alma.learn("ada", "judge a paper", "success", "look at the sample size")
    assert [path.name for path in here.iterdir()] == [".alma"]
    (line,) = caplog.records
    assert line.__dict__["place"] == str(here / ".alma" / "alma.db")
    with factory.create_alma(get_research_schema(), "p", embedding_provider=embedder) as again:
        assert again.get_stats()["outcomes_count"] == 1


def test_a_wrong_call_leaves_nothing_open_and_is_one_sentence(factory: DomainMemoryFactory, here: Path) -> None:
    with pytest.raises(ConfigurationError, match="'cooking' is not a schema; choose coding, research"):
        factory.create_alma("cooking", "p")
    with pytest.raises(ConfigurationError, match="agents must be a list with at least one name"):
        factory.create_alma("coding", "p", agents=[])
    with pytest.raises(ConfigurationError, match="unknown embedding provider"):
        factory.create_alma("coding", "p", embedding_provider="magic")
    assert list(here.iterdir()) == []
