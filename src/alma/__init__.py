"""ALMA: memory for AI agents that learn from what happened.

Names are loaded when they are first used, so that `import alma` costs nothing and needs no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.bootstrap import create_cache as create_cache
    from alma.bootstrap import create_embedder as create_embedder
    from alma.bootstrap import open_storage as open_storage
    from alma.core import ALMA as ALMA
    from alma.errors import ALMAError as ALMAError
    from alma.errors import ConfigurationError as ConfigurationError
    from alma.errors import ConflictError as ConflictError
    from alma.errors import DamagedFileError as DamagedFileError
    from alma.errors import EmbeddingError as EmbeddingError
    from alma.errors import ExtractionError as ExtractionError
    from alma.errors import IndexUnavailable as IndexUnavailable
    from alma.errors import LanguageModelError as LanguageModelError
    from alma.errors import MigrationError as MigrationError
    from alma.errors import MissingDependencyError as MissingDependencyError
    from alma.errors import ModelMismatchError as ModelMismatchError
    from alma.errors import NotFoundError as NotFoundError
    from alma.errors import ProviderError as ProviderError
    from alma.errors import RetrievalError as RetrievalError
    from alma.errors import ScopeViolationError as ScopeViolationError
    from alma.errors import StorageError as StorageError
    from alma.errors import StorageFullError as StorageFullError
    from alma.errors import UniquenessError as UniquenessError
    from alma.errors import UnsupportedOperation as UnsupportedOperation
    from alma.errors import ValidationError as ValidationError
    from alma.model.governance import Attribution as Attribution
    from alma.model.governance import AuditEvent as AuditEvent
    from alma.model.governance import Setting as Setting
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
    from alma.model.query import Compare as Compare
    from alma.model.query import Cursor as Cursor
    from alma.model.query import Has as Has
    from alma.model.query import In as In
    from alma.model.query import Missing as Missing
    from alma.model.query import Or as Or
    from alma.model.query import Order as Order
    from alma.model.scope import MemoryScope as MemoryScope
    from alma.model.scope import Scope as Scope
    from alma.model.slice import MemorySlice as MemorySlice
    from alma.model.vector import Vector as Vector
    from alma.model.workspace import AgentState as AgentState
    from alma.model.workspace import Project as Project
    from alma.model.workspace import Session as Session
    from alma.model.workspace import SessionHandoff as SessionHandoff
    from alma.model.workspace import SessionMemory as SessionMemory
    from alma.model.workspace import User as User
    from alma.model.workspace import WorkItem as WorkItem
    from alma.model.workspace import WorkItemStatus as WorkItemStatus
    from alma.retrieval.engine import RetrievalEngine as RetrievalEngine
    from alma.retrieval.scoring import ScoringWeights as ScoringWeights
    from alma.retrieval.writing import MemoryWriter as MemoryWriter

__version__ = "1.0.0.dev0"

_HOMES = {
    "alma.core": ("ALMA",),
    "alma.model.learning": ("Heuristic", "Outcome", "UserPreference", "DomainKnowledge", "AntiPattern"),
    "alma.model.memory": ("Memory", "MemoryRelationship", "MemoryVersion", "ProjectPattern", "Layer", "ChangeType"),
    "alma.model.workspace": (
        "User",
        "Project",
        "Session",
        "SessionMemory",
        "SessionHandoff",
        "WorkItem",
        "WorkItemStatus",
        "AgentState",
    ),
    "alma.model.governance": ("AuditEvent", "Attribution", "Setting", "SettingType"),
    "alma.model.query": ("Compare", "In", "Missing", "Has", "And", "Or", "Order", "Cursor"),
    "alma.model.scope": ("Scope", "MemoryScope"),
    "alma.model.slice": ("MemorySlice",),
    "alma.retrieval.engine": ("RetrievalEngine",),
    "alma.retrieval.scoring": ("ScoringWeights",),
    "alma.retrieval.writing": ("MemoryWriter",),
    "alma.model.vector": ("Vector",),
    "alma.bootstrap": ("create_cache", "create_embedder", "open_storage"),
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
        "MigrationError",
        "UnsupportedOperation",
        "DamagedFileError",
        "StorageFullError",
        "ProviderError",
        "EmbeddingError",
        "LanguageModelError",
        "IndexUnavailable",
        "ExtractionError",
        "RetrievalError",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted(__all__)
