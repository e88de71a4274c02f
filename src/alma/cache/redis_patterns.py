"""The projection of records onto a Redis server: the documented keys that other programs read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from alma import clock
from alma.cache.keys import (
    ACTIVE_SESSION,
    INCOMING,
    LAYER_CONFIG,
    OUTGOING,
    PATTERNS,
    PROJECT_ACTIVE,
    PROJECT_PATTERNS,
    USER_PREFERENCES,
    USER_PROJECTS,
    USER_RECENT,
    WORKING_MEMORY,
    Filled,
    Keyspace,
    Pattern,
    checked_seconds,
    escaped,
)
from alma.cache.redis_entries import PROJECTED, Document, Entry, entry_of
from alma.cache.redis_server import SERVER_ERRORS, RedisError, connected, keys_of, unlink
from alma.cache.redis_strays import OWN_DOCUMENT, parts_of
from alma.errors import StorageError
from alma.model.record import Record
from alma.model.secret import Secret
from alma.sync.projection import Change, Difference, Mismatch, Projection

if TYPE_CHECKING:
    from redis import Redis
    from redis.commands.core import Script

_SHAPES: Mapping[Pattern, tuple[str, int]] = {
    USER_RECENT: ("list", 100),
    PROJECT_ACTIVE: ("set", 0),
    OUTGOING: ("list", 1000),
    INCOMING: ("list", 1000),
    WORKING_MEMORY: ("set", 0),
    ACTIVE_SESSION: ("first", 1),
    PROJECT_PATTERNS: ("array", 1000),
    USER_PREFERENCES: ("array", 1000),
    USER_PROJECTS: ("list", 1000),
    LAYER_CONFIG: ("array", 1000),
}
"""How the value of a key that records share is made of its members, and of how many at most."""

# How an entry begins that lists strays alone.
_NOTED = b'["",'
_AT_ONCE = 100
_COMPARED_AT_ONCE = 500
_BYTES_AT_ONCE = 1 << 20


class RedisProjection(Projection):
    """Keeps memories, relationships, sessions, projects, patterns, users and settings under their documented keys.

    The documented keys end with their time to live, and other programs then ask ALMA. What a record contributed is
    kept without an end under `{prefix}:projection:…`, so that the next change of any record in a list or set makes the
    whole of it again. An expired key is therefore no mismatch: `compare` reports a record as missing if its entry is
    gone, as stale if the entry is of another state, and as corrupted if a value that is there differs from it.
    """

    name: ClassVar[str] = "redis"
    kinds: ClassVar[tuple[type[Record], ...]] = PROJECTED

    def __init__(
        self,
        url: str | Secret = "redis://localhost:6379/0",
        prefix: str = "alma",
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        self._keys = Keyspace(prefix, ttl_seconds or {})
        self._client = connected(url, checked_seconds("timeout_seconds", timeout_seconds))
        self._apply, self._check, self._note = (_script(self._client, name) for name in ("apply", "check", "strays"))
        self._shapes = json.dumps(
            {each.template: (*shape, self._milliseconds(each)) for each, shape in _SHAPES.items()}
        )
        # The run of the server when it was asked what it lost, and whether it was filled then.
        self._run: bytes | None = None
        self._is_filled = False

    def ping(self) -> None:
        """Raise `StorageError` unless the server answers and takes writes; a full one is waited for."""
        with self._talking() as client:
            self._require_writable(client)
            self._require_same_run(client)

    def is_lost(self) -> bool:
        """Whether the server was restarted, or emptied, since it was filled: what it acknowledged shortly before may be
        lost, whatever its persistence. Also whether another program has put something else into the place of entries.
        """
        with self._talking() as client:
            self._require_writable(client)
            self._run = _run_of(client)
            self._is_filled = client.get(self._own("filled", "by")) == self._run and self._has_entries(client)
            return not self._is_filled

    def prepare(self) -> None:
        """Nothing to create."""

    def apply(self, changes: Sequence[Change]) -> None:
        with self._talking() as client:
            self._require_same_run(client)
            for arguments in _bounded(self._arguments(change) for change in changes):
                self._apply(args=[self._shapes, *arguments])

    def compare(self, expected: Sequence[Change]) -> list[Mismatch]:
        with self._talking() as client:
            return [
                mismatch
                for start in range(0, len(expected), _COMPARED_AT_ONCE)
                for mismatch in self._compared(client, expected[start : start + _COMPARED_AT_ONCE])
            ]

    def held(self, cls: type[Record], after: str | None, limit: int) -> list[str]:
        with self._talking() as client:
            if after is None:
                self._note_strays(client, cls)
            start = "-" if after is None else f"({after}"
            found: list[Any] = client.zrangebylex(self._ids(cls), start, "+", 0, limit)
            return [each.decode(errors="replace") for each in found]

    def count(self, cls: type[Record]) -> int:
        with self._talking() as client:
            return int(client.zcard(self._ids(cls)))

    def clear(self) -> None:
        projected = [each for each in PATTERNS if each.filled is Filled.PROJECTION]
        with self._talking() as client:
            run = _run_of(client)
            ours = (key for key in client.scan_iter(self._keys.glob, count=1000) if key.startswith(self._own()))
            filled = self._own("filled", "by")
            # Without it, the relays of other processes would believe that the server was emptied.
            unlink(client, [key for key in (*keys_of(client, self._keys, *projected), *ours) if key != filled])
            client.set(filled, run)
            self._is_filled = True

    def close(self) -> None:
        self._client.close()

    def _require_writable(self, client: Redis) -> None:
        client.set(self._own("ping"), "", px=1)

    def _require_same_run(self, client: Redis) -> None:
        is_emptied = self._is_filled and not client.exists(self._own("filled", "by"))
        if is_emptied or self._run not in (None, _run_of(client)):
            raise StorageError("the Redis server was restarted or emptied: what it lost is filled again")

    def _has_entries(self, client: Redis) -> bool:
        """Whether entries are what they were written as."""
        books = _answers(client, [("TYPE", self._entries(cls)) for cls in self.kinds])
        ids = _answers(client, [("TYPE", self._ids(cls)) for cls in self.kinds])
        return {*books} <= {b"none", b"hash"} and {*ids} <= {b"none", b"zset"}

    # ------------------------------------------------------------------ keys of the projection's own

    def _own(self, *parts: str) -> bytes:
        return ":".join((self._keys.prefix, "projection", *parts)).encode()

    def _entries(self, cls: type[Record]) -> bytes:
        """The hash of the entries of a kind by id."""
        return self._own("entries", cls.spec.kind)

    def _ids(self, cls: type[Record]) -> bytes:
        """The sorted set of the ids of a kind."""
        return self._own("ids", cls.spec.kind)

    def _milliseconds(self, pattern: Pattern) -> int:
        return max(1, int(1000 * self._keys.ttl(pattern)))

    # ------------------------------------------------------------------ applying

    def _arguments(self, change: Change) -> list[str | bytes]:
        """The arguments of the script for a change."""
        cls, record_id = change.cls, change.record_id
        if change.record is None:
            return [self._entries(cls), self._ids(cls), record_id, "", json.dumps(self._strays_of(cls, record_id))]
        made = entry_of(change.record)
        documents = json.dumps([*self._documents(made)])
        return [self._entries(cls), self._ids(cls), record_id, self._entry(change, made), documents]

    def _entry(self, change: Change, made: Entry) -> str:
        keys = [self._keys.key(each.pattern, *each.parts) for each in made.documents]
        return json.dumps([made.digest, keys, self._places(change, made)])

    def _places(self, change: Change, made: Entry) -> list[list[str]]:
        """The places as pattern, key, group, member and score."""
        owner = f"{change.cls.spec.kind}:{escaped(change.record_id)}"
        found = []
        for place in made.places:
            key = place.pattern.key(*place.parts)
            group = self._own("group", key).decode()
            member, score = f"{owner}\n{place.member}", repr(float(place.score))
            found.append([place.pattern.template, f"{self._keys.prefix}:{key}", group, member, score])
        return found

    def _documents(self, made: Entry) -> Iterator[list[str | int]]:
        """The keys and texts of documents, and how many milliseconds they last."""
        for each in made.documents:
            milliseconds = min(self._milliseconds(each.pattern), _milliseconds_until(each))
            if milliseconds > 0:
                yield [self._keys.key(each.pattern, *each.parts), each.text, milliseconds]

    def _strays_of(self, cls: type[Record], record_id: str) -> list[list[str]]:
        """The document that a record could have without an entry."""
        pattern = OWN_DOCUMENT.get(cls)
        return [] if pattern is None else [[self._keys.key(pattern, record_id)]]

    def _note_strays(self, client: Redis, cls: type[Record]) -> None:
        """Give what no entry lists an entry, so that it is found to differ or to be an orphan."""
        parts = parts_of(client, self._keys, self._own, cls)
        while some := list(islice(parts, _COMPARED_AT_ONCE)):
            self._note(args=[self._entries(cls), self._ids(cls), *chain.from_iterable(each.arguments for each in some)])

    # ------------------------------------------------------------------ comparing

    def _compared(self, client: Redis, changes: Sequence[Change]) -> Iterator[Mismatch]:
        states = [(self._entries(change.cls), self._ids(change.cls), change.record_id) for change in changes]
        asked = [
            question for entries, ids, key in states for question in (("HGET", entries, key), ("ZSCORE", ids, key))
        ]
        answers = _answers(client, asked)
        same: list[tuple[Change, Entry]] = []
        for change, kept, listed in zip(changes, answers[::2], answers[1::2], strict=True):
            made = None if change.record is None else entry_of(change.record)
            expected = None if made is None else self._entry(change, made).encode()
            if kept == expected and (listed is None) == (made is None):
                same += [] if made is None else [(change, made)]
            elif made is None:
                yield Mismatch(change.record_id, Difference.ORPHANED, "the store has no such record")
            elif kept is None or listed is None or (isinstance(kept, bytes) and kept.startswith(_NOTED)):
                yield Mismatch(change.record_id, Difference.MISSING, "it has no entry")
            else:
                yield Mismatch(change.record_id, Difference.STALE, "its entry is of another state")
        yield from self._corrupted(client, same)

    def _corrupted(self, client: Redis, entries: Sequence[tuple[Change, Entry]]) -> Iterator[Mismatch]:
        """The records of which a value that is there differs; a document that expired is not there."""
        documents = [[(self._keys.key(d.pattern, *d.parts), d.text) for d in made.documents] for _, made in entries]
        places = [self._places(change, made) for change, made in entries]
        asked: list[tuple[str, ...]] = [("GET", key) for some in documents for key, _ in some]
        asked += [("ZSCORE", group, member) for some in places for _, _, group, member, _ in some]
        answers = iter(_answers(client, asked))
        wrong = [[key for key, text in some if next(answers) not in (None, text.encode())] for some in documents]
        unsound = self._unsound({key: (pattern, group) for some in places for pattern, key, group, *_ in some})
        for keys, some in zip(wrong, places, strict=True):
            keys += [key for _, key, _, _, score in some if next(answers) != float(score) or key in unsound]
        for (change, _), keys in zip(entries, wrong, strict=True):
            if keys:
                yield Mismatch(change.record_id, Difference.CORRUPTED, f"{', '.join(keys)}: the value differs")

    def _unsound(self, keys: Mapping[str, tuple[str, str]]) -> set[str]:
        """The shared keys, given with their patterns and groups, that do not have the value of their group."""
        shapes = {each.template: shape for each, shape in _SHAPES.items()}
        asked = [value for key, (pattern, group) in keys.items() for value in (key, group, *shapes[pattern])]
        sound = self._check(args=asked) if asked else []
        return {key for key, is_sound in zip(keys, sound, strict=True) if not is_sound}

    @contextmanager
    def _talking(self) -> Iterator[Redis]:
        try:
            yield self._client
        except SERVER_ERRORS as exc:
            raise StorageError(f"the Redis server cannot be used ({exc}); check redis.url and the server") from exc


def _run_of(client: Redis) -> bytes:
    found: Any = client.info("server")
    return str(found["run_id"]).encode()


def _script(client: Redis, name: str) -> Script:
    folder = files("alma.cache") / "lua"
    return client.register_script("".join((folder / f"{each}.lua").read_text("utf-8") for each in ("members", name)))


def _answers(client: Redis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The answers of one round trip; that of a command for a value of another type is its error."""
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        answers: list[Any] = pipe.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, RedisError) and not str(answer).startswith("WRONGTYPE"):
            raise answer
    return answers


def _milliseconds_until(document: Document) -> int:
    if document.until is None:
        return 1 << 53
    return int(1000 * (document.until - clock.now()).total_seconds())


def _bounded(every: Iterable[list[str | bytes]]) -> Iterator[list[str | bytes]]:
    """The arguments of many changes, in batches that do not block the server for long."""
    waiting: list[str | bytes] = []
    for arguments in every:
        waiting += arguments
        if len(waiting) >= _AT_ONCE * len(arguments) or sum(map(len, waiting)) > _BYTES_AT_ONCE:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
