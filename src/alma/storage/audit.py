"""Audit events: what a write leaves in the log of who did what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from alma.model.governance import Attribution
from alma.model.record import Record, RecordSpec

_IDS_PER_AUDIT_EVENT = 500


def audit_events(
    spec: RecordSpec, action: str, records: Sequence[Record], by: Attribution, moment: datetime
) -> Iterator[dict[str, Any]]:
    """The values of one event for one record; a batch is one act and gets one event that lists the ids."""
    keys = list(map(spec.key_of, records))
    for start in range(0, len(keys), _IDS_PER_AUDIT_EVENT):
        yield audit_event(spec.kind, action, keys[start : start + _IDS_PER_AUDIT_EVENT], by, moment)


def audit_event(kind: str, action: str, keys: Sequence[str], by: Attribution, moment: datetime) -> dict[str, Any]:
    """The values of the event that these records leave together."""
    return {
        "id": None,
        "user_id": by.user_id,
        "session_id": by.session_id,
        "agent_id": by.agent,
        "action": action,
        "resource_type": kind,
        "resource_id": keys[0] if len(keys) == 1 else "*",
        "resource_ids": None if len(keys) == 1 else tuple(keys),
        "details_json": None if by.reason is None else {"reason": by.reason},
        "success": True,
        "error_message": None,
        "ip_address": by.ip_address,
        "user_agent": by.user_agent,
        "created_at": moment,
    }
