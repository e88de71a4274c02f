"""What is made of other parts says at once, in one sentence, which of them it was not given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alma import (
    ALMA,
    Archive,
    AsyncALMA,
    AuditTrail,
    AutoLearner,
    CleanupScheduler,
    ConfidenceDecayer,
    ConfidenceEngine,
    ConsolidationEngine,
    ContextGaps,
    DomainMemoryFactory,
    EchoGuard,
    ForgettingEngine,
    Harness,
    HeuristicExtractor,
    History,
    Ingest,
    Journal,
    LearningProtocol,
    MemoryHealthMonitor,
    MemoryLifecycle,
    MemoryWriter,
    Patterns,
    ProgressTracker,
    Relationships,
    RetrievalEngine,
    ScopeValidator,
    SecretRedactor,
    SessionInitializer,
    SessionManager,
    SystemSettings,
    ValidationError,
    WebhookManager,
)
from alma.extraction import LLMFactExtractor

Make = Callable[[ALMA, Any], object]

ON_A_STORE: dict[str, Make] = {
    "ALMA": lambda alma, given: ALMA(given, alma.retrieval, alma.learning),
    "RetrievalEngine": lambda alma, given: RetrievalEngine(given, alma.embedder),
    "LearningProtocol": lambda alma, given: LearningProtocol(given, alma.embedder, alma.retrieval.index),
    "MemoryWriter": lambda alma, given: MemoryWriter(given, alma.embedder),
    "Ingest": lambda alma, given: Ingest(given, alma.embedder),
    "EchoGuard": lambda _, given: EchoGuard(given),
    "Archive": lambda _, given: Archive(given),
    "ForgettingEngine": lambda _, given: ForgettingEngine(given),
    "ConfidenceDecayer": lambda _, given: ConfidenceDecayer(given),
    "MemoryHealthMonitor": lambda _, given: MemoryHealthMonitor(given),
    "CleanupScheduler": lambda alma, given: CleanupScheduler(given, alma.forgetting),
    "MemoryLifecycle": lambda _, given: MemoryLifecycle(given),
    "Journal": lambda alma, given: Journal(given, alma.ingest, alma.retrieval),
    "Relationships": lambda _, given: Relationships(given),
    "Patterns": lambda _, given: Patterns(given),
    "ContextGaps": lambda _, given: ContextGaps(given),
    "History": lambda _, given: History(given),
    "AuditTrail": lambda _, given: AuditTrail(given),
    "SystemSettings": lambda _, given: SystemSettings(given),
}
ON_A_MEMORY: dict[str, Make] = {
    "AsyncALMA": lambda _, given: AsyncALMA(given),
    "AutoLearner": lambda _, given: AutoLearner(given),
    "ConsolidationEngine": lambda _, given: ConsolidationEngine(given),
}
# Without these something else is taken, so that None is fine and only a wrong one is not.
OPTIONAL: dict[str, Make] = {
    "RetrievalEngine.cache": lambda alma, given: RetrievalEngine(alma.storage, alma.embedder, cache=given),
    "RetrievalEngine.vector_index": lambda alma, given: RetrievalEngine(
        alma.storage, alma.embedder, vector_index=given
    ),
    "SessionManager.storage": lambda _, given: SessionManager("shop", given),
    "ProgressTracker.storage": lambda _, given: ProgressTracker("shop", given),
    "DomainMemoryFactory.storage": lambda _, given: DomainMemoryFactory(given),
    "WebhookManager.storage": lambda _, given: WebhookManager(storage=given),
    "WebhookManager.emitter": lambda _, given: WebhookManager(given),
    "ConsolidationEngine.emitter": lambda alma, given: ConsolidationEngine(alma, emitter=given),
    "SessionInitializer.alma": lambda _, given: SessionInitializer(given),
    "SessionInitializer.progress_tracker": lambda _, given: SessionInitializer(None, given),
    "SessionInitializer.session_manager": lambda _, given: SessionInitializer(None, None, given),
    "LearningProtocol.scopes": lambda alma, given: LearningProtocol(
        alma.storage, alma.embedder, alma.retrieval.index, given
    ),
    "LearningProtocol.extractor": lambda alma, given: LearningProtocol(
        alma.storage, alma.embedder, alma.retrieval.index, None, given
    ),
    "ScopeValidator.scopes": lambda _, given: ScopeValidator(given),
    "ConfidenceDecayer.decay": lambda alma, given: ConfidenceDecayer(alma.storage, given),
    "AutoLearner.extractor": lambda alma, given: AutoLearner(alma, given),
    "ConfidenceEngine": lambda _, given: ConfidenceEngine(given),
}
NEEDED: dict[str, Make] = {
    "ALMA.retrieval_engine": lambda alma, given: ALMA(alma.storage, given, alma.learning),
    "ALMA.learning_protocol": lambda alma, given: ALMA(alma.storage, alma.retrieval, given),
    "LearningProtocol.index": lambda alma, given: LearningProtocol(alma.storage, alma.embedder, given),
    "LearningProtocol.most_outcomes": lambda alma, given: LearningProtocol(
        alma.storage, alma.embedder, alma.retrieval.index, most_outcomes=given
    ),
    "HeuristicExtractor.half_life_days": lambda _, given: HeuristicExtractor(given),
    "CleanupScheduler.engine": lambda alma, given: CleanupScheduler(alma.storage, given),
    "Journal.writer": lambda alma, given: Journal(alma.storage, given, alma.retrieval),
    "Journal.retrieval": lambda alma, given: Journal(alma.storage, alma.ingest, given),
    "LLMFactExtractor.llm": lambda _, given: LLMFactExtractor(given),
    "SecretRedactor.rules": lambda _, given: SecretRedactor(given),
    "AutoLearner.auto_commit": lambda alma, given: AutoLearner(alma, auto_commit=given),
    "Harness.setting": lambda alma, given: Harness(given, given, alma),
}


@pytest.fixture(scope="module")
def alma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path_factory.mktemp("given") / "alma.db", "shop") as opened:
        yield opened


@pytest.mark.parametrize("name", ON_A_STORE)
@pytest.mark.parametrize("given", [None, "alma.db", 7])
def test_what_works_on_a_store_says_that_it_needs_one(alma: ALMA, name: str, given: object) -> None:
    with pytest.raises(ValidationError, match=r"storage must be an open store, as open_storage\(\) opens one"):
        ON_A_STORE[name](alma, given)


@pytest.mark.parametrize("name", ON_A_MEMORY)
@pytest.mark.parametrize("given", [None, "alma.db", 7])
def test_what_works_on_a_memory_says_that_it_needs_one(alma: ALMA, name: str, given: object) -> None:
    with pytest.raises(ValidationError, match="must be a memory"):
        ON_A_MEMORY[name](alma, given)


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("given", [None, "text"])
def test_a_part_that_is_needed_is_named_at_once(alma: ALMA, name: str, given: object) -> None:
    with pytest.raises(ValidationError, match=f"{name.partition('.')[2]} must be"):
        NEEDED[name](alma, given)


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_part_that_may_be_missing_must_not_be_something_else(alma: ALMA, name: str) -> None:
    OPTIONAL[name](alma, None)
    for given in ("text", 7):
        with pytest.raises(ValidationError, match="must be"):
            OPTIONAL[name](alma, given)


@pytest.mark.parametrize("days", [0, -1, True, float("nan"), float("inf")])
def test_evidence_has_a_half_life_above_zero(days: float) -> None:
    with pytest.raises(ValidationError, match="half_life_days must be a number above 0"):
        HeuristicExtractor(days)
