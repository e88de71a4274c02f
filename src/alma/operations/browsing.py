"""Operations for looking at memories of every kind: browse, count, and what a caller may do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from alma import __version__
from alma.clock import now
from alma.errors import NotFoundError, ValidationError
from alma.learning.policy import PINNED
from alma.memory.filters import in_layers
from alma.model.governance import ApiKey, ArchiveCause, ArchivedRecord
from alma.model.kinds import kind_named
from alma.model.learning import DomainKnowledge, Heuristic
from alma.model.memory import Layer, Memory
from alma.model.provenance import Trust, of_trust
from alma.model.query import And, At, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Project, Session
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Input, Name, Operation, Output, Share, Text, operation
from alma.operations.places import MemoryKind, Place, place_of, places, required
from alma.operations.rows import Row, row_of, text_field
from alma.operations.stretches import stretch_before
from alma.storage.base import StorageBackend

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
State = Literal["active", "archived", "deleted", "expired", "forgotten", "merged", "quarantined", "rejected"]
_IN_ARCHIVE = frozenset(map(str, ArchiveCause))
_LOOKED_AT = 300
_FOUND_AT_MOST = 1_000


class WhoAmI(Input):
    pass


class Me(Output):
    rights: Sequence[str]
    user_id: str | None = None
    project_id: str = Field(description="The project of requests that do not name one.")
    agent: str | None = None
    is_limited: bool = Field(description="Whether the key is limited to a user, project or agent.")
    key_id: str | None = Field(None, description="The id of the API key; absent for the owner of the store.")
    key_name: str | None = None
    version: str
    storage: str
    embedding_model: str
    operations: Sequence[str] = Field(description="The names of the operations that the caller has the right to.")


@operation("service", Right.READ, example={})
def whoami(caller: Caller, request: WhoAmI) -> Me:
    """Show what the caller may do: its rights, limits and operations."""
    from alma.operations import OPERATIONS

    grant, store = caller.grant, caller.store
    key = None if grant.key_id is None else store.storage.get(ApiKey, grant.key_id, Scope.everywhere())
    return Me(
        rights=sorted(grant.rights),
        user_id=grant.user_id,
        project_id=caller.project(),
        agent=grant.agent,
        is_limited=grant.is_limited,
        key_id=grant.key_id,
        key_name=None if key is None else key.name,
        version=__version__,
        storage=type(store.storage).__name__,
        embedding_model=store.embedder.model,
        operations=[each.name for each in OPERATIONS if each.right in grant.rights],
    )


class Browse(InProject):
    kind: MemoryKind = "memory"
    agent: Name | None = None
    user_id: Name | None = Field(None, description="Only what belongs to this user, who also asks.")
    session_id: Name | None = None
    layer: Layer | None = None
    tag: Name | None = None
    type: Name | None = Field(None, description="The memory type, task type, domain or category.")
    source: Name | None = Field(
        None, description="Where it comes from: the source of a fact, preference or memory, or the tool of a memory."
    )
    trust: Trust | None = Field(
        None, description="Of its source: trusted (user, agent, system), untrusted, or unknown for what has no source."
    )
    success: bool | None = Field(None, description="Only outcomes that succeeded, or failed.")
    pinned: bool | None = Field(None, description="true for pinned memories only.")
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    since: AwareDatetime | None = Field(None, description="Created at this time or later.")
    until: AwareDatetime | None = Field(None, description="Created before this time.")
    state: State = "active"
    words: Text | None = Field(
        None, description="Only what shares words with this text, best match first; with as_of, what does so now."
    )
    as_of: AwareDatetime | None = Field(None, description="As it was recorded at this time.")
    limit: int = Field(50, ge=1, le=200)
    read_most: int | None = Field(
        None,
        ge=1_000,
        le=1_000_000,
        description="Read no more than about this many records for a page, which may then be short: searched_until "
        "says how far, and next_cursor goes on. Default: until the page is full.",
    )
    cursor: Annotated[str, StringConstraints(max_length=1_000)] | None = Field(
        None, description="next_cursor of the previous page."
    )


class BrowsePage(Output):
    rows: Sequence[Row]
    next_cursor: str | None = None
    searched_until: datetime | None = Field(
        default=None, description="With read_most: older records than this were not searched yet."
    )


@operation("memories", Right.READ, example={"kind": "heuristic", "agent": "helena", "limit": 20})
def browse_memories(caller: Caller, request: Browse) -> BrowsePage:
    """List memories of one kind, newest first, with filters; pages are as fast at the end as at the start."""
    place = place_of(caller, kind_named(request.kind), request.project_id, request.user_id)
    if place is None:
        return BrowsePage(rows=[])
    if request.state in _IN_ARCHIVE and (place.cls is not Memory or request.state != "archived"):
        return _archived_page(caller, place, request)
    where = place.within(*_conditions(place, request))
    storage = caller.store.storage
    if request.words is not None:
        return BrowsePage(rows=[row_of(record) for record in _found(storage, place, request, request.words, where)])
    order = (Order(place.created, "desc"),)
    after = _after(place.created, request.cursor)
    start = None if request.read_most is None else _start(caller, place, request, after)
    if start is not None:
        where = And(where, Compare(place.created, "ge", start))
    found = storage.find(place.cls, place.scope, where, order, request.limit + 1, after, request.as_of)
    rows = [row_of(record) for record in found[: request.limit]]
    if len(found) > request.limit:
        return BrowsePage(rows=rows, next_cursor=_cursor(found[request.limit - 1], place.created))
    if start is None:
        return BrowsePage(rows=rows)
    # The cursor of what is older than the stretch: records with the time before its start, which the store rounds to
    # microseconds, follow this key.
    older = start - timedelta(microseconds=1)
    return BrowsePage(rows=rows, next_cursor=f"{older.isoformat()} !", searched_until=start)


def _found(storage: StorageBackend, place: Place, request: Browse, words: str, where: Predicate) -> list[Record]:
    """What shares words with a text, best match first; with `as_of` what does so now, as it was then."""
    if request.as_of is None:
        return [hit.record for hit in storage.search_text(place.cls, words, place.scope, where, request.limit)]
    hits = storage.search_text(place.cls, words, place.scope, place.where, _FOUND_AT_MOST)
    named = And(where, In(place.cls.spec.key, [str(hit.record.key) for hit in hits]))
    then = {record.key: record for record in storage.find(place.cls, place.scope, named, as_of=request.as_of)}
    return [then[hit.record.key] for hit in hits if hit.record.key in then][: request.limit]


def _start(caller: Caller, place: Place, request: Browse, after: Cursor | None) -> datetime | None:
    """The start of the stretch of time that a page with `read_most` searches; None if that reaches to the end."""
    ends = [each for each in (request.until, request.as_of) if each is not None]
    if after is not None:
        if after.values[0] is None:
            return None
        ends.append(after.values[0])
    storage, end = caller.store.storage, min(ends, default=None)
    start = stretch_before(storage, place, end, request.read_most or 0)
    if start is None or (request.since is not None and start <= request.since):
        return None
    # In the order of the index, in which the first of them is found at once.
    older, newest = Compare(place.created, "lt", start), (Order(place.created, "desc"),)
    return start if storage.values(place.cls, (place.created,), place.scope, older, newest, limit=1) else None


def _cursor(record: Any, created: str) -> str:
    moment = getattr(record, created)
    return f"{'' if moment is None else moment.isoformat()} {record.key}"


def _after(created: str, cursor: str | None) -> Cursor | None:
    if cursor is None:
        return None
    moment, _, key = cursor.partition(" ")
    try:
        at = datetime.fromisoformat(moment) if moment else None
    except ValueError:
        at = None
    if not key or (moment and (at is None or at.tzinfo is None)):
        raise ValidationError("browse_memories", "cursor", cursor, "must be the next_cursor of an earlier page")
    return Cursor((at,), key)


def _conditions(place: Place, request: Browse) -> Iterable[Predicate]:
    yield from place.between(request.since, request.until)
    if request.agent is not None:
        yield place.of_agent(request.agent)
    yield from _named(place, request)
    if place.cls is Memory:
        yield from _of_state(request.state)
    elif request.state != "active":
        yield In(place.cls.spec.key, ())
    yield from _of_confidence(place, request)


def _named(place: Place, request: Browse) -> Iterable[Predicate]:
    """The conditions on fields that only some kinds have; a kind without the field has no such records."""
    fields = {
        "user_id": request.user_id,
        "session_id": request.session_id,
        _TYPE_FIELDS.get(place.cls.spec.kind, "type"): request.type,
        "success": request.success,
    }
    for name, value in fields.items():
        if value is not None:
            yield Compare(name, "eq", value) if name in place.cls.spec.by_name else In(place.cls.spec.key, ())
    if request.source is not None:
        yield _of_source(place.cls, request.source)
    if request.trust is not None:
        yield of_trust(place.cls, request.trust)
    if request.tag is not None:
        yield Has("tags", request.tag) if place.cls is Memory else In(place.cls.spec.key, ())
    if request.layer is not None:
        yield in_layers([request.layer]) if place.cls is Memory else In(place.cls.spec.key, ())
    if request.pinned:
        yield pinned_only(place.cls)


def _of_source(cls: type[Record], source: str) -> Predicate:
    names = [name for name in ("provenance", "source_tool", "source") if name in cls.spec.by_name]
    return Or(*(Compare(name, "eq", source) for name in names))


def pinned_only(cls: type[Record]) -> Predicate:
    """The condition that people pinned a record."""
    return Has("tags", PINNED) if cls is Memory else At("metadata", (PINNED,), True)


_TYPE_FIELDS = {
    "memory": "memory_type",
    "outcome": "task_type",
    "domain_knowledge": "domain",
    "user_preference": "category",
}


def _of_state(state: str) -> Iterable[Predicate]:
    yield Compare("is_active", "eq", state != "deleted")
    if state == "deleted":
        return
    yield Compare("is_archived", "eq", state == "archived")
    if state == "active":
        yield Or(Missing("expires_at"), Compare("expires_at", "gt", now()))
    elif state == "expired":
        yield Compare("expires_at", "le", now())


def _of_confidence(place: Place, request: Browse) -> Iterable[Predicate]:
    name = "importance_score" if place.cls is Memory else "confidence"
    for op, value in (("ge", request.min_confidence), ("le", request.max_confidence)):
        if value is not None:
            known = name in place.cls.spec.by_name
            yield Compare(name, op, value) if known else In(place.cls.spec.key, ())  # type: ignore[arg-type]


def _archived_page(caller: Caller, place: Place, request: Browse) -> BrowsePage:
    """A page of the archive, as the rows of the records in it."""
    archive = caller.store.archive
    where = And(
        Compare("kind", "eq", place.kind),
        Compare("cause", "eq", request.state),
        *([Compare("agent", "eq", request.agent)] if request.agent is not None else []),
    )
    order = (Order("archived_at", "desc"),)
    after = _after("archived_at", request.cursor)
    found = caller.store.storage.find(ArchivedRecord, place.scope, where, order, request.limit + 1, after)
    rows = []
    for archived in found[: request.limit]:
        record = archive.record(archived)
        if isinstance(record, Memory) and not caller.may_see(record, request.user_id):
            continue
        rows.append(
            row_of(record).model_copy(update={"state": str(archived.cause), "updated_at": archived.archived_at})
        )
    more = len(found) > request.limit
    return BrowsePage(rows=rows, next_cursor=_cursor(found[request.limit - 1], "archived_at") if more else None)


class ReadRecord(InProject):
    kind: MemoryKind
    id: Name
    as_of: AwareDatetime | None = Field(None, description="As it was recorded at this time.")
    user_id: Name | None = ASKING_USER


class RecordRead(Output):
    row: Row
    text: str = Field(description="The whole text.")
    fields: Mapping[str, Any] = Field(description="Every stored field, by name.")
    interval: Sequence[float] | None = Field(None, description="The 90 % credible interval of a lesson's success rate.")


@operation("memories", Right.READ, example={"kind": "heuristic", "id": _ID})
def read_record(caller: Caller, request: ReadRecord) -> RecordRead:
    """Read one memory of any kind with all of its fields, now or as it was at a time."""
    place, record = required(caller, request.kind, request.id, request.project_id, request.user_id)
    if request.as_of is not None:
        then = caller.store.storage.get(place.cls, request.id, place.scope, request.as_of)
        if then is None:
            raise NotFoundError(request.kind, f"{request.id} at {request.as_of.isoformat()}")
        record = then
    hidden = {record.spec.vector_field, record.spec.key}
    fields = {
        name: value for name, value in record.values().items() if name not in hidden and value not in (None, "", ())
    }
    interval = record.confidence_interval if isinstance(record, Heuristic) else None
    text = getattr(record, text_field(place.cls))
    return RecordRead(row=row_of(record), text=text or "", fields=fields, interval=interval)


class Facets(InProject):
    pass


class FacetValues(Output):
    projects: Sequence[str] = ()
    agents: Sequence[str] = ()
    users: Sequence[str] = ()
    types: Sequence[str] = ()
    tags: Sequence[str] = ()
    domains: Sequence[str] = ()
    sources: Sequence[str] = ()
    sessions: Mapping[str, str] = Field({}, description="The names of the newest sessions by id.")


@operation("memories", Right.READ, example={})
def list_facets(caller: Caller, request: Facets) -> FacetValues:
    """List the agents, users, types, tags and domains of the newest memories, as suggestions for filters."""
    found: dict[str, Counter[str]] = {name: Counter() for name in FacetValues.model_fields}
    for place in places(caller, request.project_id):
        _count_facets(caller, place, found)
    sessions = caller.store.sessions.find(caller.scope(request.project_id), archived=None, limit=100)
    found["agents"].update(each.agent for each in sessions if each.agent)
    if not caller.grant.is_limited:
        found["projects"].update(_projects(caller))
    found["projects"][caller.project(request.project_id)] += 1
    names = ("projects", "agents", "users", "types", "tags", "domains", "sources")
    lists: dict[str, Any] = {name: [value for value, _ in found[name].most_common(100)] for name in names}
    return FacetValues(**lists, sessions={each.id: each.name or each.goal or each.id for each in sessions})


_FACETS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "memory": (
        ("agents", "source_agent"),
        ("users", "user_id"),
        ("types", "memory_type"),
        ("tags", "tags"),
        ("sources", "provenance"),
        ("sources", "source_tool"),
    ),
    "heuristic": (("agents", "agent"),),
    "outcome": (("agents", "agent"), ("types", "task_type")),
    "domain_knowledge": (("agents", "agent"), ("domains", "domain"), ("sources", "source")),
    "anti_pattern": (("agents", "agent"),),
    "user_preference": (("users", "user_id"), ("domains", "category"), ("sources", "source")),
}


def _count_facets(caller: Caller, place: Place, found: Mapping[str, Counter[str]]) -> None:
    order = (Order(place.created, "desc"),)
    for record in caller.store.storage.find(place.cls, place.scope, place.where, order, _LOOKED_AT):
        for name, field in _FACETS[place.kind]:
            value = getattr(record, field)
            found[name].update([value] if isinstance(value, str) and value else value or ())


def _projects(caller: Caller) -> set[str]:
    """The projects of the newest records; their owner may look into all of them."""
    storage, everywhere = caller.store.storage, Scope.everywhere()
    known = {key for (key,) in storage.values(Project, ("id",), everywhere, limit=_LOOKED_AT)}
    for cls, field in ((Heuristic, "id"), (Memory, "created_at"), (Session, "created_at"), (DomainKnowledge, "id")):
        rows = storage.values(cls, ("project_id",), everywhere, order=(Order(field, "desc"),), limit=_LOOKED_AT)
        known.update(project for (project,) in rows if project)
    return known


BROWSING: tuple[Operation[Any, Any], ...] = (whoami, browse_memories, read_record, list_facets)
