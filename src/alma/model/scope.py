"""Scope and visibility: which memories a tenant's read may see; every read needs a scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from alma.errors import ScopeViolationError, ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_name, same_name
from alma.model.query import EVERYTHING, And, Compare, In, Missing, Or, Predicate
from alma.model.record import RecordSpec

_SEPARATORS = lazy_regex(r"[\s_\-]+")
_COLUMNS = ("user_id", "project_id", "session_id", "agent")
# The field names of the agent that a record belongs to.
_AGENTS = ("agent", "source_agent", "agent_id")


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the store that a call may see: every given name must match, and at least one is required. `agent` may
    be several agents. Only `Scope.everywhere()` sees all. A `sealed` scope excludes the user's global memories from
    other projects.
    """

    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    agent: str | Sequence[str] | None = None
    unlimited: bool = False
    sealed: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.agent, Iterable) and not isinstance(self.agent, str):
            object.__setattr__(self, "agent", tuple(self.agent))
        given = [name for name in _COLUMNS if getattr(self, name) is not None]
        if not given and not self.unlimited:
            raise ScopeViolationError("scope", None, self, f"must name at least one of {', '.join(_COLUMNS)}")
        for name in given:
            self._check(name)

    @classmethod
    def everywhere(cls) -> Scope:
        """The whole store: for maintenance, migration and administration."""
        return cls(unlimited=True)

    def predicate(self, spec: RecordSpec) -> Predicate:
        """The predicate for records of this kind inside the scope; a name that the kind lacks matches nothing."""
        return _predicate(self, spec)

    def _check(self, name: str) -> None:
        value = getattr(self, name)
        for text in value if isinstance(value, tuple) else (value,):
            try:
                checked_name("scope", name, text)
            except ValidationError as exc:
                raise ScopeViolationError("scope", name, text, exc.reason) from None


def checked_scope(what: str, scope: object) -> Scope:
    """The argument, if it is a Scope."""
    if not isinstance(scope, Scope):
        reason = "needs a Scope, for example Scope(project_id='shop'); Scope.everywhere() sees all"
        raise ScopeViolationError(what, None, scope, reason)
    return scope


@lru_cache(maxsize=1024)
def _predicate(scope: Scope, spec: RecordSpec) -> Predicate:
    parts: list[Predicate] = []
    for name in _COLUMNS:
        value = getattr(scope, name)
        if value is None:
            continue
        field_name = _field_of(spec, name)
        if field_name is None:
            raise ScopeViolationError(spec.kind, None, scope, f"cannot be scoped by {name}, it has no such field")
        parts.append(In(field_name, value) if isinstance(value, tuple) else Compare(field_name, "eq", value))
    return parts[0] if len(parts) == 1 else And(*parts)


def _field_of(spec: RecordSpec, name: str) -> str | None:
    """The field of a kind for a name of a scope."""
    return next((known for known in (_AGENTS if name == "agent" else (name,)) if known in spec.by_name), None)


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """What an agent may learn, and which other agents' memories it reads.

    An agent reads what the agents of `inherit_from` have learned; `share_with` names those who may read from it.
    """

    agent_name: str
    can_learn: Sequence[str] = field(default_factory=tuple)
    cannot_learn: Sequence[str] = field(default_factory=tuple)
    share_with: Sequence[str] = field(default_factory=tuple)
    inherit_from: Sequence[str] = field(default_factory=tuple)
    min_occurrences_for_heuristic: int = 3

    def __post_init__(self) -> None:
        checked_name("scope", "agent_name", self.agent_name)
        for name in ("can_learn", "cannot_learn", "share_with", "inherit_from"):
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ValidationError("scope", name, values, "must be a list of names")
            object.__setattr__(self, name, [checked_name("scope", name, value) for value in values])
        least = self.min_occurrences_for_heuristic
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValidationError(
                "scope", "min_occurrences_for_heuristic", least, "must be a whole number of at least 1"
            )

    def is_allowed(self, domain: str) -> bool:
        """Whether the agent may learn in this domain: `cannot_learn` wins, and an empty `can_learn` allows all."""
        return not self.forbids(domain) and (not self.can_learn or _among(domain, self.can_learn))

    def forbids(self, domain: str) -> bool:
        """Whether the agent must not learn in this domain; backend_logic and Backend Logic are the same."""
        return _among(_checked("domain", domain), self.cannot_learn)

    def get_readable_agents(self) -> list[str]:
        """The agent itself, then those it inherits from."""
        return list(dict.fromkeys((self.agent_name, *self.inherit_from)))

    def can_read_from(self, other_agent: str) -> bool:
        """Whether this agent sees what the other one learned."""
        return same_name(_checked("other_agent", other_agent)) in map(same_name, self.get_readable_agents())

    def shares_with(self, other_agent: str) -> bool:
        """Whether the other agent is allowed to see what this one learned."""
        return same_name(_checked("other_agent", other_agent)) in map(same_name, (self.agent_name, *self.share_with))


def _checked(name: str, value: str) -> str:
    """The name in a query about a scope; refused if it is not text."""
    if not isinstance(value, str):
        raise ValidationError("scope", name, value, "must be text")
    return value


def _among(domain: str, names: Sequence[str]) -> bool:
    return bool(names) and _spelled(domain) in map(_spelled, names)


@lru_cache(maxsize=1024)
def _spelled(domain: str) -> str:
    return _SEPARATORS.sub("_", same_name(domain).strip())


def alive(now: datetime) -> Predicate:
    """Memories that are not deleted, archived or expired."""
    return And(
        Compare("is_active", "eq", True),
        Compare("is_archived", "eq", False),
        Or(Missing("expires_at"), Compare("expires_at", "gt", now)),
    )


def public(user_id: str | None) -> Predicate:
    """The predicate for memories visible to a user: private ones are visible only to their user."""
    not_private = Compare("is_private", "eq", False)
    return not_private if user_id is None else Or(not_private, Compare("user_id", "eq", user_id))


def open_to(scope: Scope, user_id: str | None = None) -> Predicate:
    """A predicate for what the user, or that of the scope, may see; an unlimited scope without one sees everything."""
    if user_id is None and checked_scope("memory", scope).unlimited:
        return EVERYTHING
    return public(scope.user_id if user_id is None else user_id)


def visible(scope: Scope, now: datetime, user_id: str | None = None) -> Predicate:
    """The general memories that are visible now in this scope, to this user."""
    return And(alive(now), open_to(scope, user_id))
