"""Working memory: the ordered memories of a session, and the part of them in the context window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from alma.clock import now
from alma.errors import NotFoundError, ScopeViolationError, ValidationError
from alma.memory.filters import is_inactive, is_open_to, is_visible, viewer
from alma.memory.sessions import locked, open_session
from alma.memory.settings import SystemSettings
from alma.memory.tuning import WORKING_SET
from alma.model.common import checked_names, checked_whole
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Compare, In, Order
from alma.model.scope import Scope
from alma.model.slice import MemorySlice
from alma.model.workspace import Session, SessionMemory
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.tokens import LONGEST_TOKEN, count_tokens

DEFAULT_CONTEXT_TOKENS = 4000
_EVERYWHERE = Scope.everywhere()
_IN_ORDER = (Order("position_in_session"), Order("added_at"))
_IN_WORKING_SET = Compare("working_memory", "eq", True)
_UNLIMITED = 1 << 40
Costs = Mapping[tuple[str, datetime], int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A memory that was left out, and the reason."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Added:
    """The places of memories in a session, and the memories that were dropped to make room."""

    places: tuple[SessionMemory, ...]
    dropped: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """The memories in the context window, in order."""

    session_id: str
    memories: tuple[Memory, ...]
    tokens: int
    max_tokens: int
    evicted: tuple[LeftOut, ...] = ()

    def to_prompt(self) -> str:
        """The memories as text for a language model, within the budget."""
        return MemorySlice(memories=self.memories).to_prompt(self.max_tokens)


class WorkingMemory:
    """Adds memories to sessions, orders them, and keeps a working set within a token budget.

    Private memories are visible to their user alone: `by.user_id`, else the user of the scope. For others they only
    take room.
    """

    def __init__(self, storage: StorageBackend, context_window_tokens: int = DEFAULT_CONTEXT_TOKENS) -> None:
        self._storage = checked_storage("working memory", storage)
        self._settings = SystemSettings(storage)
        self._max_tokens = checked_whole("working set", "max_tokens", context_window_tokens, 1)

    # ------------------------------------------------------------------ memories of a session

    def add(
        self,
        session_id: str,
        memory_ids: str | Sequence[str],
        scope: Scope,
        *,
        pinned: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> Added:
        """Add memories to the end of a session.

        A session holds at most `max_memories_per_session`; beyond that the oldest memories that are not pinned leave
        it. The memories themselves are kept.
        """
        ids = _ids(memory_ids)
        return self._storage.write(lambda tx: self._added(tx, open_session(tx, session_id, scope), ids, pinned), by)

    def enter(self, tx: Transaction, memory: Memory) -> None:
        """Add a memory that was created in a session, if the session exists and is open."""
        for session in tx.lock(Session, [memory.session_id or ""], _EVERYWHERE):
            if session.is_active and is_visible(memory, session) and not is_inactive(memory, now()):
                self._added(tx, session, [memory.id], pinned=False)

    def remove(
        self, session_id: str, memory_ids: str | Sequence[str], scope: Scope, by: Attribution = ANONYMOUS
    ) -> int:
        """Remove memories from a session; returns how many. The memories themselves are kept."""
        ids = _ids(memory_ids)

        def remove(tx: Transaction) -> int:
            session = locked(tx, session_id, scope)
            return tx.delete_where(SessionMemory, Scope(session_id=session.id), In("memory_id", ids))

        return self._storage.write(remove, by)

    def places(self, session_id: str, scope: Scope) -> list[SessionMemory]:
        """The places of a session's memories, in order."""
        with self._storage.snapshot() as tx:
            return places_of(tx, tx.require(Session, session_id, scope))

    def move(
        self, session_id: str, memory_id: str, position: int, scope: Scope, by: Attribution = ANONYMOUS
    ) -> list[SessionMemory]:
        """Move a memory to a position, counted from 1; later ones shift."""
        checked_whole("session_memory", "position_in_session", position, 1)
        return self._storage.write(lambda tx: move(tx, locked(tx, session_id, scope), memory_id, position), by)

    def pin(self, session_id: str, memory_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> SessionMemory:
        """Keep a memory in its session and never evict it from the working set."""
        return self._set(session_id, memory_id, scope, True, by)

    def unpin(self, session_id: str, memory_id: str, scope: Scope, by: Attribution = ANONYMOUS) -> SessionMemory:
        """Allow a memory to be dropped or evicted again."""
        return self._set(session_id, memory_id, scope, False, by)

    def _set(self, session_id: str, memory_id: str, scope: Scope, pinned: bool, by: Attribution) -> SessionMemory:
        def change(tx: Transaction) -> SessionMemory:
            place = place_of(places_of(tx, locked(tx, session_id, scope)), memory_id)
            (changed,) = save_changed(tx, [place], [place.replace(pinned=pinned)])
            return changed

        return self._storage.write(change, by)

    # ------------------------------------------------------------------ the working set

    def hold(
        self,
        session_id: str,
        memory_ids: str | Sequence[str],
        scope: Scope,
        *,
        max_tokens: int | None = None,
        pinned: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> WorkingSet:
        """Add memories to the working set; if the budget is too small, the least valuable are evicted.

        Memories that are not in the session are added to it. Evicted memories stay in the session.
        """
        return _shown(self._refitted(session_id, _ids(memory_ids), scope, max_tokens, pinned, by), scope, by)

    def fit(
        self, session_id: str, scope: Scope, max_tokens: int | None = None, by: Attribution = ANONYMOUS
    ) -> WorkingSet:
        """Shrink the working set to a budget and remove what has expired."""
        return _shown(self._refitted(session_id, [], scope, max_tokens, False, by), scope, by)

    def release(
        self, session_id: str, memory_ids: str | Sequence[str], scope: Scope, by: Attribution = ANONYMOUS
    ) -> int:
        """Remove memories from the working set; returns how many. They stay in the session."""
        ids = set(_ids(memory_ids))

        def release(tx: Transaction) -> int:
            places = places_of(tx, locked(tx, session_id, scope), working=True)
            leaving = [place for place in places if place.memory_id in ids]
            save_changed(
                tx, leaving, [place.replace(working_memory=False, context_window_position=None) for place in leaving]
            )
            return len(leaving)

        return self._storage.write(release, by)

    def working_set(
        self, session_id: str, scope: Scope, max_tokens: int | None = None, by: Attribution = ANONYMOUS
    ) -> WorkingSet:
        """The working set as far as it fits; reading changes nothing."""
        budget = self._budget(max_tokens)
        with self._storage.snapshot() as tx:
            candidates = _candidates(tx, tx.require(Session, session_id, scope), frozenset())
        memories = [candidate.memory for candidate in candidates]
        held = _working_set(session_id, fitted(candidates, budget, prompt_costs(memories, budget), now()), budget)
        return _shown(held, scope, by)

    def _refitted(
        self, session_id: str, wanted: list[str], scope: Scope, max_tokens: int | None, pinned: bool, by: Attribution
    ) -> WorkingSet:
        budget = self._budget(max_tokens)
        # Counting tokens is slow, so it is done before the transaction.
        costs = self._costs(session_id, wanted, scope, budget)

        def refit(tx: Transaction) -> WorkingSet:
            session = open_session(tx, session_id, scope)
            dropped = self._added(tx, session, wanted, pinned, working=True).dropped if wanted else ()
            fit = fitted(_candidates(tx, session, frozenset(wanted)), budget, costs, now())
            _write(tx, session, fit)
            return _working_set(session.id, fit, budget, dropped)

        return self._storage.write(refit, by)

    def _budget(self, max_tokens: int | None) -> int:
        return self._max_tokens if max_tokens is None else checked_whole("working set", "max_tokens", max_tokens, 1)

    def _costs(self, session_id: str, wanted: list[str], scope: Scope, budget: int) -> Costs:
        with self._storage.snapshot() as tx:
            session = tx.require(Session, session_id, scope)
            held = [place.memory_id for place in places_of(tx, session, working=True)]
            memories = tx.get_many(Memory, [*held, *wanted], _EVERYWHERE)
        return prompt_costs(memories, budget)

    # ------------------------------------------------------------------ adding

    def _added(
        self, tx: Transaction, session: Session, memory_ids: list[str], pinned: bool, working: bool = False
    ) -> Added:
        require_visible(tx, session, memory_ids)
        there = places_of(tx, session, memory_ids=memory_ids)
        kept_there = [
            place.replace(pinned=place.pinned or pinned, working_memory=place.working_memory or working)
            for place in there
        ]
        known = {place.memory_id: place for place in save_changed(tx, there, kept_there)}
        position = last_position(tx, session)
        moment = now()
        fresh = [
            SessionMemory(
                session_id=session.id,
                memory_id=memory_id,
                position_in_session=position + number,
                working_memory=working,
                added_at=moment,
                pinned=pinned,
            )
            for number, memory_id in enumerate((each for each in memory_ids if each not in known), start=1)
        ]
        dropped = self._make_room(tx, session, fresh, frozenset(known))
        gone = {each.memory_id for each in dropped}
        kept = [place for place in fresh if place.memory_id not in gone]
        tx.save(*kept)
        places = {**known, **{place.memory_id: place for place in kept}}
        return Added(tuple(places[each] for each in memory_ids if each in places), tuple(dropped))

    def _make_room(
        self, tx: Transaction, session: Session, fresh: list[SessionMemory], wanted: frozenset[str]
    ) -> list[LeftOut]:
        """Remove the oldest unpinned memories of the session or, if there are too few, some of the new ones."""
        limit = self._settings.read(session.user_id).max_memories_per_session
        scope = Scope(session_id=session.id)
        excess = tx.count(SessionMemory, scope) + len(fresh) - limit
        if not fresh or excess <= 0:
            return []
        loose = Compare("pinned", "eq", False)
        oldest = (Order("added_at"), Order("position_in_session"))
        leaving = tx.find(SessionMemory, scope, loose, oldest, limit=excess + len(wanted))
        leaving = [place for place in leaving if place.memory_id not in wanted][:excess]
        late = [place for place in fresh if not place.pinned][: excess - len(leaving)]
        if len(leaving) + len(late) < excess:
            raise ValidationError(
                "session", "id", session.id, f"is full: it holds {limit:,} memories and all are pinned; unpin some"
            )
        tx.delete(SessionMemory, [place.id for place in leaving], scope)
        reason = f"a session holds {limit:,} memories (max_memories_per_session), and it was the oldest not pinned"
        return [LeftOut(place.memory_id, reason) for place in (*leaving, *late)]


def _ids(memory_ids: str | Sequence[str]) -> list[str]:
    return list(dict.fromkeys(checked_names("working", "memory_ids", memory_ids)))


def _candidates(tx: Transaction, session: Session, wanted: frozenset[str]) -> list[Candidate]:
    places = {place.memory_id: place for place in places_of(tx, session, working=True)}
    memories = tx.get_many(Memory, places, _EVERYWHERE)
    return [Candidate(places[each.id], each, each.id in wanted) for each in memories if is_visible(each, session)]


def _write(tx: Transaction, session: Session, fit: Fitted) -> None:
    """Store which memories are in the context window, and where."""
    positions = {candidate.place.id: number for number, candidate in enumerate(fit.chosen, start=1)}
    places = places_of(tx, session, working=True)
    fitted_in = [
        place.replace(working_memory=place.id in positions, context_window_position=positions.get(place.id))
        for place in places
    ]
    save_changed(tx, places, fitted_in)


def _shown(held: WorkingSet, scope: Scope, by: Attribution) -> WorkingSet:
    """The working set without private memories of other users."""
    user_id = viewer(scope, by)
    return replace(held, memories=tuple(memory for memory in held.memories if is_open_to(memory, user_id)))


def _working_set(session_id: str, fit: Fitted, max_tokens: int, dropped: Sequence[LeftOut] = ()) -> WorkingSet:
    memories = tuple(candidate.memory for candidate in fit.chosen)
    return WorkingSet(session_id, memories, fit.tokens, max_tokens, (*dropped, *fit.left_out))


# ---------------------------------------------------------------------- places in a session


def require_visible(tx: Transaction, session: Session, memory_ids: list[str]) -> None:
    """Refuse memories that do not exist or that the session must not see."""
    found = {memory.id: memory for memory in tx.get_many(Memory, memory_ids, _EVERYWHERE)}
    moment = now()
    for memory_id in memory_ids:
        memory = found.get(memory_id)
        if memory is None or is_inactive(memory, moment):
            raise NotFoundError("memory", memory_id)
        if not is_visible(memory, session):
            raise ScopeViolationError(
                "session_memory",
                "memory_id",
                memory_id,
                "is not visible to this session: it is private or in another project",
            )


def places_of(
    tx: Transaction, session: Session, working: bool = False, memory_ids: Sequence[str] | None = None
) -> list[SessionMemory]:
    """The places of a session in order: all, those of some memories, or those of the working set."""
    where = EVERYTHING if memory_ids is None else In("memory_id", memory_ids)
    return tx.find(SessionMemory, Scope(session_id=session.id), _IN_WORKING_SET if working else where, _IN_ORDER)


def place_of(places: Sequence[SessionMemory], memory_id: str) -> SessionMemory:
    """The place of a memory, or NotFoundError."""
    for place in places:
        if place.memory_id == memory_id:
            return place
    raise NotFoundError("memory of this session", memory_id)


def last_position(tx: Transaction, session: Session) -> int:
    """The last position in a session, 0 in an empty one."""
    last = tx.find(
        SessionMemory,
        Scope(session_id=session.id),
        Compare("position_in_session", "ge", 0),
        (Order("position_in_session", "desc"),),
        limit=1,
    )
    return (last[0].position_in_session or 0) if last else 0


def move(tx: Transaction, session: Session, memory_id: str, position: int) -> list[SessionMemory]:
    """Move a memory to a position and renumber the places."""
    places = places_of(tx, session)
    place = place_of(places, memory_id)
    places.remove(place)
    places.insert(position - 1, place)
    moved = [each.replace(position_in_session=number) for number, each in enumerate(places, start=1)]
    return save_changed(tx, places, moved)


def save_changed(tx: Transaction, before: Sequence[SessionMemory], after: list[SessionMemory]) -> list[SessionMemory]:
    """Save the places that changed, in one write."""
    tx.save(*(new for old, new in zip(before, after, strict=True) if new != old))
    return after


# ---------------------------------------------------------------------- the token budget


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for the working set."""

    place: SessionMemory
    memory: Memory
    wanted: bool = False
    """Whether this call requested it."""

    def worth(self, moment: datetime) -> float:
        """The value of a memory: half importance, half recency with a half-life of six hours."""
        recency: float = 0.5 ** (self.idle_hours(moment) / WORKING_SET.half_life_hours)
        return (
            WORKING_SET.importance_weight * self.memory.importance_score + (1 - WORKING_SET.importance_weight) * recency
        )

    def idle_hours(self, moment: datetime) -> float:
        used = max(self.place.added_at, self.memory.last_accessed_at)
        return max(0.0, (moment - used).total_seconds() / 3600)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The memories that fit, in order, their tokens, and what was left out."""

    chosen: tuple[Candidate, ...] = ()
    tokens: int = 0
    left_out: tuple[LeftOut, ...] = field(default=())


def prompt_cost(memory: Memory, max_tokens: int) -> int:
    """The tokens of a memory in a prompt, or one more than the budget if it is too long to count."""
    if len(memory.content) > max_tokens * LONGEST_TOKEN:
        return max_tokens + 1
    return count_tokens(MemorySlice(memories=(memory,)).to_prompt(_UNLIMITED))


def prompt_costs(memories: Iterable[Memory], max_tokens: int) -> Costs:
    """The tokens of each memory in its current version."""
    return {(memory.id, memory.updated_at): prompt_cost(memory, max_tokens) for memory in memories}


def fitted(candidates: Sequence[Candidate], max_tokens: int, costs: Costs, moment: datetime) -> Fitted:
    """Choose pinned memories, then requested ones, then the most valuable, while they fit."""
    left_out = [LeftOut(c.memory.id, _inactive_reason(c.memory)) for c in candidates if is_inactive(c.memory, moment)]
    live = [c for c in candidates if not is_inactive(c.memory, moment)]
    chosen: list[Candidate] = []
    used = 0
    for candidate in sorted(live, key=lambda c: (not c.place.pinned, not c.wanted, -c.worth(moment), c.memory.id)):
        memory = candidate.memory
        cost = costs.get((memory.id, memory.updated_at)) or prompt_cost(memory, max_tokens)
        if used + cost <= max_tokens:
            chosen.append(candidate)
            used += cost
        elif candidate.place.pinned:
            raise ValidationError(
                "working set", "max_tokens", max_tokens, "is too small for the pinned memories; unpin one or raise it"
            )
        else:
            left_out.append(
                LeftOut(memory.id, _too_large_reason(candidate, cost, max_tokens - used, max_tokens, moment))
            )
    chosen.sort(key=lambda c: (not c.place.pinned, c.place.position_in_session or 0, c.place.id))
    return Fitted(tuple(chosen), used, tuple(left_out))


def _too_large_reason(candidate: Candidate, cost: int, room: int, max_tokens: int, moment: datetime) -> str:
    if cost > max_tokens:
        return f"it alone exceeds the budget of {max_tokens:,} tokens"
    return (
        f"it takes {cost:,} tokens and {room:,} of {max_tokens:,} were left after what is pinned, requested or "
        f"more valuable (importance {candidate.memory.importance_score:.2f}, "
        f"last used {candidate.idle_hours(moment):.1f} hours ago)"
    )


def _inactive_reason(memory: Memory) -> str:
    if not memory.is_active:
        return "it was deleted"
    return "it was archived" if memory.is_archived else "it has expired"
