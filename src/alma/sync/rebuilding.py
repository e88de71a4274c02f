"""Rebuild a projection from the store: clear the engine, then mark every record, a batch at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from alma import clock
from alma.model.governance import Attribution, MergeMark
from alma.model.kinds import kind_named
from alma.storage.base import StorageBackend, Transaction
from alma.storage.document import timestamp_of, timestamp_text
from alma.sync.projection import Projection
from alma.sync.reading import EVERYWHERE, keys_behind

BY = Attribution(agent="sync", reason="keeps the engines equal to the store")
OTHERS = "webhook."
"""The prefix of projections that are not engines: webhooks deliver their own marks."""
# Since when an engine is being cleared that no relay has begun to clear.
_REQUESTED = datetime(1970, 1, 1, tzinfo=UTC)


class Rebuild(NamedTuple):
    """How far a rebuild is: clearing since a time, or marking the records of a kind behind an id."""

    since: datetime
    kind: str | None = None
    after: str | None = None
    marked: int = 0

    @property
    def is_clearing(self) -> bool:
        """Whether the engine is not cleared yet."""
        return self.kind is None


class Progress(NamedTuple):
    """How many records a projection has caught up with, of all it follows."""

    done: int
    total: int


def _key(projection: str, what: str) -> str:
    return f"sync.{projection}.{what}"


def read_note(tx: Transaction, projection: str, what: str) -> dict[str, Any] | None:
    """The store's notes about a projection."""
    found = tx.get(MergeMark, _key(projection, what), EVERYWHERE)
    return None if found is None else dict(found.counters)


def write_note(tx: Transaction, projection: str, what: str, content: dict[str, Any] | None) -> None:
    """Note something about a projection in the store, or forget it.

    The marks of merges hold the notes: no engine follows them, and they do not leave the store with an export.
    """
    key = _key(projection, what)
    if content is None:
        tx.delete(MergeMark, [key], EVERYWHERE)
    else:
        tx.save(MergeMark(id=key, kind="sync", record_id=projection, origin=what, counters=content))


def rebuild_of(tx: Transaction, projection: str) -> Rebuild | None:
    """The rebuild of a projection that has not ended; the marks it made may still wait."""
    note = read_note(tx, projection, "rebuild")
    return None if note is None else Rebuild(**{**note, "since": timestamp_of(note["since"])})


def _write(tx: Transaction, projection: str, rebuild: Rebuild | None) -> None:
    note = None if rebuild is None else {**rebuild._asdict(), "since": timestamp_text(rebuild.since)}
    write_note(tx, projection, "rebuild", note)


def register(storage: StorageBackend, projection: Projection) -> bool:
    """Mark every change for a projection from now on; one that is new, or follows new kinds, is rebuilt.

    Returns whether it was registered now.
    """
    kinds = [cls.spec.kind for cls in projection.kinds]

    def write(tx: Transaction) -> bool:
        if set(tx.projections().get(projection.name, ())) == set(kinds):
            return False
        tx.register_projection(projection.name, kinds)
        _write(tx, projection.name, Rebuild(_REQUESTED))
        return True

    with storage.snapshot() as tx:
        if set(tx.projections().get(projection.name, ())) == set(kinds):
            return False
    return storage.write(write, BY)


def prepare(storage: StorageBackend, projection: Projection) -> None:
    """Create what an engine lacks; one that has lost entries is filled again by the next relay.

    That is noted first: a process that is killed on the way must not leave an engine that is only empty.
    """
    if projection.is_lost():
        storage.write(lambda tx: request_rebuild(tx, projection.name), BY)
    projection.prepare()


def request_rebuild(tx: Transaction, projection: str) -> None:
    """Make the next relay of a projection clear its engine and rebuild it."""
    _write(tx, projection, Rebuild(_REQUESTED))


def request_rebuilds(tx: Transaction) -> None:
    """Request a rebuild of all engines, because the whole store was replaced."""
    for name in tx.projections():
        if not name.startswith(OTHERS):
            request_rebuild(tx, name)


def clear(storage: StorageBackend, projection: Projection) -> None:
    """Clear the engine, and have all its records marked.

    Whichever process ends its clearing last starts the marking again, so nothing that one of several cleared is missed.
    """
    storage.write(lambda tx: _write(tx, projection.name, Rebuild(clock.now())), BY)
    projection.clear()
    projection.prepare()
    first = projection.kinds[0].spec.kind
    storage.write(lambda tx: _write(tx, projection.name, Rebuild(clock.now(), first)), BY)


def advance(storage: StorageBackend, projection: Projection, batch_size: int, lease_seconds: float) -> bool:
    """Do the next part of a rebuild; returns whether there was one to do here.

    A clearing that has not ended after the lease is taken over: its process may have been killed.
    """
    with storage.snapshot() as tx:
        rebuild = rebuild_of(tx, projection.name)
    if rebuild is None:
        return False
    if not rebuild.is_clearing:
        return storage.write(lambda tx: _mark_batch(tx, projection, batch_size), BY)
    if rebuild.since + timedelta(seconds=lease_seconds) > clock.now():
        return False
    clear(storage, projection)
    return True


def _mark_batch(tx: Transaction, projection: Projection, batch_size: int) -> bool:
    rebuild = rebuild_of(tx, projection.name)
    if rebuild is None or rebuild.kind is None:
        return False
    keys = keys_behind(tx, kind_named(rebuild.kind), rebuild.after, batch_size)
    if keys:
        tx.mark_again(projection.name, rebuild.kind, keys)
        _write(tx, projection.name, rebuild._replace(after=keys[-1], marked=rebuild.marked + len(keys)))
    else:
        following = _kind_behind(projection, rebuild.kind)
        _write(tx, projection.name, None if following is None else rebuild._replace(kind=following, after=None))
    return True


def _kind_behind(projection: Projection, kind: str) -> str | None:
    kinds = [cls.spec.kind for cls in projection.kinds]
    return next(iter(kinds[kinds.index(kind) + 1 :]), None)


def progress_of(tx: Transaction, projection: Projection) -> Progress:
    """How many of the followed records are neither marked nor yet to be marked by a rebuild."""
    rebuild = rebuild_of(tx, projection.name)
    total = sum(tx.count(cls, EVERYWHERE) for cls in projection.kinds)
    reached = total if rebuild is None else rebuild.marked
    return Progress(max(0, min(total, reached) - tx.backlog(projection.name).pending), total)
