"""General memories: the record, its versions, its relationships and the patterns of a project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Annotated, Any

from alma.clock import new_id, now
from alma.model.common import Count, Floats, Label, Name, Prose, Share, Strings, TagSet, Text
from alma.model.fields import JsonObject, Range, derived, following
from alma.model.record import Index, OnDelete, Record, Reference, Unique, record

INSTRUCTION_TYPES = ("instruction", "standing_instruction")
"""The types of general memories that are included in every slice."""


class Layer(StrEnum):
    """The layer of a general memory, which decides where it is visible."""

    SESSION = "session"
    PROJECT = "project"
    GLOBAL = "global"
    TEMPORAL = "temporal"


class ChangeType(StrEnum):
    """The kind of change that created a version."""

    CREATED = "created"
    UPDATED = "updated"
    MERGED = "merged"
    ARCHIVED = "archived"
    RESTORED = "restored"
    DELETED = "deleted"


def priority_of(importance_score: float) -> int:
    """The priority from 1 to 10 for an importance from 0 to 1."""
    return 1 + round(importance_score * 9)


def importance_of(priority: int) -> float:
    """The importance from 0 to 1 for a priority from 1 to 10."""
    return (priority - 1) / 9


@record(
    "memory",
    table="memories",
    text=("title", "content", "summary"),
    embeds=True,
    versioned=True,
    indexes=(
        Index("idx_memories_user", ("user_id",), where="user_id IS NOT NULL"),
        Index("idx_memories_project", ("project_id",), where="project_id IS NOT NULL"),
        Index("idx_memories_session", ("session_id",), where="session_id IS NOT NULL"),
        Index("idx_memories_type", ("memory_type",)),
        Index("idx_memories_category", ("category",), where="category IS NOT NULL"),
        Index("idx_memories_importance", ("importance_score DESC",)),
        # Times ascend, although queries want the newest first: indexes are read in both directions, and appending at
        # the end keeps their pages full.
        Index("idx_memories_last_accessed", ("last_accessed_at",)),
        Index("idx_memories_created", ("created_at",)),
        Index("idx_memories_layers", ("layer_session", "layer_project", "layer_global", "layer_temporal")),
        Index("idx_memories_user_project_type", ("user_id", "project_id", "memory_type"), where="user_id IS NOT NULL"),
        Index("idx_memories_project_type", ("project_id", "memory_type", "created_at", "id DESC")),
        # In the order of keyset pagination through the memories of a project or a user.
        Index("idx_memories_project_created", ("project_id", "created_at", "id DESC")),
        Index("idx_memories_user_created", ("user_id", "created_at", "id DESC"), where="user_id IS NOT NULL"),
        # Global memories of a user are searched with every task, and are few.
        Index("idx_memories_user_global", ("user_id", "layer_global"), where="user_id IS NOT NULL"),
        Index("idx_memories_layers_importance", ("layer_global", "layer_project", "importance_score DESC")),
        Index("idx_memories_recent_important", ("created_at", "importance_score"), where="is_archived IS FALSE"),
        Index("idx_memory_entries_expires_at", ("expires_at",), where="expires_at IS NOT NULL"),
        Index("idx_memory_entries_source_agent", ("source_agent",), where="source_agent IS NOT NULL"),
        Index("idx_memory_entries_content", ("content_json",), only="postgresql:gin"),
    ),
    references=(Reference("session_id", "session", OnDelete.CLEAR),),
)
class Memory(Record):
    """A general memory: something said, decided, done or noticed."""

    id: Name = field(default_factory=new_id)
    user_id: Name | None = None
    project_id: Name | None = None
    session_id: Name | None = None
    title: Prose = ""
    content: Text
    content_json: JsonObject | None = None
    summary: Prose | None = None
    memory_type: Name = "note"
    category: Label | None = None
    tags: TagSet = ()
    importance_score: Share = 0.5
    priority: Annotated[int, Range(1, 10)] = derived("importance_score", priority_of, importance_of, default=None)
    decay_rate: Share = 0.1
    access_count: Count = 0
    last_accessed_at: datetime = following("created_at", default_factory=now)
    context_json: JsonObject = field(default_factory=dict)
    git_context_json: JsonObject = field(default_factory=dict)
    layer_session: bool = False
    layer_project: bool = False
    layer_global: bool = False
    layer_temporal: bool = False
    source_agent: Name | None = None
    source_tool: Label | None = None
    provenance: Name | None = None
    external_id: Label | None = None
    is_private: bool = False
    is_archived: bool = False
    is_active: bool = True
    expires_at: datetime | None = None
    event_time: datetime | None = None
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    embedding: Floats | None = None

    @property
    def true_from(self) -> datetime:
        """The time since which it holds: `valid_from`, else the event time, else the creation time."""
        return self.valid_from or self.event_time or self.created_at

    @property
    def layers(self) -> frozenset[Layer]:
        """The layers this memory is assigned to."""
        return frozenset(layer for layer in Layer if getattr(self, f"layer_{layer}"))

    @classmethod
    def said(cls, speaker: str, content: str, moment: datetime | None = None, **fields: Any) -> Memory:
        """A memory of a conversation turn. The speaker and the day become its title, so that queries that name either
        find it.
        """
        day = "" if moment is None else f"({moment.day} {moment:%B %Y})"
        title = " ".join(part for part in (speaker, day) if part)
        return cls(title=title, content=content, event_time=moment, **{"memory_type": "conversation", **fields})

    def in_layers(self, layers: Iterable[Layer | str]) -> Memory:
        """A copy assigned to exactly these layers."""
        chosen = {Layer(layer) for layer in layers}
        return self.replace(**{f"layer_{layer}": layer in chosen for layer in Layer})


@record(
    "memory_access",
    table="memory_accesses",
    audited=False,
    indexes=(Index("idx_memory_accesses_memory", ("memory_id",)),),
    references=(Reference("memory_id", "memory", OnDelete.CASCADE),),
)
class MemoryAccess(Record):
    """The counts of reads of a memory by one session, and of its reports that the memory helped or did not.

    Without a session it has the reports from outside of sessions. The id is computed from memory and session.
    """

    id: Name
    memory_id: Name
    session_id: Name | None = None
    access_count: Count = 0
    helpful_count: Count = 0
    unhelpful_count: Count = 0
    last_accessed_at: datetime = field(default_factory=now)

    @staticmethod
    def id_of(memory_id: str, session_id: str | None) -> str:
        """The id for a memory and a session, the same in every process."""
        text = memory_id if session_id is None else f"{memory_id}\n{session_id}"
        return blake2b(text.encode(), digest_size=16).hexdigest()


@record(
    "memory_relationship",
    table="memory_relationships",
    postgres_table="alma_memory_relationships",
    versioned=True,
    unique=(Unique("unique_memory_relationship", ("from_memory_id", "to_memory_id", "relationship_type")),),
    distinct=(("from_memory_id", "to_memory_id"),),
    indexes=(
        Index("idx_memory_relationships_from", ("from_memory_id",)),
        Index("idx_memory_relationships_to", ("to_memory_id",)),
        Index("idx_memory_relationships_type", ("relationship_type",)),
        Index("idx_memory_relationships_strength", ("strength DESC",)),
        Index("idx_memory_relationships_auto", ("auto_detected",)),
    ),
    references=(
        Reference("from_memory_id", "memory", OnDelete.CASCADE, must_exist=True),
        Reference("to_memory_id", "memory", OnDelete.CASCADE, must_exist=True),
    ),
)
class MemoryRelationship(Record):
    """A relationship between two memories."""

    id: Name = field(default_factory=new_id)
    from_memory_id: Name
    to_memory_id: Name
    relationship_type: Name
    strength: Share = 1.0
    context: Prose | None = None
    auto_detected: bool = False
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    created_by: Name | None = None


@record(
    "fact_relationship",
    table="fact_relationships",
    postgres_table="alma_fact_relationships",
    versioned=True,
    distinct=(("from_memory_id", "to_memory_id"),),
    indexes=(
        Index("idx_fact_relationships_from", ("from_memory_id",)),
        Index("idx_fact_relationships_to", ("to_memory_id",)),
        Index("idx_fact_relationships_owner", ("project_id", "agent")),
        Index("idx_fact_relationships_user", ("user_id",), where="user_id IS NOT NULL"),
    ),
)
class FactRelationship(Record):
    """A relationship between two facts or user preferences of one kind and owner; `kind` is that kind.

    A relationship holds while neither end is in the archive.
    """

    id: Name = field(default_factory=new_id)
    kind: Name
    user_id: Name | None = None
    project_id: Name | None = None
    agent: Name | None = None
    from_memory_id: Name
    to_memory_id: Name
    relationship_type: Name
    strength: Share = 1.0
    context: Prose | None = None
    auto_detected: bool = False
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    created_by: Name | None = None


@record(
    "memory_version",
    table="memory_versions",
    audited=False,
    append_only=True,
    unique=(Unique("idx_memory_versions_memory", ("memory_id", "version_number", "kind")),),
    # Reads of the past select the versions changed since then; most records never change.
    indexes=(Index("idx_memory_versions_created", ("created_at",), where="version_number > 1"),),
)
class MemoryVersion(Record):
    """A version: the state of a record after a change, and who made the change, when and why.

    The newest version's content is the record itself; it is copied here when the next change replaces it: the title,
    content and summary of a general memory into their columns, everything else into `record_json`. `diff_json` has the
    previous values of the changed fields. The store assigns the id.
    """

    id: int | None = None
    kind: Name
    memory_id: Name
    version_number: Annotated[int, Range(1)]
    title: Prose | None = None
    content: Prose | None = None
    summary: Prose | None = None
    change_type: ChangeType
    change_reason: Prose | None = None
    diff_json: JsonObject | None = None
    record_json: JsonObject | None = None
    created_at: datetime = field(default_factory=now)
    created_by: Name | None = None


@record(
    "project_pattern",
    table="project_patterns",
    text=("pattern_name", "pattern_description"),
    embeds=True,
    unique=(Unique("unique_project_pattern", ("project_id", "pattern_type", "pattern_name")),),
    indexes=(
        Index("idx_project_patterns_project", ("project_id",)),
        Index("idx_project_patterns_type", ("pattern_type",)),
        Index("idx_project_patterns_success", ("success_rate DESC",)),
        Index("idx_project_patterns_usage", ("usage_count DESC",)),
    ),
)
class ProjectPattern(Record):
    """A recurring pattern of a project."""

    id: Name = field(default_factory=new_id)
    project_id: Name
    pattern_type: Name
    pattern_name: Name
    pattern_description: Text
    pattern_data_json: JsonObject = field(default_factory=dict)
    success_rate: Share = 1.0
    usage_count: Count = 1
    memory_ids: Strings = ()
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    last_used_at: datetime = following("created_at", default_factory=now)
    embedding: Floats | None = None
