"""Places: which memories a session holds, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from alma.clock import now
from alma.errors import NotFoundError, ScopeViolationError
from alma.memory.visible import is_over, is_visible
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Compare, In, Order
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionMemory
from alma.storage.base import Transaction

_EVERYWHERE = Scope.everywhere()
_IN_ORDER = (Order("position_in_session"), Order("added_at"))
_WORKED_WITH = Compare("working_memory", "eq", True)


def require_visible(tx: Transaction, session: Session, memory_ids: list[str]) -> None:
    """Refuse memories that there are not, or that a session must not see."""
    found = {memory.id: memory for memory in tx.get_many(Memory, memory_ids, _EVERYWHERE)}
    moment = now()
    for memory_id in memory_ids:
        memory = found.get(memory_id)
        if memory is None or is_over(memory, moment):
            raise NotFoundError("memory", memory_id)
        if not is_visible(memory, session):
            raise ScopeViolationError(
                "session_memory", "memory_id", memory_id, "is not this session's to see: it is private or elsewhere"
            )


def places_of(
    tx: Transaction, session: Session, working: bool = False, memory_ids: Sequence[str] | None = None
) -> list[SessionMemory]:
    """The places of a session, or of some memories in it, or of what is worked with, in their order."""
    where = EVERYTHING if memory_ids is None else In("memory_id", memory_ids)
    return tx.find(SessionMemory, Scope(session_id=session.id), _WORKED_WITH if working else where, _IN_ORDER)


def place_of(places: Sequence[SessionMemory], memory_id: str) -> SessionMemory:
    """The place of a memory, or NotFoundError."""
    for place in places:
        if place.memory_id == memory_id:
            return place
    raise NotFoundError("memory of this session", memory_id)


def last_position(tx: Transaction, session: Session) -> int:
    """Where the last memory of a session stands, 0 in an empty one."""
    last = tx.find(
        SessionMemory,
        Scope(session_id=session.id),
        Compare("position_in_session", "ge", 0),
        (Order("position_in_session", "desc"),),
        limit=1,
    )
    return (last[0].position_in_session or 0) if last else 0


def move(tx: Transaction, session: Session, memory_id: str, position: int) -> list[SessionMemory]:
    """Put a memory at a position and count the others anew."""
    places = places_of(tx, session)
    place = place_of(places, memory_id)
    places.remove(place)
    places.insert(position - 1, place)
    moved = [each.replace(position_in_session=number) for number, each in enumerate(places, start=1)]
    return save_changed(tx, places, moved)


def save_changed(tx: Transaction, before: Sequence[SessionMemory], after: list[SessionMemory]) -> list[SessionMemory]:
    """Store those that changed, together."""
    tx.save(*(new for old, new in zip(before, after, strict=True) if new != old))
    return after
