"""The contents of a Redis server under the keys of the projection: every part that an entry must list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from alma.cache.keys import (
    ACTIVE_SESSION,
    INCOMING,
    LAYER_CONFIG,
    MEMORY,
    OUTGOING,
    PROJECT_ACTIVE,
    PROJECT_CONTEXT,
    PROJECT_PATTERNS,
    SESSION_CONTEXT,
    USER_PREFERENCES,
    USER_PROJECTS,
    USER_RECENT,
    WORKING_MEMORY,
    Keyspace,
    Pattern,
    escaped,
)
from alma.cache.redis_entries import PROJECTED
from alma.model.governance import Setting
from alma.model.learning import UserPreference
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.workspace import Project, Session, SessionMemory, User

if TYPE_CHECKING:
    from redis import Redis

OWN_DOCUMENT: Mapping[type[Record], Pattern] = {
    Memory: MEMORY,
    Session: SESSION_CONTEXT,
    Project: PROJECT_CONTEXT,
}
"""The key of a record's own document."""

_SHARED: Mapping[type[Record], tuple[Pattern, ...]] = {
    Memory: (USER_RECENT, PROJECT_ACTIVE),
    MemoryRelationship: (OUTGOING, INCOMING),
    Session: (ACTIVE_SESSION,),
    SessionMemory: (WORKING_MEMORY,),
    Project: (USER_PROJECTS,),
    ProjectPattern: (PROJECT_PATTERNS,),
    UserPreference: (USER_PREFERENCES,),
    User: (USER_PREFERENCES,),
    Setting: (LAYER_CONFIG,),
}
_OWNER = {pattern: cls for cls, patterns in reversed(list(_SHARED.items())) for pattern in patterns}
_KINDS = frozenset(cls.spec.kind for cls in PROJECTED)
_AT_ONCE = 1000


class Place(NamedTuple):
    """A member of a group, or the placeholder of a key whose group does not exist."""

    pattern: str
    key: str
    group: str
    member: str
    score: str = "0"


class Part(NamedTuple):
    """The part that the entry of this id must list: a document, a place in a shared key, or nothing if it has one."""

    record_id: str
    document: str = ""
    place: Place = Place("", "", "", "", "")

    @property
    def arguments(self) -> list[bytes]:
        """The part as the script takes it."""
        return [each.encode("utf-8", "surrogateescape") for each in (self.record_id, self.document, *self.place)]


def parts_of(client: Redis, keys: Keyspace, own: Callable[..., bytes], cls: type[Record]) -> Iterator[Part]:
    """Every part of the records of a kind; a key or member that names no record has itself as the id."""
    for name, _ in client.hscan_iter(own("entries", cls.spec.kind), count=_AT_ONCE):
        yield Part(_text(name))
    if cls in OWN_DOCUMENT:
        for key in _keys(client, keys, OWN_DOCUMENT[cls]):
            yield Part(unquote(_variable(keys, OWN_DOCUMENT[cls], key)), key)
    for pattern in _SHARED[cls]:
        yield from _members(client, keys, own, cls, pattern)
        for key in _keys(client, keys, pattern) if _OWNER[pattern] is cls else ():
            name = key.removeprefix(f"{keys.prefix}:")
            member = f"{cls.spec.kind}:{escaped(name)}\n"
            yield Part(name, place=Place(pattern.template, key, _text(own("group", name)), member))


def _members(
    client: Redis, keys: Keyspace, own: Callable[..., bytes], cls: type[Record], pattern: Pattern
) -> Iterator[Part]:
    start = _text(own("group", ""))
    for name in client.scan_iter(keys.glob_of(pattern, "projection:group:"), count=_AT_ONCE, _type="zset"):
        group = _text(name)
        key = f"{keys.prefix}:{group.removeprefix(start)}"
        for raw, score in client.zscan_iter(name, count=_AT_ONCE):
            member = _text(raw)
            if (record_id := _record_id(member, cls, pattern)) is not None:
                yield Part(record_id, place=Place(pattern.template, key, group, member, repr(float(score))))


def _record_id(member: str, cls: type[Record], pattern: Pattern) -> str | None:
    """The id of a member's record; None if it is of another kind."""
    kind, _, rest = member.partition(":")
    name, ends, _ = rest.partition("\n")
    if ends and kind in _KINDS:
        return unquote(name) if kind == cls.spec.kind else None
    return escaped(member) if _OWNER[pattern] is cls else None


def _keys(client: Redis, keys: Keyspace, pattern: Pattern) -> Iterator[str]:
    wanted = keys.all_of(pattern)
    for each in client.scan_iter(keys.glob_of(pattern), count=_AT_ONCE):
        if wanted.fullmatch(key := _text(each)):
            yield key


def _variable(keys: Keyspace, pattern: Pattern, key: str) -> str:
    """The first variable part of a key."""
    parts = pattern.template.split(":")
    at = next(number for number, part in enumerate(parts) if part.startswith("{"))
    return key.removeprefix(f"{keys.prefix}:").split(":")[at]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
