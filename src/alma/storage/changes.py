"""Changes: what a commit did to records, for those who want to be told of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from alma.model.governance import Attribution
from alma.model.record import Record, RecordSpec

_log = logging.getLogger("alma.storage")

Act = tuple[str, RecordSpec, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Change:
    """One record that a committed transaction changed, whose it is, and who did it.

    `action` is what the audit log calls it: create, update, delete, or archive and restore where a record went to the
    archive or came back.
    """

    kind: str
    id: str
    action: str
    project_id: str | None
    agent: str | None
    user_id: str | None
    session_id: str | None
    by: Attribution
    at: datetime


Listener = Callable[[Sequence[Change]], object]


def changes_of(acts: Sequence[Act], by: Attribution, at: datetime) -> list[Change]:
    """The changes that these acts of one transaction made, in their order."""
    return [change for action, spec, records in acts for change in _changes(action, spec, records, by, at)]


def tell(listeners: Sequence[Listener], changes: Sequence[Change]) -> None:
    """Hand the changes to each listener; what is committed stays committed, whatever a listener does."""
    for listener in listeners:
        try:
            listener(changes)
        except Exception:  # noqa: BLE001 - the write is done and must not seem to have failed
            _log.exception("a listener failed after a commit", extra={"changes": len(changes)})


def _changes(
    action: str, spec: RecordSpec, records: Sequence[Record], by: Attribution, at: datetime
) -> Iterator[Change]:
    for record in records:
        yield Change(
            kind=spec.kind,
            id=str(spec.key_of(record)),
            action=action,
            project_id=getattr(record, "project_id", None),
            agent=getattr(record, "agent", None),
            user_id=getattr(record, "user_id", None),
            session_id=getattr(record, "session_id", None),
            by=by,
            at=at,
        )
