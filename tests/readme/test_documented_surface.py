"""The names, modules and parameters that users know are there."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

NAMES = {
    "alma": """
        ALMA Heuristic Outcome UserPreference DomainKnowledge AntiPattern MemorySlice MemoryScope
        Setting Context Agent MemorySchema Harness Tool ToolType RunResult
        CodingDomain ResearchDomain ContentDomain OperationsDomain create_harness
        WorkItem WorkItemStatus ProgressLog ProgressSummary ProgressTracker
        SessionHandoff SessionContext SessionOutcome SessionManager
        DomainSchema EntityType RelationshipType DomainMemoryFactory
        get_coding_schema get_research_schema get_sales_schema get_general_schema
        CodebaseOrientation InitializationResult RulesOfEngagement SessionInitializer
        ConfidenceEngine ConfidenceSignal OpportunitySignal RiskSignal ConsolidationEngine ConsolidationResult
        MemoryEvent MemoryEventType EventEmitter get_emitter WebhookConfig WebhookManager
        ALMAError ConfigurationError ScopeViolationError StorageError EmbeddingError RetrievalError ExtractionError
        ValidationError""",
    "alma.storage": "StorageBackend SQLiteStorage FileBasedStorage PostgreSQLStorage AzureCosmosStorage",
    "alma.storage.base": "StorageBackend",
    "alma.storage.sqlite_local": "SQLiteStorage",
    "alma.storage.file_based": "FileBasedStorage",
    "alma.storage.postgresql": "PostgreSQLStorage",
    "alma.storage.azure_cosmos": "AzureCosmosStorage",
    "alma.retrieval": """
        RetrievalEngine ScoringWeights CacheBackend RetrievalCache RedisCache NullCache create_cache
        EmbeddingProvider LocalEmbedder AzureEmbedder MockEmbedder""",
    "alma.cache": "CacheBackend RetrievalCache RedisCache NullCache create_cache CACHE_TTL_CONFIG",
    "alma.embeddings": "EmbeddingProvider LocalEmbedder AzureEmbedder MockEmbedder",
    "alma.learning": """
        LearningProtocol ScopeValidator ForgettingEngine PrunePolicy PruneReason PruneSummary
        ExponentialDecay LinearDecay StepDecay NoDecay ConfidenceDecayer MemoryHealthMonitor CleanupScheduler
        HeuristicExtractor""",
    "alma.harness": "Harness Setting Context Agent MemorySchema Tool ToolType RunResult create_harness",
    "alma.domains": """
        DomainMemoryFactory DomainSchema get_coding_schema get_research_schema get_sales_schema get_general_schema
        get_customer_support_schema get_content_creation_schema""",
    "alma.progress": "ProgressTracker WorkItem WorkItemStatus ProgressLog ProgressSummary",
    "alma.session": "SessionManager SessionHandoff SessionContext SessionOutcome SessionInitializer",
    "alma.extraction": """
        FactType ExtractedFact ExtractionResult RuleBasedExtractor LLMFactExtractor create_extractor AutoLearner""",
    "alma.graph": "Entity Relationship GraphQuery GraphResult GraphStore create_graph_store EntityExtractor",
    "alma.confidence": "ConfidenceEngine ConfidenceSignal OpportunitySignal RiskSignal",
    "alma.consolidation": "ConsolidationEngine ConsolidationResult",
    "alma.events": "MemoryEvent MemoryEventType EventEmitter get_emitter WebhookConfig WebhookManager",
    "alma.integration": "ClaudeAgentHooks HelenaHooks VictorHooks",
}

STORES = ("SQLiteStorage", "FileBasedStorage", "PostgreSQLStorage", "AzureCosmosStorage")
_PLACE = 'host="localhost", port=5432, database="alma_memory", user="postgres", password=""'

# What is called, and how: the parameters in their order, with the defaults that users rely on.
CALLS = {
    "alma:ALMA": "storage, retrieval_engine, learning_protocol, scopes, project_id",
    "alma:ALMA.from_config": "path",
    "alma:ALMA.retrieve": "self, task, agent, user_id=None, top_k=5",
    "alma:ALMA.learn": (
        "self, agent, task, outcome, strategy_used, task_type=None, duration_ms=None, error_message=None, feedback=None"
    ),
    "alma:ALMA.add_user_preference": 'self, user_id, category, preference, source="explicit_instruction"',
    "alma:ALMA.add_domain_knowledge": 'self, agent, domain, fact, source="user_stated"',
    "alma:ALMA.forget": "self, agent=None, older_than_days=90, below_confidence=0.3",
    "alma:ALMA.get_stats": "self, agent=None",
    "alma:MemoryScope": (
        "agent_name, can_learn, cannot_learn, share_with, inherit_from, min_occurrences_for_heuristic=3"
    ),
    "alma:MemorySlice.to_prompt": "self, max_tokens=2000",
    **{f"alma.storage:{store}.from_config": "config" for store in STORES},
    "alma.storage.sqlite_local:SQLiteStorage": "db_path, embedding_dim=384",
    "alma.storage.file_based:FileBasedStorage": "storage_dir",
    "alma.storage.azure_cosmos:AzureCosmosStorage": (
        'endpoint, key, database_name="alma-memory", embedding_dim=384, create_if_not_exists=True'
    ),
    "alma.storage.postgresql:PostgreSQLStorage": (
        f'{_PLACE}, embedding_dim=384, pool_size=10, schema="public", ssl_mode="prefer"'
    ),
    "alma.storage.base:StorageBackend.get_heuristics": (
        "self, project_id, agent=None, embedding=None, top_k=5, min_confidence=0.0"
    ),
    "alma.storage.base:StorageBackend.get_user_preferences": "self, user_id, category=None",
    "alma.storage.base:StorageBackend.update_heuristic": "self, heuristic_id, updates",
    "alma.storage.base:StorageBackend.increment_heuristic_occurrence": "self, heuristic_id, success",
    "alma.storage.base:StorageBackend.delete_outcomes_older_than": "self, project_id, older_than, agent=None",
    "alma.storage.base:StorageBackend.delete_low_confidence_heuristics": (
        "self, project_id, below_confidence, agent=None"
    ),
    "alma.storage.base:StorageBackend.get_stats": "self, project_id, agent=None",
    "alma.retrieval:RetrievalEngine": (
        'storage, embedding_provider="local", cache_ttl_seconds=300, enable_cache=True, max_cache_entries=1000, '
        "scoring_weights=None, recency_half_life_days=30.0, min_score_threshold=0.2"
    ),
    "alma.retrieval:RetrievalEngine.retrieve": (
        "self, query, agent, project_id, user_id=None, top_k=5, scope=None, bypass_cache=False, include_shared=True"
    ),
    "alma.retrieval:ScoringWeights": "similarity=0.4, recency=0.3, success=0.2, confidence=0.1",
    "alma.harness:Harness": "setting, agent, alma",
    "alma.harness:Harness.run": "self, context, executor=None",
    "alma.harness:create_harness": "domain, agent_type, alma",
    "alma.domains:DomainMemoryFactory.create_alma": "self, schema, project_id, storage=None",
    "alma.progress:ProgressTracker": "project_id, storage=None",
    "alma.session:SessionManager": "project_id, storage=None",
    "alma.extraction:AutoLearner": "alma, extractor=None, auto_commit=True, min_confidence=0.5",
    "alma.extraction:AutoLearner.learn_from_conversation": "self, messages, agent, user_id=None, commit=None",
    "alma.graph:Entity": "id, name, entity_type, properties, created_at",
    "alma.graph:Relationship": "id, source_id, target_id, relation_type, properties, confidence=1.0, created_at",
    "alma.confidence:ConfidenceEngine": "alma",
    "alma.confidence:ConfidenceEngine.assess_strategy": "self, strategy, context, agent",
}

STORAGE_METHODS = """
    save_heuristic save_outcome save_user_preference save_domain_knowledge save_anti_pattern
    get_heuristics get_outcomes get_user_preferences get_domain_knowledge get_anti_patterns
    get_heuristics_for_agents get_outcomes_for_agents get_domain_knowledge_for_agents get_anti_patterns_for_agents
    update_heuristic increment_heuristic_occurrence update_heuristic_confidence update_knowledge_confidence
    delete_heuristic delete_outcome delete_domain_knowledge delete_anti_pattern
    delete_outcomes_older_than delete_low_confidence_heuristics get_stats from_config
    save_heuristics save_outcomes save_domain_knowledge_batch
    batch_save_heuristics batch_save_outcomes batch_save_domain_knowledge"""


def found(address: str) -> Any:
    """The object at `module:name.attribute`."""
    module, _, path = address.partition(":")
    thing: Any = import_module(module)
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize("module", NAMES)
def test_a_module_has_its_documented_names(module: str) -> None:
    home = import_module(module)
    assert [name for name in NAMES[module].split() if getattr(home, name, None) is None] == []


@pytest.mark.parametrize("address", CALLS)
def test_a_call_takes_its_documented_arguments_in_their_order(address: str) -> None:
    taken = list(inspect.signature(found(address)).parameters.values())
    documented = inspect.signature(eval(f"lambda {_with_defaults_last(CALLS[address])}: None")).parameters.values()
    names = [each.name for each in documented]
    assert [each.name for each in taken[: len(names)]] == names
    for mine, theirs in zip(taken, documented, strict=False):
        assert mine.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if theirs.default is not ...:
            assert mine.default == theirs.default, mine.name
    # Whatever came on top can be left out.
    extra = taken[len(names) :]
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert all(each.default is not each.empty or each.kind in variadic for each in extra)


def _with_defaults_last(parameters: str) -> str:
    """Parameters without a documented default get `...`."""
    return ", ".join(each if "=" in each else f"{each}=..." for each in parameters.split(", "))


@pytest.mark.parametrize("store", STORES)
def test_a_store_has_its_documented_methods(store: str) -> None:
    kind = found(f"alma.storage:{store}")
    assert [name for name in STORAGE_METHODS.split() if not callable(getattr(kind, name, None))] == []
