"""Budgets: which memories of a working set fit into a context window, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from alma.errors import ValidationError
from alma.memory.visible import is_over
from alma.model.memory import Memory
from alma.model.slice import MemorySlice
from alma.model.workspace import SessionMemory
from alma.tokens import LONGEST_TOKEN, count_tokens

_HALF_LIFE_HOURS = 6.0
_IMPORTANCE_SHARE = 0.5
_UNLIMITED = 1 << 40

Costs = Mapping[tuple[str, datetime], int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A memory that was left out, and the reason in a sentence."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that wants to be in the working set."""

    place: SessionMemory
    memory: Memory
    wanted: bool = False
    """Whether it was asked for just now."""

    def worth(self, moment: datetime) -> float:
        """Half of it importance, half how lately it was used: a memory of six hours ago counts half."""
        recency: float = 0.5 ** (self.idle_hours(moment) / _HALF_LIFE_HOURS)
        return _IMPORTANCE_SHARE * self.memory.importance_score + (1 - _IMPORTANCE_SHARE) * recency

    def idle_hours(self, moment: datetime) -> float:
        used = max(self.place.added_at, self.memory.last_accessed_at)
        return max(0.0, (moment - used).total_seconds() / 3600)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits, in the order of the context window, what it takes together, and what was left out."""

    chosen: tuple[Candidate, ...] = ()
    tokens: int = 0
    left_out: tuple[LeftOut, ...] = field(default=())


def checked_budget(max_tokens: int) -> int:
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise ValidationError("working set", "max_tokens", max_tokens, "must be a whole number of at least 1")
    return max_tokens


def cost_of(memory: Memory, max_tokens: int) -> int:
    """How many tokens a memory takes in a prompt, or just more than there are when it is far too long to be counted."""
    if len(memory.content) > max_tokens * LONGEST_TOKEN:
        return max_tokens + 1
    return count_tokens(MemorySlice(memories=(memory,)).to_prompt(_UNLIMITED))


def costs_of(memories: Iterable[Memory], max_tokens: int) -> Costs:
    """What each memory takes, as it is now."""
    return {(memory.id, memory.updated_at): cost_of(memory, max_tokens) for memory in memories}


def fitted(candidates: Sequence[Candidate], max_tokens: int, costs: Costs, moment: datetime) -> Fitted:
    """The pinned ones, then those just asked for, then the most worthy, as long as there is room."""
    left_out = [LeftOut(c.memory.id, _why_over(c.memory)) for c in candidates if is_over(c.memory, moment)]
    live = [c for c in candidates if not is_over(c.memory, moment)]
    chosen: list[Candidate] = []
    used = 0
    for candidate in sorted(live, key=lambda c: (not c.place.pinned, not c.wanted, -c.worth(moment), c.memory.id)):
        memory = candidate.memory
        cost = costs.get((memory.id, memory.updated_at)) or cost_of(memory, max_tokens)
        if used + cost <= max_tokens:
            chosen.append(candidate)
            used += cost
        elif candidate.place.pinned:
            raise ValidationError(
                "working set", "max_tokens", max_tokens, "is too little for the pinned memories; unpin one or raise it"
            )
        else:
            left_out.append(LeftOut(memory.id, _why_no_room(candidate, cost, max_tokens - used, max_tokens, moment)))
    chosen.sort(key=lambda c: (not c.place.pinned, c.place.position_in_session or 0, c.place.id))
    return Fitted(tuple(chosen), used, tuple(left_out))


def _why_no_room(candidate: Candidate, cost: int, room: int, max_tokens: int, moment: datetime) -> str:
    if cost > max_tokens:
        return f"it alone takes more than the budget of {max_tokens:,} tokens"
    return (
        f"it takes {cost:,} tokens and {room:,} of {max_tokens:,} were left after what is pinned, was asked for or is "
        f"worth more (importance {candidate.memory.importance_score:.2f}, "
        f"last used {candidate.idle_hours(moment):.1f} hours ago)"
    )


def _why_over(memory: Memory) -> str:
    if not memory.is_active:
        return "it was deleted"
    return "it was archived" if memory.is_archived else "it has expired"
