"""Agent states: JSON that an agent keeps between turns, per session or outside of sessions, until it expires."""

from __future__ import annotations

import hashlib
from datetime import datetime

from alma.clock import now
from alma.memory.updates import Screen, expiry, merged, without_secrets
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.query import And, Compare, Missing, Order, Predicate
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session
from alma.storage.base import StorageBackend, Transaction, checked_storage

# Every query below names the agent that the state belongs to.
_EVERYWHERE = Scope.everywhere()


class AgentStates:
    """One state for each agent and session, and one for each agent outside of sessions."""

    def __init__(self, storage: StorageBackend, screen: Screen = without_secrets) -> None:
        self._storage = checked_storage("agent states", storage)
        self._screen = screen

    def save(
        self,
        agent_id: str,
        state: JsonObject,
        session_id: str | None = None,
        *,
        ttl_seconds: float | None = None,
        expires_at: datetime | None = None,
        merge: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> AgentState:
        """Store a state and replace the stored one; with `merge`, change only these keys of it.

        Without a time to live it stays until it is cleared.
        """
        given = AgentState(
            agent_id=agent_id,
            session_id=session_id,
            state_data=state,
            expires_at=expiry("agent_state", ttl_seconds, expires_at),
        )
        fresh = self._screen(given.replace(id=_id(agent_id, session_id)))
        return self._storage.write(lambda tx: _saved(tx, fresh, merge), by)

    def load(self, agent_id: str, session_id: str | None = None) -> AgentState | None:
        """The state, or None if there is none or it has expired."""
        with self._storage.snapshot() as tx:
            return _live(_stored(tx, agent_id, session_id))

    def list_all(self, agent_id: str) -> list[AgentState]:
        """The states of an agent that have not expired, latest first."""
        where = Compare("agent_id", "eq", agent_id)
        found = self._storage.find(AgentState, _EVERYWHERE, where, (Order("updated_at", "desc"),))
        return [state for state in found if _live(state)]

    def clear(self, agent_id: str, session_id: str | None = None, by: Attribution = ANONYMOUS) -> bool:
        """Delete a state; returns whether there was one that had not expired."""

        def clear(tx: Transaction) -> bool:
            state = _stored(tx, agent_id, session_id)
            if state is None:
                return False
            tx.delete(AgentState, [state.id], _EVERYWHERE)
            return _live(state) is not None

        return self._storage.write(clear, by)

    def expire(self, moment: datetime | None = None, by: Attribution = ANONYMOUS) -> int:
        """Delete the states that have expired by a moment, by default now; returns how many."""
        where = Compare("expires_at", "le", moment or now())
        return self._storage.delete_where(AgentState, _EVERYWHERE, where, by)


def _saved(tx: Transaction, fresh: AgentState, merge: bool) -> AgentState:
    if fresh.session_id is not None:
        tx.require(Session, fresh.session_id, _EVERYWHERE)
    stored = _stored(tx, fresh.agent_id, fresh.session_id)
    if stored is None:
        tx.insert(fresh)
        return fresh
    # Read it again under the lock: another writer may have changed it.
    (stored,) = tx.lock(AgentState, [stored.id], _EVERYWHERE) or (fresh,)
    if merge:
        fresh = _merged(stored, fresh)
    state = fresh.replace(id=stored.id, created_at=stored.created_at)
    tx.save(state)
    return state


def _merged(stored: AgentState, fresh: AgentState) -> AgentState:
    live = _live(stored)
    if live is None:
        return fresh.replace(state_data=merged({}, fresh.state_data))
    return fresh.replace(
        state_data=merged(live.state_data, fresh.state_data), expires_at=fresh.expires_at or live.expires_at
    )


def _stored(tx: Transaction, agent_id: str, session_id: str | None) -> AgentState | None:
    session: Predicate = Missing("session_id") if session_id is None else Compare("session_id", "eq", session_id)
    where = And(Compare("agent_id", "eq", agent_id), session)
    return next(iter(tx.find(AgentState, _EVERYWHERE, where, limit=1)), None)


def _live(state: AgentState | None) -> AgentState | None:
    if state is None or (state.expires_at is not None and state.expires_at <= now()):
        return None
    return state


def _id(agent_id: str, session_id: str | None) -> str:
    """An id that follows from agent and session, so that concurrent first writes hit the same row."""
    names = f"{len(agent_id)}:{agent_id}:{'' if session_id is None else 'in ' + session_id}"
    return hashlib.blake2b(names.encode(), digest_size=16).hexdigest()
