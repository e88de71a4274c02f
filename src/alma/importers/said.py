"""Turns of conversations and other entries, as memories that are found like those that ALMA made itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from alma.importers.base import ImportOptions, Item, RowRefused
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.workspace import Session

IMPORT = "import"
"""The key in a record's context that says where it came from."""


def placed(options: ImportOptions, **fields: Any) -> dict[str, Any]:
    """Whose a memory is, and from where it is seen: in its project, else wherever its user goes."""
    user = fields.pop("user_id", None) or options.user_id
    agent = fields.pop("source_agent", None) or options.agent
    project = fields.pop("project_id", None) or options.project_id
    return {
        **fields,
        "user_id": user,
        "project_id": project,
        "source_agent": agent,
        "layer_session": fields.get("session_id") is not None,
        "layer_project": project is not None,
        "layer_global": project is None and user is not None,
    }


def a_memory(
    options: ImportOptions, *, system: str, speaker: str = "", said_at: datetime | None = None, **fields: Any
) -> Memory:
    """A memory with the times that the source gives; `said_at` makes it a turn of a conversation."""
    if not str(fields.get("content", "")).strip():
        raise RowRefused("it has no text")
    fields = {name: value for name, value in fields.items() if value is not None}
    created = fields.pop("created_at", None) or said_at
    if created is not None:
        fields = {"updated_at": created, "last_accessed_at": created, **fields, "created_at": created}
    known = placed(options, **fields)
    known = {"source_tool": system, **known}
    if speaker or said_at is not None:
        return Memory.said(speaker, known.pop("content"), said_at, **known)
    return Memory(**known)


def times(created: datetime | None, changed: datetime | None = None, *, active: bool = False) -> dict[str, Any]:
    """The fields for when something was made and last changed; where the source does not say, none."""
    if created is None:
        return {}
    last = changed or created
    return {"created_at": created, "updated_at": last, **({"last_active_at": last} if active else {})}


def a_mentioned_session(session_id: str, options: ImportOptions, system: str, created: datetime | None) -> Item:
    """A session that a row names and says nothing more about."""
    session = Session(
        id=session_id,
        user_id=options.user_id,
        project_id=options.project_id,
        context_json={IMPORT: {"system": system, "mentioned": True}},
        **times(created, active=True),
    )
    return Item(session, mention=True)


def is_mention(record: Record) -> bool:
    """Whether all that is known of a record is that some row named it."""
    context = record.values().get("context_json") or record.values().get("profile_json")
    known = context.get(IMPORT) if isinstance(context, dict) else None
    return isinstance(known, dict) and bool(known.get("mentioned"))
