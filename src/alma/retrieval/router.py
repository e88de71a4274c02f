"""The router: which kinds of memory a request may see, in which scope, and which are handed over by rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from alma.errors import FullTextMissingError, ProviderError, ValidationError
from alma.model.common import checked_name
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, In, Missing, Or, Predicate
from alma.model.record import Record
from alma.model.scope import Scope, alive, public

RETRIEVED: tuple[type[Record], ...] = (Heuristic, AntiPattern, UserPreference, DomainKnowledge, Outcome, Memory)
STANDING_TYPES = ("instruction", "standing_instruction")
"""The types of general memories that are handed over with every task."""

# What a task is about stands at its beginning.
_LONGEST_QUERY = 20_000
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_MOST_ITEMS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked, wherever it is looked for.

    What is not as similar as `min_similarity`, a cosine, is left out; so are repetitions, unless they are wanted.
    Words and an index that are known to be down are not asked.
    """

    query: str
    top_k: int
    kinds: tuple[type[Record], ...]
    now: datetime
    agent: str | None = None
    min_similarity: float | None = None
    with_repetitions: bool = False
    words_down: FullTextMissingError | None = None
    index_down: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Asked):
    """What an agent asks for, checked; `weak` lessons are left out unless they are asked for."""

    project_id: str
    readable_agents: tuple[str, ...]
    user_id: str | None
    session_id: str | None
    memories_within: Scope | None = None
    weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A kind of memory to search, in which scope and under which condition; each is itself and equals no other.

    What is handed over `by_rule` does not have to resemble the task; what is not `searched` only comes by rule. It is
    `narrowed` where the condition may leave few of many memories, and every further one takes longer to find.
    """

    cls: type[Record]
    scope: Scope
    where: Predicate = EVERYTHING
    by_rule: bool = False
    searched: bool = True
    narrowed: bool = False


def checked_query(query: object) -> str:
    """The question; what no stored text can have is read as a space, so that whatever is asked can be looked for."""
    readable = _UNREADABLE.sub(" ", query) if isinstance(query, str) else ""
    if len(readable) > _LONGEST_QUERY:
        readable = readable.lstrip()[:_LONGEST_QUERY]
    if not readable.strip():
        raise ValidationError("retrieve", "query", query, "must be a text that says what the task is")
    return readable


def checked_top_k(top_k: object) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= _MOST_ITEMS:
        raise ValidationError("retrieve", "top_k", top_k, f"must be a whole number from 1 to {_MOST_ITEMS:,}")
    return top_k


def checked_kinds(kinds: Iterable[type[Record] | str] | None) -> tuple[type[Record], ...]:
    if kinds is None:
        return RETRIEVED
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise ValidationError("retrieve", "kinds", kinds, "must be a list of kinds")
    return tuple(map(_retrieved, kinds))


def _retrieved(kind: object) -> type[Record]:
    for cls in RETRIEVED:
        if kind is cls or kind == cls.spec.kind:
            return cls
    raise ValidationError("retrieve", "kinds", kind, f"must be among {', '.join(cls.spec.kind for cls in RETRIEVED)}")


def checked_flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValidationError("retrieve", field, value, "must be True or False")
    return value


def checked_owner(field: str, value: object) -> str:
    return checked_name("retrieve", field, value)


def route(request: Request) -> list[Target]:
    """Where to look for a request's memories."""
    # One scope for all, so that what is made of it is made once.
    learned = Scope(project_id=request.project_id, agent=request.readable_agents)
    return [target for cls in request.kinds for target in _targets(cls, request, learned)]


def _targets(cls: type[Record], request: Request, learned: Scope) -> list[Target]:
    if cls is UserPreference:
        return [] if request.user_id is None else [Target(cls, Scope(user_id=request.user_id), by_rule=True)]
    if cls is Memory:
        return _memories(request)
    return [Target(cls, learned)]


def _memories(request: Request) -> list[Target]:
    """General memories: the project's, and those a user carries from project to project."""
    limits, project_id = request.memories_within, request.project_id
    in_project = Scope(project_id=project_id) if limits is None else replace(limits, project_id=project_id)
    seen = And(alive(request.now), public(request.user_id), in_session(request.session_id))
    plain = Target(Memory, in_project, seen)
    standing = _standing(in_project, And(seen, holding_for(request.user_id)))
    if request.user_id is None or in_project.sealed:
        return [plain, standing]
    carried = And(alive(request.now), Compare("layer_global", "eq", True))
    mine = replace(in_project, user_id=request.user_id, project_id=None)
    return [plain, standing, Target(Memory, mine, carried), _standing(mine, carried)]


def _standing(scope: Scope, seen: Predicate) -> Target:
    """The standing instructions among these memories, which come by rule."""
    return Target(Memory, scope, And(seen, In("memory_type", STANDING_TYPES)), by_rule=True, searched=False)


@lru_cache(maxsize=256)
def holding_for(user_id: str | None) -> Predicate:
    """What a user carries from project to project is that user's own, and holds for nobody else."""
    parts: list[Predicate] = [Compare("layer_global", "eq", False), Missing("user_id")]
    if user_id is not None:
        parts.append(Compare("user_id", "eq", user_id))
    return Or(*parts)


@lru_cache(maxsize=256)
def in_session(session_id: str | None) -> Predicate:
    """A memory of the session layer alone is seen in its session; without layers it is the project's."""
    parts: list[Predicate] = [
        Compare("layer_session", "eq", False),
        Compare("layer_project", "eq", True),
        Compare("layer_global", "eq", True),
    ]
    if session_id is not None:
        parts.append(Compare("session_id", "eq", session_id))
    return Or(*parts)
