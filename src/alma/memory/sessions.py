"""Sessions: create, switch, nest, end with a summary, and archive them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alma.clock import new_id, now
from alma.errors import NotFoundError, ScopeViolationError, ValidationError
from alma.memory.filters import memories_of, viewer
from alma.memory.handoffs import NOTES, Notes, has_handoff
from alma.memory.summary import summarize
from alma.memory.updates import Screen, merged, screened, without_secrets
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import Memory
from alma.model.query import And, Compare, Order
from alma.model.scope import Scope
from alma.model.workspace import Project, Session, User
from alma.storage.base import StorageBackend, Transaction, checked_storage

Summarise = Callable[[Session, Sequence[Memory]], str]
"""Makes a summary from a session and its memories, oldest first."""

_EVERYWHERE = Scope.everywhere()
_LATEST_FIRST = (Order("last_active_at", "desc"),)
_TICK = timedelta(microseconds=1)


def extractive_summary(_: Session, memories: Sequence[Memory]) -> str:
    """The default summary: the most informative sentences of the session's memories."""
    return summarize(memories).text


@dataclass(frozen=True, slots=True)
class Switched:
    """The current session, and the one that was current before."""

    session: Session
    previous: Session | None


class Sessions:
    """The sessions of a store; the current one is the open session that was active last.

    `summarise` makes the summary of a session that is ended without one; with None, none is made.
    """

    def __init__(
        self,
        storage: StorageBackend,
        summarise: Summarise | None = extractive_summary,
        screen: Screen = without_secrets,
    ) -> None:
        self._storage = checked_storage("sessions", storage)
        self._summarise = summarise
        self._screen = screen

    def create(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        agent: str | None = None,
        name: str = "",
        description: str | None = None,
        session_type: str = "conversation",
        goal: str | None = None,
        parent_session_id: str | None = None,
        working_directory: str | None = None,
        git_branch: str | None = None,
        git_commit: str | None = None,
        context: JsonObject | None = None,
        metadata: JsonObject | None = None,
        session_id: str | None = None,
        by: Attribution = ANONYMOUS,
        visible: Scope = _EVERYWHERE,
    ) -> Session:
        """Create a session and make it the current one of its user.

        If a session outside of `visible` has the id, NotFoundError is raised, so that nothing is disclosed about it.
        """
        session = Session(
            id=session_id or new_id(),
            user_id=user_id,
            project_id=project_id,
            agent=agent,
            name=name,
            description=description,
            session_type=session_type,
            goal=goal,
            parent_session_id=parent_session_id,
            working_directory=working_directory,
            git_branch=git_branch,
            git_commit=git_commit,
            context_json=context or {},
            metadata=metadata or {},
        )
        return self._storage.write(lambda tx: created(tx, self._screen(session), visible), by)

    def get(self, session_id: str, scope: Scope) -> Session | None:
        """The session with this id inside the scope, or None."""
        return self._storage.get(Session, session_id, scope)

    def require(self, session_id: str, scope: Scope) -> Session:
        """The session with this id inside the scope, or NotFoundError."""
        return self._storage.require(Session, session_id, scope)

    def find(
        self,
        scope: Scope,
        *,
        active: bool | None = None,
        archived: bool | None = False,
        session_type: str | None = None,
        limit: int | None = None,
    ) -> list[Session]:
        """The sessions inside the scope, most recently active first; archived ones only on request."""
        wanted = {"is_active": active, "is_archived": archived, "session_type": session_type}
        where = And(*(Compare(name, "eq", value) for name, value in wanted.items() if value is not None))
        return self._storage.find(Session, scope, where, _LATEST_FIRST, limit)

    def current(self, scope: Scope) -> Session | None:
        """The open session that was active last, or None."""
        return next(iter(self.find(scope, active=True, archived=None, limit=1)), None)

    def switch(self, session_id: str, scope: Scope, *, reopen: bool = False, by: Attribution = ANONYMOUS) -> Switched:
        """Make another session the current one; an ended session must be reopened."""
        return self._storage.write(lambda tx: _switched(tx, session_id, scope, reopen), by)

    def touch(self, session_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> Session:
        """Record activity in the session."""
        return self._changed(session_id, scope, lambda session: {}, by)

    def update_context(
        self, session_id: str, scope: Scope, changes: Mapping[str, Any], by: Attribution = ANONYMOUS
    ) -> Session:
        """Merge changes into the working context of a session; None removes a key."""
        return self._changed(
            session_id, scope, lambda session: {"context_json": merged(session.context_json, changes)}, by
        )

    def end(
        self,
        session_id: str,
        scope: Scope,
        *,
        summary: str | None = None,
        archive: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> Session:
        """End a session with a summary, given or made from its memories, and archive it if requested.

        The session of an agent in a project creates a handoff unless there is one. Ending an ended session only changes
        what is given.
        """
        # Summarising is slow, so it is done before the transaction.
        text = summary if summary is not None else self._summary(self.require(session_id, scope))
        return self._storage.write(lambda tx: self._ended(tx, session_id, scope, text, archive), by)

    def archive(self, session_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> Session:
        """Archive a session; an open session is ended first."""
        return self.end(session_id, scope, archive=True, by=by)

    def unarchive(self, session_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> Session:
        """Take a session out of the archive; it stays ended."""
        return self._storage.write(lambda tx: _update(tx, locked(tx, session_id, scope), {"is_archived": False}), by)

    def delete(self, session_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> bool:
        """Delete a session with its places and agent states; returns whether there was one.

        Memories and handoffs stay; child sessions lose their parent.
        """
        return self._storage.delete(Session, session_id, scope, by) > 0

    # ------------------------------------------------------------------ parents

    def set_parent(
        self, session_id: str, parent_session_id: str | None, scope: Scope, by: Attribution = ANONYMOUS
    ) -> Session:
        """Set or, with None, remove the parent of a session; cycles are refused."""
        return self._storage.write(lambda tx: _with_parent(tx, session_id, parent_session_id, scope), by)

    def ancestors(self, session_id: str, scope: Scope) -> list[Session]:
        """The parent of a session, the parent of that, and so on."""
        with self._storage.snapshot() as tx:
            return _chain(tx, tx.require(Session, session_id, scope).parent_session_id, scope, lock=False)

    def children(self, session_id: str, scope: Scope) -> list[Session]:
        """The direct child sessions, oldest first."""
        where = Compare("parent_session_id", "eq", session_id)
        return self._storage.find(Session, scope, where, (Order("created_at"),))

    # ------------------------------------------------------------------ memories

    def memories(self, session_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> list[Memory]:
        """The memories created in a session or added to it, oldest first, without deleted and expired ones.

        Private memories are visible to their user alone: `by.user_id`, else the user of the scope.
        """
        session = self.require(session_id, scope)
        with self._storage.snapshot() as tx:
            return memories_of(tx, session, viewer(scope, by))

    def _summary(self, session: Session) -> str | None:
        if session.summary is not None or self._summarise is None:
            return None
        with self._storage.snapshot() as tx:
            # The summary is as visible as the session, so private memories are left out.
            memories = memories_of(tx, session, None)
        return (self._summarise(session, memories) or None) if memories else None

    def _changed(
        self, session_id: str, scope: Scope, changes_of: Callable[[Session], dict[str, Any]], by: Attribution
    ) -> Session:
        def change(tx: Transaction) -> Session:
            session = open_session(tx, session_id, scope)
            changes = {"last_active_at": now(), **changes_of(session)}
            return _update(tx, session, screened(session, changes, self._screen))

        return self._storage.write(change, by)

    def _ended(self, tx: Transaction, session_id: str, scope: Scope, summary: str | None, archive: bool) -> Session:
        session = locked(tx, session_id, scope)
        moment = now()
        ended = end_session(tx, session, moment, summary, archive, self._screen)
        if ended.agent and ended.project_id and session.is_active and not has_handoff(tx, ended):
            tx.save(self._screen(Notes.of(ended).handoff(ended, moment)))
        return ended


# ---------------------------------------------------------------------- inside a transaction


def created(tx: Transaction, session: Session, visible: Scope = _EVERYWHERE) -> Session:
    """Save a session with a new id, under an existing parent."""
    if tx.get(Session, session.id, _EVERYWHERE) is not None:
        tx.require(Session, session.id, visible)
        raise ValidationError("session", "id", session.id, "exists already; switch to it or choose another id")
    if session.parent_session_id is not None:
        parent = tx.require(Session, session.parent_session_id, _EVERYWHERE)
        _refuse_other_owner(session, parent)
    session = session.replace(last_active_at=_latest_activity(tx, session))
    tx.insert(session)
    _note_activity(tx, session)
    return session


def locked(tx: Transaction, session_id: str, scope: Scope) -> Session:
    """The session, locked until the end of the transaction."""
    found = tx.lock(Session, [session_id], scope)
    if not found:
        raise NotFoundError("session", session_id)
    return found[0]


def open_session(tx: Transaction, session_id: str, scope: Scope) -> Session:
    """The session, locked, unless it has ended."""
    session = locked(tx, session_id, scope)
    if not session.is_active:
        raise ValidationError(
            "session",
            "id",
            session_id,
            "has ended; start another one, or reopen it with Sessions.switch(…, reopen=True)",
        )
    return session


def end_session(
    tx: Transaction,
    session: Session,
    moment: datetime,
    summary: str | None,
    archive: bool = False,
    screen: Screen = without_secrets,
    notes: Notes | None = None,
) -> Session:
    """Mark a session as ended; the end time is kept if it had ended before."""
    changes = {
        "context_json": session.context_json if notes is None else {**session.context_json, NOTES: notes.to_json()},
        "is_active": False,
        "ended_at": session.ended_at or moment,
        "summary": session.summary if summary is None else summary,
        "is_archived": session.is_archived or archive,
    }
    return _update(tx, session, screened(session, changes, screen))


def _update(tx: Transaction, session: Session, changes: dict[str, Any]) -> Session:
    changed = {name: value for name, value in changes.items() if getattr(session, name) != value}
    if not changed:
        return session
    updated = tx.update(Session, session.id, {"updated_at": now(), **changed}, _EVERYWHERE)
    assert updated is not None, "it is locked"
    return updated


def _switched(tx: Transaction, session_id: str, scope: Scope, reopen: bool) -> Switched:
    session = locked(tx, session_id, scope) if reopen else open_session(tx, session_id, scope)
    previous = _current_of(tx, session)
    changes: dict[str, Any] = {"last_active_at": _latest_activity(tx, session)}
    if not session.is_active:
        changes |= {"is_active": True, "ended_at": None, "is_archived": False}
    switched = _update(tx, session, changes)
    _note_activity(tx, session)
    return Switched(switched, None if previous is None or previous.id == session.id else previous)


def _note_activity(tx: Transaction, session: Session) -> None:
    """Record activity of the session's user and project, if the store has rows for them."""
    moment = now()
    if session.user_id is not None:
        tx.update(User, session.user_id, {"last_active_at": moment}, _EVERYWHERE)
    if session.project_id is not None:
        theirs = _EVERYWHERE if session.user_id is None else Scope(user_id=session.user_id)
        tx.update(Project, session.project_id, {"last_accessed_at": moment}, theirs)


def _latest_activity(tx: Transaction, session: Session) -> datetime:
    """A time that makes the session the current one, even if another clock is ahead."""
    current = _current_of(tx, session)
    return now() if current is None else max(now(), current.last_active_at + _TICK)


def _current_of(tx: Transaction, session: Session) -> Session | None:
    """The current session of the same user, or of the same project and agent."""
    names = ("user_id",) if session.user_id else ("project_id", "agent")
    owner = {name: value for name in names if (value := getattr(session, name)) is not None}
    if not owner:
        return None
    where = Compare("is_active", "eq", True)
    return next(iter(tx.find(Session, Scope(**owner), where, _LATEST_FIRST, limit=1)), None)


def _with_parent(tx: Transaction, session_id: str, parent_id: str | None, scope: Scope) -> Session:
    session = locked(tx, session_id, scope)
    if parent_id is not None:
        above = _chain(tx, parent_id, scope, lock=True)
        if not above:
            raise NotFoundError("session", parent_id)
        if session.id in {each.id for each in above}:
            raise ValidationError(
                "session",
                "parent_session_id",
                parent_id,
                f"would close a cycle: it is a descendant of {session.id!r}",
            )
        _refuse_other_owner(session, above[0])
    return _update(tx, session, {"parent_session_id": parent_id})


def _chain(tx: Transaction, first: str | None, scope: Scope, *, lock: bool) -> list[Session]:
    """The session with this id and all its ancestors; `lock` locks them."""
    chain: list[Session] = []
    seen: set[str] = set()
    above = first
    while above is not None and above not in seen:
        seen.add(above)
        found = tx.lock(Session, [above], scope) if lock else tx.get_many(Session, [above], scope)
        if not found:
            break
        chain.extend(found)
        above = found[0].parent_session_id
    return chain


def _refuse_other_owner(session: Session, parent: Session) -> None:
    for name in ("user_id", "project_id"):
        mine, theirs = getattr(session, name), getattr(parent, name)
        if mine is not None and theirs is not None and mine != theirs:
            raise ScopeViolationError("session", "parent_session_id", parent.id, f"is of another {name}")
