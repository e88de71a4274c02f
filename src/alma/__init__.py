"""ALMA: memory for AI agents that learn from what happened.

Names are loaded when they are first used, so that `import alma` costs nothing and needs no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.compat.names import install
from alma.lazy import loader

if TYPE_CHECKING:
    from alma.aio import AsyncALMA as AsyncALMA
    from alma.bootstrap import create_cache as create_cache
    from alma.bootstrap import create_embedder as create_embedder
    from alma.bootstrap import open_storage as open_storage
    from alma.bootstrap.providers import create_graph_store as create_graph_store
    from alma.bootstrap.providers import create_language_model as create_language_model
    from alma.confidence import ConfidenceEngine as ConfidenceEngine
    from alma.confidence import ConfidenceSignal as ConfidenceSignal
    from alma.confidence import OpportunitySignal as OpportunitySignal
    from alma.confidence import RiskSignal as RiskSignal
    from alma.consolidation import ConsolidationEngine as ConsolidationEngine
    from alma.consolidation import ConsolidationResult as ConsolidationResult
    from alma.consolidation import MergedGroup as MergedGroup
    from alma.core import ALMA as ALMA
    from alma.domains import DomainMemoryFactory as DomainMemoryFactory
    from alma.domains import DomainSchema as DomainSchema
    from alma.domains import EntityType as EntityType
    from alma.domains import RelationshipType as RelationshipType
    from alma.domains import get_coding_schema as get_coding_schema
    from alma.domains import get_content_creation_schema as get_content_creation_schema
    from alma.domains import get_customer_support_schema as get_customer_support_schema
    from alma.domains import get_general_schema as get_general_schema
    from alma.domains import get_research_schema as get_research_schema
    from alma.domains import get_sales_schema as get_sales_schema
    from alma.errors import ALMAError as ALMAError
    from alma.errors import AlreadyExistsError as AlreadyExistsError
    from alma.errors import ConfigurationError as ConfigurationError
    from alma.errors import ConflictError as ConflictError
    from alma.errors import ConnectionLostError as ConnectionLostError
    from alma.errors import DamagedFileError as DamagedFileError
    from alma.errors import EmbeddingError as EmbeddingError
    from alma.errors import ExtractionError as ExtractionError
    from alma.errors import FullTextMissingError as FullTextMissingError
    from alma.errors import IndexUnavailable as IndexUnavailable
    from alma.errors import LanguageModelError as LanguageModelError
    from alma.errors import MigrationError as MigrationError
    from alma.errors import MissingDependencyError as MissingDependencyError
    from alma.errors import ModelMismatchError as ModelMismatchError
    from alma.errors import NotFoundError as NotFoundError
    from alma.errors import PermissionDeniedError as PermissionDeniedError
    from alma.errors import ProviderError as ProviderError
    from alma.errors import RefusedError as RefusedError
    from alma.errors import RetrievalError as RetrievalError
    from alma.errors import ScopeViolationError as ScopeViolationError
    from alma.errors import StorageError as StorageError
    from alma.errors import StorageFullError as StorageFullError
    from alma.errors import StoreReplacedError as StoreReplacedError
    from alma.errors import TransferError as TransferError
    from alma.errors import UniquenessError as UniquenessError
    from alma.errors import UnknownOutcomeError as UnknownOutcomeError
    from alma.errors import UnsupportedOperation as UnsupportedOperation
    from alma.errors import ValidationError as ValidationError
    from alma.events import EventEmitter as EventEmitter
    from alma.events import MemoryEvent as MemoryEvent
    from alma.events import MemoryEventType as MemoryEventType
    from alma.events import WebhookConfig as WebhookConfig
    from alma.events import WebhookManager as WebhookManager
    from alma.events import WebhookStats as WebhookStats
    from alma.events import get_emitter as get_emitter
    from alma.events import verify_signature as verify_signature
    from alma.extraction import AutoLearner as AutoLearner
    from alma.harness import Agent as Agent
    from alma.harness import CodingDomain as CodingDomain
    from alma.harness import ContentDomain as ContentDomain
    from alma.harness import Context as Context
    from alma.harness import Harness as Harness
    from alma.harness import MemorySchema as MemorySchema
    from alma.harness import OperationsDomain as OperationsDomain
    from alma.harness import ResearchDomain as ResearchDomain
    from alma.harness import RunResult as RunResult
    from alma.harness import RunStatus as RunStatus
    from alma.harness import Setting as Setting
    from alma.harness import Tool as Tool
    from alma.harness import ToolType as ToolType
    from alma.harness import create_harness as create_harness
    from alma.importers import ImportOptions as ImportOptions
    from alma.importers import ImportReport as ImportReport
    from alma.importers import import_into as import_into
    from alma.ingest import EchoGuard as EchoGuard
    from alma.ingest import Ingest as Ingest
    from alma.ingest import Masked as Masked
    from alma.ingest import Redacted as Redacted
    from alma.ingest import RedactingFilter as RedactingFilter
    from alma.ingest import Redactor as Redactor
    from alma.ingest import SecretRedactor as SecretRedactor
    from alma.ingest import Written as Written
    from alma.ingest import redact_record as redact_record
    from alma.ingest import redact_text as redact_text
    from alma.integration import ClaudeAgentHooks as ClaudeAgentHooks
    from alma.integration import HelenaHooks as HelenaHooks
    from alma.integration import VictorHooks as VictorHooks
    from alma.learning.confidence_decay import ConfidenceDecayer as ConfidenceDecayer
    from alma.learning.decay import ExponentialDecay as ExponentialDecay
    from alma.learning.decay import LinearDecay as LinearDecay
    from alma.learning.decay import NoDecay as NoDecay
    from alma.learning.decay import StepDecay as StepDecay
    from alma.learning.health import MemoryHealthMonitor as MemoryHealthMonitor
    from alma.learning.heuristics import HeuristicExtractor as HeuristicExtractor
    from alma.learning.lifecycle import MemoryLifecycle as MemoryLifecycle
    from alma.learning.protocols import Learned as Learned
    from alma.learning.protocols import LearningProtocol as LearningProtocol
    from alma.learning.pruning import ForgettingEngine as ForgettingEngine
    from alma.learning.pruning import Forgotten as Forgotten
    from alma.learning.pruning import PrunePolicy as PrunePolicy
    from alma.learning.pruning import PruneReason as PruneReason
    from alma.learning.pruning import PruneSummary as PruneSummary
    from alma.learning.recommendation import Recommendation as Recommendation
    from alma.learning.schedule import CleanupScheduler as CleanupScheduler
    from alma.learning.validation import ScopeValidator as ScopeValidator
    from alma.memory import GitContext as GitContext
    from alma.memory import Journal as Journal
    from alma.memory import MemoryFilter as MemoryFilter
    from alma.memory import read_git_context as read_git_context
    from alma.memory.archive import Archive as Archive
    from alma.memory.audit import AuditTrail as AuditTrail
    from alma.memory.gaps import ContextGaps as ContextGaps
    from alma.memory.history import History as History
    from alma.memory.patterns import Patterns as Patterns
    from alma.memory.relationships import Relationships as Relationships
    from alma.memory.settings import SystemSettings as SystemSettings
    from alma.model.governance import ArchiveCause as ArchiveCause
    from alma.model.governance import ArchivedRecord as ArchivedRecord
    from alma.model.governance import Attribution as Attribution
    from alma.model.governance import AuditEvent as AuditEvent
    from alma.model.governance import MergeMark as MergeMark
    from alma.model.governance import SettingType as SettingType
    from alma.model.learning import AntiPattern as AntiPattern
    from alma.model.learning import DomainKnowledge as DomainKnowledge
    from alma.model.learning import Heuristic as Heuristic
    from alma.model.learning import Outcome as Outcome
    from alma.model.learning import UserPreference as UserPreference
    from alma.model.memory import ChangeType as ChangeType
    from alma.model.memory import Layer as Layer
    from alma.model.memory import Memory as Memory
    from alma.model.memory import MemoryRelationship as MemoryRelationship
    from alma.model.memory import MemoryVersion as MemoryVersion
    from alma.model.memory import ProjectPattern as ProjectPattern
    from alma.model.query import And as And
    from alma.model.query import At as At
    from alma.model.query import Compare as Compare
    from alma.model.query import Cursor as Cursor
    from alma.model.query import Has as Has
    from alma.model.query import In as In
    from alma.model.query import Missing as Missing
    from alma.model.query import Or as Or
    from alma.model.query import Order as Order
    from alma.model.relations import Relation as Relation
    from alma.model.scope import MemoryScope as MemoryScope
    from alma.model.scope import Scope as Scope
    from alma.model.slice import MemorySlice as MemorySlice
    from alma.model.vector import Vector as Vector
    from alma.model.workspace import AgentState as AgentState
    from alma.model.workspace import ProgressLog as ProgressLog
    from alma.model.workspace import Project as Project
    from alma.model.workspace import Session as Session
    from alma.model.workspace import SessionHandoff as SessionHandoff
    from alma.model.workspace import SessionMemory as SessionMemory
    from alma.model.workspace import SessionOutcome as SessionOutcome
    from alma.model.workspace import User as User
    from alma.model.workspace import WorkItem as WorkItem
    from alma.model.workspace import WorkItemStatus as WorkItemStatus
    from alma.progress import ProgressSummary as ProgressSummary
    from alma.progress import ProgressTracker as ProgressTracker
    from alma.retrieval.engine import RetrievalEngine as RetrievalEngine
    from alma.retrieval.scoring import ScoringWeights as ScoringWeights
    from alma.retrieval.writing import MemoryWriter as MemoryWriter
    from alma.session import CodebaseOrientation as CodebaseOrientation
    from alma.session import InitializationResult as InitializationResult
    from alma.session import RulesOfEngagement as RulesOfEngagement
    from alma.session import SessionContext as SessionContext
    from alma.session import SessionInitializer as SessionInitializer
    from alma.session import SessionManager as SessionManager
    from alma.transfer import TransferReport as TransferReport
    from alma.transfer import backup_store as backup_store
    from alma.transfer import export_store as export_store
    from alma.transfer import import_store as import_store
    from alma.transfer import merge_stores as merge_stores
    from alma.transfer import restore_store as restore_store

__version__ = "1.0.0"

_HOMES = {
    "alma.core": ("ALMA",),
    "alma.model.learning": (
        "Heuristic",
        "Outcome",
        "UserPreference",
        "DomainKnowledge",
        "AntiPattern",
    ),
    "alma.model.memory": (
        "Memory",
        "MemoryRelationship",
        "MemoryVersion",
        "ProjectPattern",
        "Layer",
        "ChangeType",
    ),
    "alma.model.workspace": (
        "User",
        "Project",
        "Session",
        "SessionMemory",
        "SessionHandoff",
        "WorkItem",
        "WorkItemStatus",
        "AgentState",
        "ProgressLog",
        "SessionOutcome",
    ),
    "alma.model.governance": (
        "AuditEvent",
        "Attribution",
        "SettingType",
        "MergeMark",
        "ArchiveCause",
        "ArchivedRecord",
    ),
    "alma.model.query": (
        "Compare",
        "In",
        "Missing",
        "Has",
        "And",
        "Or",
        "Order",
        "Cursor",
        "At",
    ),
    "alma.model.scope": (
        "Scope",
        "MemoryScope",
    ),
    "alma.model.slice": ("MemorySlice",),
    "alma.retrieval.engine": ("RetrievalEngine",),
    "alma.retrieval.scoring": ("ScoringWeights",),
    "alma.retrieval.writing": ("MemoryWriter",),
    "alma.model.vector": ("Vector",),
    "alma.bootstrap": (
        "create_cache",
        "create_embedder",
        "open_storage",
    ),
    "alma.errors": (
        "ALMAError",
        "ConfigurationError",
        "MissingDependencyError",
        "ModelMismatchError",
        "ValidationError",
        "ScopeViolationError",
        "UniquenessError",
        "NotFoundError",
        "StorageError",
        "ConflictError",
        "ConnectionLostError",
        "MigrationError",
        "UnsupportedOperation",
        "DamagedFileError",
        "StorageFullError",
        "StoreReplacedError",
        "FullTextMissingError",
        "PermissionDeniedError",
        "ProviderError",
        "EmbeddingError",
        "LanguageModelError",
        "IndexUnavailable",
        "ExtractionError",
        "RetrievalError",
        "AlreadyExistsError",
        "RefusedError",
        "TransferError",
        "UnknownOutcomeError",
    ),
    "alma.aio": ("AsyncALMA",),
    "alma.learning.protocols": (
        "Learned",
        "LearningProtocol",
    ),
    "alma.learning.recommendation": ("Recommendation",),
    "alma.learning.validation": ("ScopeValidator",),
    "alma.learning.heuristics": ("HeuristicExtractor",),
    "alma.confidence": (
        "ConfidenceEngine",
        "ConfidenceSignal",
        "OpportunitySignal",
        "RiskSignal",
    ),
    "alma.session": (
        "SessionManager",
        "SessionContext",
        "SessionInitializer",
        "InitializationResult",
        "CodebaseOrientation",
        "RulesOfEngagement",
    ),
    "alma.progress": (
        "ProgressTracker",
        "ProgressSummary",
    ),
    "alma.harness": (
        "Setting",
        "Context",
        "Agent",
        "MemorySchema",
        "Harness",
        "Tool",
        "ToolType",
        "RunResult",
        "RunStatus",
        "CodingDomain",
        "ResearchDomain",
        "ContentDomain",
        "OperationsDomain",
        "create_harness",
    ),
    "alma.domains": (
        "DomainSchema",
        "EntityType",
        "RelationshipType",
        "DomainMemoryFactory",
        "get_coding_schema",
        "get_research_schema",
        "get_sales_schema",
        "get_general_schema",
        "get_customer_support_schema",
        "get_content_creation_schema",
    ),
    "alma.consolidation": (
        "ConsolidationEngine",
        "ConsolidationResult",
        "MergedGroup",
    ),
    "alma.events": (
        "MemoryEvent",
        "MemoryEventType",
        "EventEmitter",
        "get_emitter",
        "WebhookConfig",
        "WebhookManager",
        "WebhookStats",
        "verify_signature",
    ),
    "alma.integration": (
        "ClaudeAgentHooks",
        "HelenaHooks",
        "VictorHooks",
    ),
    "alma.ingest": (
        "Ingest",
        "EchoGuard",
        "Masked",
        "Redacted",
        "RedactingFilter",
        "Redactor",
        "SecretRedactor",
        "Written",
        "redact_record",
        "redact_text",
    ),
    "alma.memory.archive": ("Archive",),
    "alma.learning.pruning": (
        "ForgettingEngine",
        "Forgotten",
        "PrunePolicy",
        "PruneReason",
        "PruneSummary",
    ),
    "alma.learning.decay": (
        "ExponentialDecay",
        "LinearDecay",
        "StepDecay",
        "NoDecay",
    ),
    "alma.learning.confidence_decay": ("ConfidenceDecayer",),
    "alma.learning.health": ("MemoryHealthMonitor",),
    "alma.learning.schedule": ("CleanupScheduler",),
    "alma.learning.lifecycle": ("MemoryLifecycle",),
    "alma.memory": (
        "Journal",
        "MemoryFilter",
        "GitContext",
        "read_git_context",
    ),
    "alma.memory.relationships": ("Relationships",),
    "alma.memory.patterns": ("Patterns",),
    "alma.memory.gaps": ("ContextGaps",),
    "alma.memory.history": ("History",),
    "alma.memory.audit": ("AuditTrail",),
    "alma.memory.settings": ("SystemSettings",),
    "alma.model.relations": ("Relation",),
    "alma.importers": (
        "import_into",
        "ImportOptions",
        "ImportReport",
    ),
    "alma.transfer": (
        "export_store",
        "import_store",
        "backup_store",
        "restore_store",
        "merge_stores",
        "TransferReport",
    ),
    "alma.bootstrap.providers": (
        "create_graph_store",
        "create_language_model",
    ),
    "alma.extraction": ("AutoLearner",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)

install()


def __dir__() -> list[str]:
    return sorted(__all__)
