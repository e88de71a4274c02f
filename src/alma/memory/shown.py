"""Memories already shown in a session: a stable block, and no memory twice unless it changed.

The store keeps ids and fingerprints, and no text: the stable block is written again from the versions of its memories
at the time it was first written, without those that were deleted since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from alma.clock import now
from alma.model.common import checked_name
from alma.model.injection import SessionBlocks, block_of, without_shown
from alma.model.kinds import kind_named
from alma.model.prompt import checked_tokens
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.slice import MemorySlice
from alma.model.workspace import AgentState
from alma.storage.base import StorageBackend, Transaction

_EVERYWHERE = Scope.everywhere()
# A session without a request for longer starts again.
_KEPT = timedelta(days=30)
_STABLE = ("heuristics", "anti_patterns", "preferences", "instructions")
# The stable block gets at most this share of the budget, and leaves the rest to the tasks.
_STABLE_SHARE = 0.5


def session_key(project_id: str, agent: str, user_id: str | None, session_id: str) -> str:
    """The id under which it is kept what an agent of a project was shown in a session with a user."""
    checked_name("retrieve", "already_shown", session_id)
    names = "\x1f".join(map(repr, (project_id, agent, user_id, session_id)))
    return f"shown:{hashlib.sha256(names.encode(errors='surrogatepass')).hexdigest()[:32]}"


def known_in(storage: StorageBackend, key: str) -> frozenset[str] | None:
    """The ids of the memories that the session was shown; None for one without a stable block."""
    with storage.snapshot() as tx:
        noted = _state(tx, key)
    return None if noted is None else frozenset((*noted["shown"], *(each for _, _, each in noted["stable"])))


def shown_in(
    storage: StorageBackend, key: str, found: MemorySlice, standing: MemorySlice | None, max_tokens: int
) -> MemorySlice:
    """The slice without what the session was shown, with its blocks; what they show is noted.

    `standing` is what a stable block is made of, for a session that has none. Both blocks together keep the budget.
    """
    checked_tokens(max_tokens)

    def show(tx: Transaction) -> MemorySlice:
        tx.hold(key)
        noted = _state(tx, key)
        begun = noted or _begun(standing or MemorySlice(), max_tokens)
        stable = block_of(_as_it_was(tx, begun), {}, begun["budget"])
        # A memory of the stable block that changed was noted again when a block for a task showed the change.
        shown = {**stable.shown, **begun["shown"]}
        task = block_of(found, shown, max(0, max_tokens - stable.tokens))
        _note(tx, key, {**begun, "shown": {**shown, **task.shown}})
        return replace(without_shown(found, shown), blocks=SessionBlocks(stable, task, noted is None))

    return storage.write(show)


def _begun(standing: MemorySlice, max_tokens: int) -> dict[str, Any]:
    named = [[part, record.spec.kind, str(record.key)] for part in _STABLE for record in getattr(standing, part)]
    return {"at": now().isoformat(), "budget": int(max_tokens * _STABLE_SHARE), "stable": named, "shown": {}}


def _as_it_was(tx: Transaction, begun: Mapping[str, Any]) -> MemorySlice:
    """The memories of the stable block that still exist, as they were when it was first written."""
    at = datetime.fromisoformat(begun["at"])
    parts: dict[str, list[Record]] = {part: [] for part in _STABLE}
    for part, kind, key in begun["stable"]:
        cls = kind_named(kind)
        today = tx.get(cls, key, _EVERYWHERE)
        if today is None or not getattr(today, "is_active", True) or getattr(today, "is_archived", False):
            continue
        then = tx.get(cls, key, _EVERYWHERE, at)
        if then is not None:
            parts[part].append(then)
    values: dict[str, Any] = dict(parts)
    return MemorySlice(**values)


def _state(tx: Transaction, key: str) -> dict[str, Any] | None:
    found = tx.get(AgentState, key, _EVERYWHERE)
    if found is None or (found.expires_at is not None and found.expires_at <= now()):
        return None
    return dict(found.state_data)


def _note(tx: Transaction, key: str, noted: Mapping[str, Any]) -> None:
    stored = tx.lock(AgentState, [key], _EVERYWHERE)
    begun = stored[0].created_at if stored else now()
    state = AgentState(id=key, agent_id=key, state_data=dict(noted), created_at=begun, expires_at=now() + _KEPT)
    tx.save(state)
