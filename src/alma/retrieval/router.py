"""The validated request and its targets: the kinds of memory it may see, and their scopes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from alma.errors import FullTextMissingError, ProviderError, ScopeViolationError, ValidationError
from alma.lazy import lazy_regex
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import INSTRUCTION_TYPES, Memory
from alma.model.query import EVERYTHING, And, Compare, In, Missing, Or, Predicate, matches
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope, alive, public

RETRIEVED: tuple[type[Record], ...] = (Heuristic, AntiPattern, UserPreference, DomainKnowledge, Outcome, Memory)
# A task is described at its beginning.
_LONGEST_QUERY = 20_000
_UNREADABLE = lazy_regex("[\x00\ud800-\udfff]")
_MOST_ITEMS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query with the options that retrieval and search share.

    Memories with a cosine below `min_similarity` are left out, and so are duplicates unless `keep_duplicates`.
    Full-text search or the index is not used again once its error is known.
    """

    query: str
    top_k: int
    kinds: tuple[type[Record], ...]
    now: datetime
    agent: str | None = None
    user_id: str | None = None
    min_similarity: float | None = None
    keep_duplicates: bool = False
    text_search_error: FullTextMissingError | None = None
    index_error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRequest(SearchRequest):
    """The checked request of an agent; `weak` lessons are left out unless they are requested."""

    project_id: str
    readable_agents: tuple[str, ...]
    session_id: str | None
    memories_within: Scope | None = None
    weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A kind of memory with the scope and the condition under which it is searched; compared by identity.

    Memories of an `always` target are included whatever the query is; those that are not `searched` only that way. A
    `selective` condition may leave few of many memories, so that each further one takes longer to find.
    """

    cls: type[Record]
    scope: Scope
    where: Predicate = EVERYTHING
    always: bool = False
    searched: bool = True
    selective: bool = False


def checked_query(query: object) -> str:
    """The query, with characters that stored texts cannot have replaced by spaces."""
    readable = _UNREADABLE.sub(" ", query) if isinstance(query, str) else ""
    if len(readable) > _LONGEST_QUERY:
        readable = readable.lstrip()[:_LONGEST_QUERY]
    if not readable.strip():
        raise ValidationError("retrieve", "query", query, "must be a text that describes the task")
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


def route(request: RetrievalRequest) -> list[Target]:
    """The targets of a request."""
    learned = Scope(project_id=request.project_id, agent=request.readable_agents)
    targets: list[Target] = []
    for cls in request.kinds:
        if cls is Memory:
            targets += _memory_targets(request)
        elif cls is not UserPreference:
            targets.append(Target(cls, learned))
        elif request.user_id is not None:
            targets.append(Target(cls, Scope(user_id=request.user_id), always=True))
    return targets


def _memory_targets(request: RetrievalRequest) -> list[Target]:
    """General memories: the project's, and the global ones of the user; of both the standing instructions."""
    limits, project_id = request.memories_within, request.project_id
    in_project = Scope(project_id=project_id) if limits is None else replace(limits, project_id=project_id)
    shown = And(alive(request.now), public(request.user_id), in_session(request.session_id))
    places = [(in_project, shown, And(shown, applies_to(request.user_id)))]
    if request.user_id is not None and not in_project.sealed:
        everywhere = And(alive(request.now), Compare("layer_global", "eq", True))
        places.append((replace(in_project, user_id=request.user_id, project_id=None), everywhere, everywhere))
    targets: list[Target] = []
    for scope, where, instructions in places:
        of_type = And(instructions, In("memory_type", INSTRUCTION_TYPES))
        targets += [Target(Memory, scope, where), Target(Memory, scope, of_type, always=True, searched=False)]
    return targets


@lru_cache(maxsize=256)
def applies_to(user_id: str | None) -> Predicate:
    """Instructions that apply to a user: global memories of other users do not."""
    parts: list[Predicate] = [Compare("layer_global", "eq", False), Missing("user_id")]
    if user_id is not None:
        parts.append(Compare("user_id", "eq", user_id))
    return Or(*parts)


@lru_cache(maxsize=256)
def in_session(session_id: str | None) -> Predicate:
    """Memories visible in a session: those of the session layer only in theirs, those without a layer everywhere."""
    parts: list[Predicate] = [
        Compare("layer_session", "eq", False),
        Compare("layer_project", "eq", True),
        Compare("layer_global", "eq", True),
    ]
    if session_id is not None:
        parts.append(Compare("session_id", "eq", session_id))
    return Or(*parts)


def is_instruction(record: Record, request: SearchRequest) -> bool:
    """Whether a memory is a standing instruction that applies to the user of the request."""
    if not isinstance(record, Memory) or record.memory_type not in INSTRUCTION_TYPES:
        return False
    return matches(applies_to(request.user_id), record)


def readable_agents(agent: str, scope: MemoryScope | None, include_shared: bool) -> tuple[str, ...]:
    if scope is None:
        return (agent,)
    if not isinstance(scope, MemoryScope):
        raise ScopeViolationError("retrieve", "scope", scope, "must be a MemoryScope")
    if scope.agent_name != agent:
        raise ScopeViolationError("retrieve", "scope", scope.agent_name, f"must be the scope of the agent {agent!r}")
    return tuple(scope.get_readable_agents()) if include_shared else (agent,)
