"""The echo guard: text that was just served to an agent is not learned back as new."""

from __future__ import annotations

import base64
import logging
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from alma import clock
from alma.errors import StorageError, ValidationError
from alma.model.common import checked_name
from alma.model.governance import ServedText
from alma.model.learning import AntiPattern, Heuristic, UserPreference
from alma.model.query import And, Compare, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, checked_storage
from alma.text.canonical import fingerprint
from alma.text.shingles import repeats, sentences, shingles, traces

_log = logging.getLogger("alma.ingest")

_MAX_SHINGLES = 4096
_MAX_ROWS = 64
_MAX_PENDING = 1000
_BETWEEN = 0
# Fields that label a memory and are not part of its statement.
_LABELS = ("domain", "category", "title", "name")
_EVERYWHERE = Scope.everywhere()


@dataclass(frozen=True, slots=True)
class _Served:
    """Items that were served to an agent and are not stored yet."""

    items: tuple[Record | str, ...]
    agent: str
    project_id: str | None
    user_id: str | None


class EchoGuard:
    """Remembers for a while, across processes, what each agent was served; only fingerprints are stored.

    `served` only notes what there is to do; a thread of its own writes it down a moment later, and so does the next
    question of this process.
    """

    def __init__(
        self, storage: StorageBackend, ttl: timedelta = timedelta(hours=1), delay_seconds: float = 1.0
    ) -> None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise ValidationError("echo guard", "ttl", ttl, "must be a timedelta above 0")
        self._storage = checked_storage("echo guard", storage)
        self._ttl = ttl
        self._delay = delay_seconds
        self._waiting: deque[_Served] = deque(maxlen=_MAX_PENDING)
        self._noted: dict[str, float] = {}
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def served(self, items: Iterable[Record | str], agent: str, scope: Scope) -> None:
        """Note what an agent was served: a slice, records or texts."""
        checked_name("echo guard", "agent", agent)
        given: tuple[Record | str, ...] = (items,) if isinstance(items, str) else tuple(items)
        if not given or self._closing.is_set():
            return
        self._waiting.append(_Served(given, agent, scope.project_id, scope.user_id))
        self._start()

    def echoes(self, texts: Iterable[str], agent: str, project_id: str | None) -> bool:
        """Whether these texts only repeat what the agent was served lately."""
        self.flush()
        spoken = [*sentences(texts)]
        return bool(spoken) and repeats(spoken, self._served_lately(agent, project_id, traces(spoken)))

    def flush(self) -> None:
        """Store what was served; a failing store is logged and otherwise ignored."""
        with self._writing:
            answers = [self._waiting.popleft() for _ in range(len(self._waiting))]
            rows = {row.id: row for answer in answers if (row := self._row(answer)) is not None}
            if not rows:
                return
            try:
                self._storage.write(lambda tx: tx.save(*rows.values()))
                self._drop_expired()
            except StorageError as exc:
                for key in rows:
                    self._noted.pop(key, None)
                _log.warning("what was served was not noted", extra={"error": str(exc)})

    def close(self) -> None:
        """Store the rest and end the thread; the storage stays open."""
        self._closing.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.flush()

    # ------------------------------------------------------------------ the thread

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="alma-echo", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._closing.wait(self._delay)
            self.flush()
            with self._starting:
                if self._closing.is_set() or not self._waiting:
                    self._thread = None
                    return

    # ------------------------------------------------------------------ rows

    def _row(self, answer: _Served) -> ServedText | None:
        """The row of fingerprints, or None when the same was stored recently."""
        packed = _packed([found for item in answer.items if (found := [*shingles(_shown(item))])])
        if not packed:
            return None
        key = fingerprint(answer.agent, answer.project_id, answer.user_id, packed)
        moment = clock.now()
        if self._noted.get(key, 0.0) > moment.timestamp():
            return None
        if len(self._noted) > _MAX_PENDING:
            self._noted.clear()
        # Stored again only after half of its time to live, as every write invalidates cached slices.
        self._noted[key] = moment.timestamp() + self._ttl.total_seconds() / 2
        return ServedText(
            id=key,
            agent=answer.agent,
            project_id=answer.project_id,
            user_id=answer.user_id,
            fingerprints=base64.b64encode(packed).decode(),
            served_at=moment,
            expires_at=moment + self._ttl,
        )

    def _served_lately(self, agent: str, project_id: str | None, like: frozenset[int]) -> set[frozenset[int]]:
        """The served texts that share a shingle with these."""
        alive: list[Predicate] = [Compare("expires_at", "gt", clock.now())]
        if project_id is not None:
            alive.append(Or(Missing("project_id"), Compare("project_id", "eq", project_id)))
        newest = (Order("served_at", "desc"),)
        rows = self._storage.find(ServedText, Scope(agent=agent), And(*alive), newest, limit=_MAX_ROWS)
        return {text for row in rows for text in _unpacked(base64.b64decode(row.fingerprints), like)}

    def _drop_expired(self) -> None:
        self._storage.delete_where(ServedText, _EVERYWHERE, Compare("expires_at", "lt", clock.now()))


def said_by(record: Record) -> Iterator[str]:
    """The statements of a memory, without its labels unless it has nothing else."""
    yield from _texts(record, [name for name in record.spec.text if name not in _LABELS] or record.spec.text)


def _texts(record: Record, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if text := getattr(record, name):
            yield f"Don't: {text}" if isinstance(record, AntiPattern) and name == "pattern" else text


def _shown(item: Record | str) -> Iterator[str]:
    """The texts that a prompt shows of an item."""
    if isinstance(item, str):
        yield item
        return
    yield from _texts(item, item.spec.text)
    if isinstance(item, Heuristic):
        yield item.record_of_success
    if isinstance(item, UserPreference):
        yield item.user_id


def _packed(texts: Sequence[Sequence[int]]) -> bytes:
    """The shingles of each text as bytes; when there are too many, the longest texts are cut."""
    room, packed = _MAX_SHINGLES, array("I")
    for left, numbers in zip(range(len(texts), 0, -1), sorted(texts, key=len), strict=True):
        kept = numbers[: room // left]
        room -= len(kept)
        packed.extend([*sorted(set(kept)), _BETWEEN])
    return packed.tobytes()


def _unpacked(packed: bytes, like: frozenset[int]) -> Iterator[frozenset[int]]:
    """The texts that share a shingle with these; most rows have none."""
    # Rows of an earlier version have no mark at the end.
    numbers = array("I", packed) + array("I", [_BETWEEN])
    if like.isdisjoint(numbers):
        return
    start = 0
    while start < len(numbers):
        end = numbers.index(_BETWEEN, start)
        text = numbers[start:end]
        if not like.isdisjoint(text):
            yield frozenset(text)
        start = end + 1
