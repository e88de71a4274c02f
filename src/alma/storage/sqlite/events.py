"""Audit events on SQLite: of those that one writer leaves, all but the record and the moment is spelled once."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from alma.model.governance import Attribution, AuditEvent
from alma.storage.audit import audit_event
from alma.storage.chain import spelled, statement_around
from alma.storage.sql.statements import Dialect
from alma.storage.sqlite.rows import writing

_DIFFERING = ("resource_id", "created_at")
_PLACE = ("chain", "chain_position", "chain_hash")
_ANY_TIME = datetime(1, 1, 1, tzinfo=UTC)
_STATEMENTS = Dialect("sqlite").kind(AuditEvent.spec)


class EventForm(NamedTuple):
    """The event that a write of one record leaves, but for which record it is and when that was.

    `sql` takes the `values`, then those two, then the event's place in its chain.
    """

    sql: str
    values: tuple[Any, ...]
    before: str
    between: str
    after: str

    def statement(self, key: str, moment: str) -> str:
        """What is hashed of the event."""
        return f"{self.before}{spelled(key)}{self.between}{spelled(moment)}{self.after}"


@lru_cache(maxsize=256)
def event_form(by: Attribution, action: str, kind: str) -> EventForm:
    """The form of the events that somebody's writes of a kind leave."""
    event = audit_event(kind, action, ("",), by, _ANY_TIME)
    row = dict(zip(_STATEMENTS.columns, _STATEMENTS.row_of({**event, **dict.fromkeys(_PLACE)}), strict=True))
    # The driver asks around how to adapt a missing value, so it is left out.
    filled = {name: value for name, value in row.items() if value is not None and name not in _DIFFERING}
    sql = writing(_STATEMENTS.table, (*filled, *_DIFFERING, *_PLACE))
    return EventForm(sql, tuple(filled.values()), *statement_around(event, _DIFFERING))
