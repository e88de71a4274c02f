"""Rows: records of every kind in one shape, for lists that people look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from alma.clock import now
from alma.learning.policy import PINNED
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.provenance import Trust, provenance_of, trust_in
from alma.model.record import Record
from alma.operations.base import Output
from alma.operations.places import CREATED

LONGEST_ROW_TEXT = 400


class Row(Output):
    """A record of any kind, with the fields that all kinds have in some form."""

    kind: str
    id: str
    title: str = Field("", description="The task, condition, domain or title.")
    text: str = Field(description="What it says; long texts are cut.")
    is_cut: bool = Field(False, description="Whether the text is longer.")
    agent: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    type: str | None = Field(None, description="The memory type, task type, domain or category.")
    tags: Sequence[str] = ()
    source: str | None = Field(None, description="The source of a fact or preference, or the tool of a memory.")
    provenance: str | None = Field(None, description="Where the text comes from: user, agent, tool, web, import …")
    trust: Trust = Field("unknown", description="Of the provenance: trusted, untrusted, or unknown.")
    confidence: float | None = None
    importance: float | None = None
    tried: int | None = None
    succeeded: int | None = None
    success: bool | None = None
    pinned: bool = False
    state: str = Field("active", description="active, archived, deleted or expired; or why it is in the archive.")
    created_at: datetime | None = None
    updated_at: datetime | None = None


def row_of(record: Record, longest: int = LONGEST_ROW_TEXT) -> Row:
    """The row of a record."""
    title, text, fields = _described(record)
    return Row(
        kind=record.spec.kind,
        id=str(record.key),
        title=title[:longest],
        text=text[:longest],
        is_cut=max(len(text), len(title)) > longest,
        user_id=getattr(record, "user_id", None),
        project_id=getattr(record, "project_id", None),
        pinned=_has_pin(record),
        provenance=provenance_of(record),
        trust=trust_in(provenance_of(record)),
        created_at=getattr(record, CREATED[type(record)], None) if type(record) in CREATED else None,
        **{"agent": getattr(record, "agent", None), **fields},
    )


def _has_pin(record: Record) -> bool:
    """Whether a person pinned the record; what is never forgotten for another reason has no pin."""
    if isinstance(record, Memory):
        return PINNED in record.tags or record.context_json.get(PINNED) is True
    return getattr(record, "metadata", {}).get(PINNED) is True


def text_field(cls: type[Record]) -> str:
    """The field with the statement of a record."""
    return _TEXT_FIELDS[cls]


_TEXT_FIELDS: Mapping[type[Record], str] = {
    Memory: "content",
    Heuristic: "strategy",
    Outcome: "task_description",
    DomainKnowledge: "fact",
    AntiPattern: "pattern",
    UserPreference: "preference",
}


def _described(record: Record) -> tuple[str, str, dict[str, Any]]:
    """The title, the text and the fields of a kind."""
    match record:
        case Memory():
            return record.title or "", record.content, _of_memory(record)
        case Heuristic():
            counts = {"tried": record.occurrence_count, "succeeded": record.success_count}
            return record.condition, record.strategy, {**counts, **_sure(record), "updated_at": record.last_validated}
        case Outcome():
            facts = {"type": record.task_type, "success": record.success}
            return record.strategy_used or "", record.task_description, facts
        case DomainKnowledge():
            return record.domain or "", record.fact, {"type": record.domain, "source": record.source, **_sure(record)}
        case AntiPattern():
            return (
                record.why_bad or "",
                record.pattern,
                {"tried": record.occurrence_count, "updated_at": record.last_seen},
            )
        case UserPreference():
            facts = {"type": record.category, "source": record.source, **_sure(record)}
            return record.category or "", record.preference, facts
    return "", record.text(), {}


def _sure(record: Any) -> dict[str, Any]:
    return {"confidence": record.confidence}


def _of_memory(record: Memory) -> dict[str, Any]:
    return {
        "agent": record.source_agent,
        "session_id": record.session_id,
        "type": record.memory_type,
        "tags": list(record.tags),
        "source": record.source_tool,
        "importance": record.importance_score,
        "state": _state(record),
        "updated_at": record.updated_at,
    }


def _state(record: Memory) -> str:
    if not record.is_active:
        return "deleted"
    if record.is_archived:
        return "archived"
    return "expired" if record.expires_at is not None and record.expires_at <= now() else "active"
