"""Filters: which general memories a caller selects, and which of them are visible to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Annotated, Any, get_args

from annotated_types import Interval

from alma import clock
from alma.clock import now
from alma.errors import ValidationError
from alma.model.common import checked_whole
from alma.model.fields import check_timestamp
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory, importance_of
from alma.model.provenance import Trust, of_trust
from alma.model.query import And, At, Compare, Has, In, Missing, Or, Order, Predicate
from alma.model.scope import Scope, checked_scope, public
from alma.model.workspace import Session, SessionMemory
from alma.retrieval.router import in_session
from alma.storage.base import Transaction

Path = str | tuple[str, ...]
_EVERYWHERE = Scope.everywhere()


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Conditions on memories; all that are given must hold.

    All `tags` must be present, of `any_tags` one. `layers` means one of them; a memory without layers belongs to the
    project layer. `content` maps keys or paths of `content_json`, as a tuple or with dots, to values: a list matches if
    it contains the value, a dict or list matches if all its parts do, a dict also matches a member of a list. Time
    ranges are half open: from `since` up to, but not including, `until`. `trust` is that of the source: trusted,
    untrusted, or unknown for memories of early versions. Archived, deleted and expired memories are left out unless
    included.
    """

    types: Sequence[str] = ()
    categories: Sequence[str] = ()
    tags: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    layers: Sequence[Layer | str] = ()
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    source_agent: str | None = None
    event_since: datetime | None = None
    event_until: datetime | None = None
    created_since: datetime | None = None
    created_until: datetime | None = None
    min_importance: Annotated[float, Interval(ge=0, le=1)] | None = None
    min_priority: Annotated[int, Interval(ge=1, le=10)] | None = None
    trust: Trust | None = None
    content: Mapping[Path, Any] = field(default_factory=dict)
    private: bool | None = None
    include_archived: bool = False
    include_deleted: bool = False
    include_expired: bool = False

    def __post_init__(self) -> None:
        for name in ("types", "categories", "tags", "any_tags", "layers"):
            object.__setattr__(self, name, _several(name, getattr(self, name)))
        object.__setattr__(self, "layers", tuple(checked_layer(layer) for layer in self.layers))
        for name in ("event_since", "event_until", "created_since", "created_until"):
            object.__setattr__(self, name, _moment(name, getattr(self, name)))
        for name in ("include_archived", "include_deleted", "include_expired"):
            if not isinstance(getattr(self, name), bool):
                raise ValidationError("filter", name, getattr(self, name), "must be True or False")
        if self.trust not in (None, *get_args(Trust)):
            raise ValidationError("filter", "trust", self.trust, f"must be among {', '.join(get_args(Trust))}")
        if not isinstance(self.content, Mapping):
            raise ValidationError("filter", "content", self.content, "must be a dict of paths and values")

    @property
    def narrows(self) -> bool:
        """Whether any condition is given."""
        return any(
            getattr(self, each.name) not in ((), None, {})
            for each in fields(self)
            if not each.name.startswith("include_")
        )

    def predicate(self, now: datetime) -> Predicate:
        """The filter as a storage predicate."""
        return And(
            *self._content_conditions(),
            *self._owner_conditions(),
            *self._time_conditions(),
            *self._importance_conditions(),
            *self._state_conditions(now),
        )

    def _content_conditions(self) -> Iterable[Predicate]:
        if self.types:
            # An index sorts memories of one type.
            yield In("memory_type", self.types) if len(self.types) > 1 else Compare("memory_type", "eq", self.types[0])
        if self.categories:
            yield In("category", self.categories)
        yield from (Has("tags", tag) for tag in self.tags)
        if self.any_tags:
            yield Or(*(Has("tags", tag) for tag in self.any_tags))
        if self.layers:
            yield in_layers(self.layers)
        if self.trust is not None:
            yield of_trust(Memory, self.trust)
        for path, value in self.content.items():
            yield from _contains(_keys(path), value)

    def _owner_conditions(self) -> Iterable[Predicate]:
        for name in ("user_id", "project_id", "session_id", "source_agent"):
            if getattr(self, name) is not None:
                yield Compare(name, "eq", getattr(self, name))
        if self.private is not None:
            yield Compare("is_private", "eq", self.private)

    def _time_conditions(self) -> Iterable[Predicate]:
        if self.created_since is not None:
            yield Compare("created_at", "ge", self.created_since)
        if self.created_until is not None:
            yield Compare("created_at", "lt", self.created_until)
        if self.event_since is not None:
            yield _event_time("ge", self.event_since)
        if self.event_until is not None:
            yield _event_time("lt", self.event_until)

    def _importance_conditions(self) -> Iterable[Predicate]:
        if self.min_importance is not None:
            yield Compare("importance_score", "ge", _share("min_importance", self.min_importance))
        if self.min_priority is not None:
            yield Compare("importance_score", "ge", _least_importance(self.min_priority))

    def _state_conditions(self, now: datetime) -> Iterable[Predicate]:
        if not self.include_deleted:
            yield Compare("is_active", "eq", True)
        if not self.include_archived:
            yield Compare("is_archived", "eq", False)
        if not self.include_expired:
            yield Or(Missing("expires_at"), Compare("expires_at", "gt", now))


def viewer(scope: Scope, by: Attribution) -> str | None:
    """The viewing user: of the attribution, else of the scope."""
    known = checked_scope("memory", scope).user_id
    return by.user_id if by.user_id is not None else known


def visible(scope: Scope, by: Attribution) -> Predicate:
    """The predicate of visibility: private memories are visible to their user alone."""
    return public(viewer(scope, by))


def visible_in_session(scope: Scope, by: Attribution, wanted: MemoryFilter) -> Predicate:
    """The predicate of visibility from inside a session, which hides the session layer of other sessions.

    It hides nothing more if the scope or filter names a session or layers.
    """
    if by.session_id is None or scope.session_id is not None or wanted.session_id is not None or wanted.layers:
        return visible(scope, by)
    return And(visible(scope, by), in_session(by.session_id))


def in_layers(layers: Iterable[Layer | str]) -> Predicate:
    """Memories in one of the layers; a memory without layers belongs to the project layer."""
    chosen = [Layer(layer) for layer in layers]
    parts: list[Predicate] = [Compare(f"layer_{layer}", "eq", True) for layer in chosen]
    if Layer.PROJECT in chosen:
        parts.append(And(*(Compare(f"layer_{layer}", "eq", False) for layer in Layer)))
    return Or(*parts)


def checked_layer(layer: Layer | str) -> Layer:
    try:
        return Layer(layer)
    except ValueError:
        raise ValidationError("filter", "layers", layer, f"must be among {', '.join(Layer)}") from None


def age_limit(older_than: timedelta | datetime) -> datetime:
    """The moment before which something is older than this."""
    if isinstance(older_than, timedelta):
        if older_than < timedelta(0):
            raise ValidationError("filter", "older_than", older_than, "must not be negative")
        return clock.now() - older_than
    moment = _moment("older_than", older_than)
    if moment is None:
        raise ValidationError("filter", "older_than", older_than, "must be a duration or a datetime")
    return moment


def _several(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError("filter", name, values, "must be a list")
    return tuple(values)


def _moment(name: str, moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    try:
        return check_timestamp(moment)
    except ValueError as exc:
        raise ValidationError("filter", name, moment, str(exc)) from None


def _event_time(op: Any, moment: datetime) -> Predicate:
    """Compare the event time, or the creation time of memories without one."""
    return Or(Compare("event_time", op, moment), And(Missing("event_time"), Compare("created_at", op, moment)))


def _share(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValidationError("filter", name, value, "must be a number between 0 and 1")
    return float(value)


def _least_importance(priority: int) -> float:
    """The lowest importance that is rounded to this priority; halves are rounded to even."""
    checked_whole("filter", "min_priority", priority, 1, 10)
    if priority == 1:
        return 0.0
    half_below = (priority - 1.5) / 9
    return half_below if 1 + round(half_below * 9) >= priority else half_below + 1e-9 * importance_of(10)


def _keys(path: Path) -> tuple[str, ...]:
    if not isinstance(path, str | tuple):
        raise ValidationError("filter", "content", path, "must have texts or tuples of texts as keys")
    return tuple(path.split(".")) if isinstance(path, str) else path


def _contains(path: tuple[str, ...], value: Any) -> Iterable[Predicate]:
    """The predicates for a value under a path, one for each part of a dict or list."""
    if isinstance(value, Mapping) and value:
        parts = (part for name, each in value.items() for part in _contains((*path, name), each))
        # A list there matches if one member has all of it.
        yield Or(And(*parts), At("content_json", path, dict(value)))
    elif isinstance(value, list | tuple) and value:
        yield from (At("content_json", path, each) for each in value)
    else:
        yield At("content_json", path, value)


def checked_filter(call: str, where: MemoryFilter | None) -> MemoryFilter:
    """The given filter, or the default one, which leaves out deleted, archived and expired memories."""
    if where is not None and not isinstance(where, MemoryFilter):
        raise ValidationError(call, "where", where, "must be a MemoryFilter")
    return where or ALIVE


ALIVE = MemoryFilter()
"""Memories that are neither deleted, archived nor expired."""


# ---------------------------------------------------------------------- visibility inside a session


def memories_of(tx: Transaction, session: Session, user_id: str | None) -> list[Memory]:
    """The live memories of a session that are visible to its user and to the viewer, oldest first."""
    where = Compare("session_id", "eq", session.id)
    placed = [row[0] for row in tx.values(SessionMemory, ("memory_id",), _EVERYWHERE, where)]
    of_session: Predicate = Or(where, In("id", placed)) if placed else where
    found = tx.find(Memory, _EVERYWHERE, And(of_session, Compare("is_active", "eq", True)), (Order("created_at"),))
    moment = now()
    seen = [memory for memory in found if is_visible(memory, session) and is_open_to(memory, user_id)]
    return [memory for memory in seen if not is_inactive(memory, moment)]


def is_visible(memory: Memory, session: Session) -> bool:
    """Whether a session may hold a memory: of its project, or global of its user; a private one of its user alone."""
    theirs = memory.user_id is not None and memory.user_id == session.user_id
    # A private memory without a user belongs to the agent that created it.
    by_agent = memory.user_id is None and memory.source_agent is not None and memory.source_agent == session.agent
    if memory.is_private and not theirs and not by_agent:
        return False
    same_project = memory.project_id is None or memory.project_id == session.project_id
    if same_project:
        return memory.project_id is not None or memory.user_id is None or theirs or memory.session_id == session.id
    return memory.layer_global and theirs


def is_open_to(memory: Memory, user_id: str | None) -> bool:
    """Whether a memory of a session is visible to this user."""
    return not memory.is_private or memory.user_id is None or memory.user_id == user_id


def is_inactive(memory: Memory, moment: datetime) -> bool:
    """Whether a memory is archived, deleted or expired."""
    return memory.is_archived or not memory.is_active or (memory.expires_at is not None and memory.expires_at <= moment)
