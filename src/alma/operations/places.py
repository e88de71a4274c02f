"""Where a caller finds the records of each kind: the scope, and the condition of visibility."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from alma.errors import NotFoundError, PermissionDeniedError
from alma.memory.filters import visible
from alma.model.kinds import kind_named
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, In, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import Caller

MemoryKind = Literal["memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern", "user_preference"]
KINDS: tuple[type[Record], ...] = (Memory, Heuristic, Outcome, DomainKnowledge, AntiPattern, UserPreference)
"""The kinds of memory that people look at."""

CREATED: dict[type[Record], str] = {
    Memory: "created_at",
    Heuristic: "created_at",
    Outcome: "timestamp",
    DomainKnowledge: "last_verified",
    AntiPattern: "created_at",
    UserPreference: "timestamp",
}
"""The field with the time at which a record of each kind came into being."""


@dataclass(frozen=True, slots=True)
class Place:
    """A kind, and the part of the store in which a caller sees records of it."""

    cls: type[Record]
    scope: Scope
    where: Predicate = EVERYTHING

    @property
    def kind(self) -> str:
        return self.cls.spec.kind

    @property
    def created(self) -> str:
        """The field with the time of creation."""
        return CREATED[self.cls]

    def within(self, *conditions: Predicate) -> Predicate:
        """The conditions together with the visibility."""
        return And(self.where, *conditions)

    def of_agent(self, agent: str) -> Predicate:
        """The condition that a record belongs to an agent; records that have none match nothing."""
        name = next((each for each in ("agent", "source_agent") if each in self.cls.spec.by_name), None)
        return In(self.cls.spec.key, ()) if name is None else Compare(name, "eq", agent)

    def between(self, since: datetime | None, until: datetime | None) -> list[Predicate]:
        """The conditions that a record was created in this half-open range."""
        found: list[Predicate] = []
        if since is not None:
            found.append(Compare(self.created, "ge", since))
        if until is not None:
            found.append(Compare(self.created, "lt", until))
        return found


def place_of(caller: Caller, cls: type[Record], project_id: str | None, user_id: str | None = None) -> Place | None:
    """Where the caller sees records of a kind; None if its grant is closed to that kind."""
    if cls is Memory:
        scope = caller.scope(project_id)
        return Place(Memory, scope, visible(scope, caller.by(user_id=user_id)))
    if cls is UserPreference:
        return _of_preferences(caller, user_id)
    try:
        return Place(cls, caller.project_scope(project_id))
    except PermissionDeniedError:
        if project_id is not None and caller.grant.project_id not in (None, project_id):
            raise
        return None


def _of_preferences(caller: Caller, user_id: str | None) -> Place | None:
    if caller.grant.is_limited and caller.grant.user_id is None:
        return None
    user = caller.user(user_id)
    if user is None and caller.grant.is_limited:
        # Preferences go with a user from project to project, so a limited key has to name one.
        return None
    return Place(UserPreference, Scope.everywhere() if user is None else Scope(user_id=user))


def places(caller: Caller, project_id: str | None, kinds: Any = None, user_id: str | None = None) -> list[Place]:
    """The places of these kinds, or of every kind, that are open to the caller."""
    wanted = KINDS if not kinds else [kind_named(each) for each in kinds]
    found = (place_of(caller, cls, project_id, user_id) for cls in wanted)
    return [place for place in found if place is not None]


def required(
    caller: Caller, kind: str, record_id: str, project_id: str | None, user_id: str | None
) -> tuple[Place, Any]:
    """The place and the record with this kind and id, or NotFoundError."""
    for place in places(caller, project_id, [kind], user_id):
        for record in caller.store.storage.find(
            place.cls, place.scope, place.within(In(place.cls.spec.key, [record_id])), limit=1
        ):
            return place, record
    raise NotFoundError(kind, record_id)
