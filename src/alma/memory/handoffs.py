"""Handoffs from a session to the next one, noted while it runs and written when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from alma.errors import ValidationError
from alma.model.fields import JsonObject
from alma.model.query import EVERYTHING, Compare, Cursor, Order, Predicate
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionHandoff, SessionOutcome
from alma.storage.base import StorageBackend, Transaction, checked_storage

NOTES = "handoff"
"""The key of a session's working context that holds its notes."""

_NEWEST_FIRST = (Order("created_at", "desc"),)
_MAX_SUMMARY_LENGTH = 500
_PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of a session for the next one so far."""

    last_action: str | None = None
    last_outcome: SessionOutcome = SessionOutcome.UNKNOWN
    current_goal: str | None = None
    key_decisions: tuple[str, ...] = ()
    active_files: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    risk_flags: tuple[str, ...] = ()
    confidence_level: float = 0.5
    test_status: JsonObject = field(default_factory=dict)

    @classmethod
    def of(cls, session: Session) -> Notes:
        """The notes of a session."""
        stored = session.context_json.get(NOTES)
        return cls().changed(stored) if isinstance(stored, Mapping) else cls()

    def changed(self, given: Mapping[str, Any]) -> Notes:
        """The notes with the given values that are not None."""
        known = {each.name for each in fields(self)}
        changes = {name: value for name, value in given.items() if value is not None and name in known}
        if "last_outcome" in changes:
            changes["last_outcome"] = SessionOutcome.parse(changes["last_outcome"])
        for name in _LISTS & changes.keys():
            changes[name] = _texts(name, changes[name])
        return replace(self, **changes)

    def to_json(self) -> JsonObject:
        return {
            each.name: list(value) if isinstance(value, tuple) else value
            for each in fields(self)
            if (value := getattr(self, each.name)) is not None
        }

    def handoff(self, session: Session, moment: datetime, metadata: JsonObject | None = None) -> SessionHandoff:
        """The handoff of a session that has an agent and a project."""
        assert session.project_id is not None
        assert session.agent is not None
        return SessionHandoff(
            project_id=session.project_id,
            agent=session.agent,
            session_id=session.id,
            goal=session.goal,
            last_action=self.last_action or session.summary or session.goal or session.name or "ended",
            last_outcome=self.last_outcome,
            current_goal=self.current_goal or session.goal,
            key_decisions=self.key_decisions,
            active_files=self.active_files,
            blockers=self.blockers,
            next_steps=self.next_steps,
            confidence_level=self.confidence_level,
            risk_flags=self.risk_flags,
            test_status=self.test_status,
            duration_ms=max(0, round((moment - session.created_at).total_seconds() * 1000)),
            metadata=metadata or {},
            created_at=moment,
        )


_LISTS = {"key_decisions", "active_files", "blockers", "next_steps", "risk_flags"}


class Handoffs:
    """The handoffs of a store, newest first."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = checked_storage("handoffs", storage)

    def latest(self, scope: Scope, where: Predicate = EVERYTHING) -> SessionHandoff | None:
        """The newest handoff inside the scope that matches, or None.

        A handoff belongs to the user of its session; the handoff of a deleted session belongs to no user.
        """
        if scope.user_id is None:
            return next(iter(self._storage.find(SessionHandoff, scope, where, _NEWEST_FIRST, limit=1)), None)
        owner, scope = Scope(user_id=scope.user_id), replace(scope, user_id=None)
        after: Cursor | None = None
        with self._storage.snapshot() as tx:
            while page := tx.find(SessionHandoff, scope, where, _NEWEST_FIRST, _PAGE_SIZE, after):
                owned = tx.get_many(Session, {handoff.session_id for handoff in page}, owner)
                ids = {session.id for session in owned}
                found = next((handoff for handoff in page if handoff.session_id in ids), None)
                if found is not None:
                    return found
                after = Cursor.after(page[-1], _NEWEST_FIRST)
        return None

    def find(self, scope: Scope, limit: int | None = None) -> list[SessionHandoff]:
        """The handoffs inside the scope."""
        return self._storage.find(SessionHandoff, scope, order=_NEWEST_FIRST, limit=limit)


def has_handoff(tx: Transaction, session: Session) -> bool:
    """Whether a session has created a handoff."""
    return tx.count(SessionHandoff, Scope.everywhere(), Compare("session_id", "eq", session.id)) > 0


def summary_of(handoff: SessionHandoff) -> str:
    """A handoff in one line, as the summary of a session without one."""
    steps = f"; next: {', '.join(handoff.next_steps)}" if handoff.next_steps else ""
    line = " ".join(f"{handoff.last_action} ({handoff.last_outcome}){steps}".split())
    return line if len(line) <= _MAX_SUMMARY_LENGTH else line[: _MAX_SUMMARY_LENGTH - 1] + "…"


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """A single text counts as a list of one, because a str would be read as a list of letters."""
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else (None,)
    if not all(isinstance(text, str) for text in texts):
        raise ValidationError("session_handoff", name, value, "must be a list of texts")
    return tuple(dict.fromkeys(text for text in texts if text.strip()))
