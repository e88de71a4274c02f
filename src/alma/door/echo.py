"""The echo guard: what was just handed to an agent is not learned back from it as something new."""

from __future__ import annotations

import base64
import logging
import re
import threading
import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from alma import clock
from alma.door.gist import fingerprint, is_guarded, tokens
from alma.errors import StorageError, ValidationError
from alma.model.common import checked_name
from alma.model.query import And, Compare, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.served import ServedText
from alma.storage.base import StorageBackend

_log = logging.getLogger("alma.door")

_SHINGLE = 3
_MOST_SHINGLES = 4096
_MOST_ANSWERS = 64
_MOST_WAITING = 1000
# So much of a text must have been served, and no more than so many of its words must be its own.
_ECHOED_SHARE = 0.8
_MOST_OWN_WORDS = 6
_EVERYWHERE = Scope.everywhere()
_SENTENCES = re.compile(r"(?<=[.!?])\s+|[\n\r]+")
# How a prompt dresses what is stored.
_DRESS = re.compile(
    r"^\s*#{1,6}\s.*|^[\s*•>│-]*(?:\[\d{4}-\d\d-\d\d\]\s*)?(?:(?:when|do|don'?t|why|instead|always|task|error|feedback|"
    r"(?:fact|prefers)(?: \([^)]*\))?|result: \w+(?: with)?)\s*:\s*)?|\(confidence: [^)]*\)",
    re.IGNORECASE,
)

# How an agent says that it only repeats.
_RECALLED = re.compile(
    r"^\W*(?:as (?:i (?:recall|remember|know)|noted|mentioned|stated|said|known|discussed)(?: \w+){0,3}?[,:]"
    r"|(?:i|we) (?:recall|remember|know|already know|was told|were told|noted)(?: that)?\b"
    r"|(?:according to|based on|from) (?:my|the|our|what i (?:recall|remember|know)|past|previous) ?"
    r"(?:memor(?:y|ies)|notes?|knowledge|records?|runs?|context)?[,:]"
    r"|(?:please )?(?:note|remember|recall)(?: that|:))\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was handed to an agent, not looked at yet."""

    items: tuple[Record | str, ...]
    agent: str
    project_id: str | None
    user_id: str | None


class EchoGuard:
    """Remembers for a while, across processes, what each agent was handed; only fingerprints are stored.

    `served` only notes what there is to do; a thread of its own writes it down a moment later, and so does the next
    question of this process.
    """

    def __init__(
        self, storage: StorageBackend, ttl: timedelta = timedelta(hours=1), delay_seconds: float = 1.0
    ) -> None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise ValidationError("echo guard", "ttl", ttl, "must be a timedelta above 0")
        self._storage = storage
        self._ttl = ttl
        self._delay = delay_seconds
        self._waiting: deque[_Answer] = deque(maxlen=_MOST_WAITING)
        self._noted: dict[str, float] = {}
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def served(self, items: Iterable[Record | str], agent: str, scope: Scope) -> None:
        """Note what an agent was handed: a slice, records or texts."""
        checked_name("echo guard", "agent", agent)
        given: tuple[Record | str, ...] = (items,) if isinstance(items, str) else tuple(items)
        if not given or self._closing.is_set():
            return
        self._waiting.append(_Answer(given, agent, scope.project_id, scope.user_id))
        self._start()

    def echoes(self, texts: Iterable[str], agent: str, project_id: str | None) -> bool:
        """Whether these texts together only repeat what the agent was handed lately."""
        self.flush()
        sentences = [words for text in texts for words in _sentences(text)]
        if not sentences:
            return False
        served = self._served_lately(agent, project_id)
        if not served:
            return False
        total = sum(map(len, sentences))
        own = [word for words in sentences for word in _uncovered(words, served)]
        few = len(own) <= min(_MOST_OWN_WORDS, (1 - _ECHOED_SHARE) * total)
        return few and not any(map(is_guarded, own))

    def flush(self) -> None:
        """Write down what was served; a store that cannot be written to is noted in the log and left alone."""
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
        """Write down what is left and end the thread; the storage stays open."""
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

    def _row(self, answer: _Answer) -> ServedText | None:
        """The answer as fingerprints, or None where the same was noted a moment ago."""
        shingles: set[int] = set()
        for text in (text for item in answer.items for text in _texts(item)):
            for words in _sentences(text):
                shingles.update(_shingles(words))
        if not shingles:
            return None
        packed = array("I", sorted(shingles)[:_MOST_SHINGLES]).tobytes()
        key = fingerprint(answer.agent, answer.project_id, answer.user_id, packed)
        moment = clock.now()
        if self._noted.get(key, 0.0) > moment.timestamp():
            return None
        if len(self._noted) > _MOST_WAITING:
            self._noted.clear()
        # Written again only when half of its time is over: a write makes every cached answer stale.
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

    def _served_lately(self, agent: str, project_id: str | None) -> frozenset[int]:
        alive: list[Predicate] = [Compare("expires_at", "gt", clock.now())]
        if project_id is not None:
            alive.append(Or(Missing("project_id"), Compare("project_id", "eq", project_id)))
        newest = (Order("served_at", "desc"),)
        rows = self._storage.find(ServedText, Scope(agent=agent), And(*alive), newest, limit=_MOST_ANSWERS)
        return frozenset(number for row in rows for number in array("I", base64.b64decode(row.fingerprints)))

    def _drop_expired(self) -> None:
        self._storage.delete_where(ServedText, _EVERYWHERE, Compare("expires_at", "lt", clock.now()))


def _texts(item: Record | str) -> Iterator[str]:
    if isinstance(item, str):
        yield item
        return
    for name in item.spec.text:
        if text := getattr(item, name):
            yield text


def _sentences(text: str) -> Iterator[list[str]]:
    """The words of each sentence or line, without the way a prompt dresses them."""
    for sentence in _SENTENCES.split(text):
        if words := tokens(_RECALLED.sub("", _DRESS.sub("", sentence))):
            yield words


def _shingles(words: list[str]) -> Iterator[int]:
    """A number for every three words that follow each other, and for the whole where it is shorter."""
    for start in range(max(1, len(words) - _SHINGLE + 1)):
        yield _number(words[start : start + _SHINGLE])


def _number(words: list[str]) -> int:
    return zlib.crc32(" ".join(words).encode())


def _uncovered(words: list[str], served: frozenset[int]) -> list[str]:
    """The words that stand in no shingle that was served."""
    covered: set[int] = set()
    for start in range(max(1, len(words) - _SHINGLE + 1)):
        if _number(words[start : start + _SHINGLE]) in served:
            covered.update(range(start, start + _SHINGLE))
    return [word for i, word in enumerate(words) if i not in covered]
