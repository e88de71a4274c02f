"""Memory events: type, memory and owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from alma.clock import new_id, now
from alma.errors import ValidationError
from alma.model.common import checked_name
from alma.model.fields import JsonObject
from alma.storage.transactional import Change


class MemoryEventType(StrEnum):
    """The kind of change."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    ARCHIVED = "archived"
    RESTORED = "restored"
    CONSOLIDATED = "consolidated"


TYPE_OF_ACTION = {
    "create": MemoryEventType.CREATED,
    "update": MemoryEventType.UPDATED,
    "delete": MemoryEventType.DELETED,
    "archive": MemoryEventType.ARCHIVED,
    "restore": MemoryEventType.RESTORED,
}


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """A change of one memory.

    `memory_type` is the kind of record ("heuristic", "outcome", …). The event does not contain the text of the memory;
    `author` and `reason` are those of the write, and `payload` has further facts of the event type.
    """

    event_type: MemoryEventType
    memory_type: str
    memory_id: str
    project_id: str | None = None
    agent: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    author: str | None = None
    reason: str | None = None
    payload: JsonObject = field(default_factory=dict)
    timestamp: datetime = field(default_factory=now)
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_type", checked_type(self.event_type))
        for name in ("memory_type", "memory_id"):
            checked_name("event", name, getattr(self, name))

    @classmethod
    def of(cls, change: Change) -> MemoryEvent:
        """The event of a committed change; unknown actions count as updates."""
        return cls(
            event_type=TYPE_OF_ACTION.get(change.action, MemoryEventType.UPDATED),
            memory_type=change.kind,
            memory_id=change.id,
            project_id=change.project_id,
            agent=change.agent,
            user_id=change.user_id,
            session_id=change.session_id,
            author=change.by.author,
            reason=change.by.reason,
            timestamp=change.at,
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MemoryEvent:
        """The event in a webhook's body; missing fields get their defaults."""
        known = {each.name for each in fields(cls)}
        told = {name: value for name, value in document.items() if name in known and value is not None}
        for name in ("event_type", "memory_type", "memory_id"):
            if name not in told:
                raise ValidationError("event", name, None, "is missing")
        if "timestamp" in told:
            told["timestamp"] = _moment(told["timestamp"])
        return cls(**told)

    def to_dict(self) -> JsonObject:
        """The event as a JSON object, which is also the webhook's body."""
        return {
            "id": self.id,
            "event_type": str(self.event_type),
            "memory_type": self.memory_type,
            "memory_id": self.memory_id,
            "project_id": self.project_id,
            "agent": self.agent,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "author": self.author,
            "reason": self.reason,
            "payload": dict(self.payload),
            "timestamp": self.timestamp.isoformat(),
        }


def _moment(value: Any) -> datetime:
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValidationError("event", "timestamp", value, "must be an ISO 8601 time") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def checked_type(value: Any) -> MemoryEventType:
    """The event type, or an error that lists the types."""
    try:
        return MemoryEventType(value)
    except ValueError:
        known = ", ".join(MemoryEventType)
        raise ValidationError("event", "event_type", value, f"must be one of {known}") from None


def checked_types(values: Any) -> tuple[MemoryEventType, ...]:
    """Event types, given as one or several; empty for all."""
    if values is None:
        return ()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (checked_type(values),)
    return tuple(dict.fromkeys(checked_type(value) for value in values))
