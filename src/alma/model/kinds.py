"""The list of all record kinds, in the order in which their tables are created."""

from __future__ import annotations

from alma.errors import ValidationError
from alma.model.governance import (
    ApiKey,
    ArchivedRecord,
    AuditEvent,
    BenefitTrial,
    KeptAnswer,
    MergeMark,
    ServedText,
    Setting,
    StoredWebhook,
)
from alma.model.graph import GraphAlias, GraphEntity, GraphRelationship
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import (
    FactRelationship,
    Memory,
    MemoryAccess,
    MemoryRelationship,
    MemoryVersion,
    ProjectPattern,
)
from alma.model.record import Record, RecordSpec, Reference
from alma.model.workspace import (
    AgentState,
    ProgressLog,
    Project,
    Session,
    SessionHandoff,
    SessionMemory,
    User,
    WorkItem,
)

KINDS: tuple[type[Record], ...] = (
    Heuristic,
    Outcome,
    UserPreference,
    DomainKnowledge,
    AntiPattern,
    User,
    Project,
    Session,
    Memory,
    MemoryAccess,
    MemoryRelationship,
    MemoryVersion,
    SessionMemory,
    ProjectPattern,
    SessionHandoff,
    WorkItem,
    ProgressLog,
    AgentState,
    Setting,
    AuditEvent,
    ArchivedRecord,
    ServedText,
    MergeMark,
    GraphEntity,
    GraphAlias,
    GraphRelationship,
    ApiKey,
    KeptAnswer,
    FactRelationship,
    BenefitTrial,
    StoredWebhook,
)

_BY_KIND = {cls.spec.kind: cls for cls in KINDS}


def kind_named(kind: str) -> type[Record]:
    """The record class with this kind name."""
    try:
        return _BY_KIND[kind]
    except (KeyError, TypeError):
        raise ValidationError("kind", None, kind, f"must be one of {', '.join(_BY_KIND)}") from None


def references_to(kind: str) -> tuple[tuple[RecordSpec, Reference], ...]:
    """All fields of any kind that reference this kind."""
    return tuple((cls.spec, ref) for cls in KINDS for ref in cls.spec.references if ref.kind == kind)
