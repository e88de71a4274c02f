"""The echo guard: text that was just served to an agent is not learned back as new, compared by shingles."""

from __future__ import annotations

import base64
import logging
import re
import threading
import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from alma import clock
from alma.errors import StorageError, ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_name
from alma.model.governance import ServedText
from alma.model.learning import AntiPattern, Heuristic, UserPreference
from alma.model.query import And, Compare, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, checked_storage
from alma.text.canonical import canonical_words, fingerprint
from alma.text.tokens import short_text_cache

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

    `served` only queues the work; a background thread or the next query of this process stores the fingerprints.
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


_LENGTH = 3
# Marks before the first and after the last word of a sentence.
_START, _END = "\x02", "\x03"
_SENTENCES = lazy_regex(r"(?<=[.!?])\s+|;\s|[\n\r]+")
# What a prompt adds to stored text; "Don't:" is part of the statement.
_PROMPT_LABELS = lazy_regex(
    r"^\s*#{1,6}\s.*|^[\s*•>│-]*(?:\[\d{4}-\d\d-\d\d\]\s*)?(?:(?:when|do|why|instead|always|task|error|feedback|"
    r"(?:fact|prefers)(?: \([^)]*\))?|result: \w+(?: with)?)\s*:\s*)?|\(confidence: [^)]*\)"
    r"|^\s*note: (?:superseded|contradicted)\b.*$",
    re.IGNORECASE,
)
# Layout of a whole text: tags, emphasis over several sentences, numbers of a list.
_MARKUP = lazy_regex(
    r"</?(?:li|ul|ol|p|b|i|u|em|strong|code|pre|br|div|span|t[dr]|table|blockquote|h[1-6])\s?/?>|(?<!\w)(?:\*{2,3}|_{2,3})(?=\w)"
    r"|(?<=[\w.!?;,)])(?:\*{2,3}|_{2,3})(?!\w)",
    re.IGNORECASE,
)
_LISTED = lazy_regex(r"^[ \t]*(\d{1,2})[.)][ \t]+(?=[^\W\d])", re.MULTILINE)
_DONT = lazy_regex(r"^([\s*•>│-]*)(?:don['’]?t|do not)\s*:", re.IGNORECASE)
# Phrases by which an agent says that it repeats something.
_RECALLED = lazy_regex(
    r"^\W*(?:as (?:i (?:recall|remember|know)|noted|mentioned|stated|said|known|discussed)(?: \w+){0,3}?[,:]"
    r"|(?:i|we) (?:recall|remember|know|already know|was told|were told|noted)(?: that)?\b"
    r"|(?:according to|based on|from) (?:my|the|our|what i (?:recall|remember|know)|past|previous) ?"
    r"(?:memor(?:y|ies)|notes?|knowledge|records?|runs?|context)?[,:]"
    r"|(?:please )?(?:note|remember|recall)(?: that|:))\s*",
    re.IGNORECASE,
)
# Words that add nothing to a statement: none names, counts, denies, orders or dates anything.
_MEANINGLESS_WORDS = """
    when whenever if for task like do then so that which this is are was were be it its i we you they user prefer want
    know knew known note noted remember recall learn learned mention mentioned say said state stated tell told see seen
    as per according to from based of at by with in and because why instead however therefore thus hence past previous
    earlier memory context fact lesson rule strategy approach tip hint reminder insight information info good useful
    helpful important worth here there my our your their has have had should make sure ok okay yes right again already
    still me us fyi says previously confirm reference summary recap apparently indeed key takeaway find found out
    discover turn turns what following below
"""
# Leaving out one of these changes the meaning.
_NEGATORS = ("not", "no", "without", "only", "except", "unless", "none", "neither", "nor", "cannot")
_DENIALS = {"never": "not", "avoid": "not", "avoiding": "not"}
_FAILING = "fail"
# So that "noted" does not become "not".
_MIN_STEM = 4


def shingles(texts: Iterable[str]) -> Iterator[int]:
    """A hash for every three consecutive words of a sentence, including its start and end marks."""
    for words in sentences(texts):
        yield from _numbers([_START, *words, _END])


def sentences(texts: Iterable[str]) -> Iterator[list[str]]:
    """The uninflected words of each sentence or line, without what a prompt adds."""
    for text in texts:
        for sentence in _SENTENCES.split(_unset(text)):
            bare = _RECALLED.sub("", _PROMPT_LABELS.sub("", _DONT.sub(r"\1not ", sentence)))
            if words := [_bare(word) for word in canonical_words(bare)]:
                yield words


def _unset(text: str) -> str:
    """The text without its markup, and without the numbers of a list that counts from one."""
    bare = _MARKUP.sub(" ", text) if "<" in text or "**" in text or "__" in text else text
    numbers = [int(number) for number in _LISTED.findall(bare)] if "\n" in bare else []
    # A single number may be a date.
    return _LISTED.sub("", bare) if len(numbers) > 1 and numbers == [*range(1, len(numbers) + 1)] else bare


def traces(spoken: Iterable[Sequence[str]]) -> frozenset[int]:
    """Shingles of which a text that repeats one of these sentences has at least one."""
    return frozenset(
        number
        for words in spoken
        for start in range(len(words))
        for number in (
            _number(words[start : start + _LENGTH]),
            _number([_START, *words[start : start + 2]]),
            _number([_START, words[start], _END]),
        )
    )


def repeats(spoken: Sequence[Sequence[str]], served: Iterable[frozenset[int]]) -> bool:
    """Whether each meaningful sentence is repeated from one of the served texts, given as shingles."""
    telling = [words for words in spoken if not all(word in _MEANINGLESS for word in words)]
    known = list(served)
    return bool(telling) and all(any(_says(text, words) for text in known) for words in telling)


def _says(served: frozenset[int], words: Sequence[str]) -> bool:
    """Whether a served text has all of a sentence, in order, and without a negation that it leaves out."""
    runs = list(_runs(served, words))
    if not runs:
        return False
    covered = {place for start, end in runs for place in range(start, end)}
    own = (word for place, word in enumerate(words) if place not in covered)
    return (
        all(word in _MEANINGLESS for word in own)
        and all(_joined(served, words, one, other) for one, other in pairwise(runs))
        and not _is_negated(served, words, runs[0][0], runs[-1][1])
    )


def _runs(served: frozenset[int], words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The spans of the sentence that match the served text."""
    place = 0
    while place < len(words):
        end = place + _along(served, words, place)
        if end > place:
            yield place, end
        # The last words may begin the next run.
        place = max(place + 1, end - _LENGTH + 1)


def _along(served: frozenset[int], words: Sequence[str], start: int) -> int:
    """How many words match from here: at least three, or a whole shorter sentence."""
    end = start
    while end + _LENGTH <= len(words) and _number(words[end : end + _LENGTH]) in served:
        end += 1
    if end > start:
        return end - start + _LENGTH - 1
    for length in (2, 1):
        short = words[start : start + length]
        if len(short) == length and served.issuperset(_numbers([_START, *short, _END])):
            return length
    return 0


def _joined(served: frozenset[int], words: Sequence[str], one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two runs are consecutive sentences, or one sentence with a meaningless word between."""
    if other[0] < one[1]:
        return False
    before, behind = [*words[: one[1]]][-2:], [*words[other[0] :]][:2]
    is_ended = _number([*before, _END]) in served or _number([_START, before[-1], _END]) in served
    is_begun = _number([_START, *behind]) in served or _number([_START, behind[0], _END]) in served
    goes_on = _number([*before, behind[0]]) in served or _number([before[-1], *behind]) in served
    return (is_ended and is_begun) or goes_on


def _is_negated(served: frozenset[int], words: Sequence[str], start: int, end: int) -> bool:
    """Whether the served text negates or limits this, and the sentence does not."""
    if _FAILING in words:
        return False
    first, last = [*words[start : start + 2]], [*words[max(start, end - 2) : end]]
    return any(_number([word, *first]) in served or _number([*last, word]) in served for word in _NEGATORS)


def _numbers(words: Sequence[str]) -> Iterator[int]:
    return (_number(words[start : start + _LENGTH]) for start in range(len(words) - _LENGTH + 1))


def _number(words: Sequence[str]) -> int:
    # Zero separates texts.
    return zlib.crc32(" ".join(words).encode(errors="surrogatepass")) or 1


@short_text_cache(50_000)
def _bare(word: str) -> str:
    """The word without English inflection: calling and called become call."""
    word = _DENIALS.get(word, word)
    if not (word.isascii() and word.isalpha()):
        return word
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    if len(word) > _MIN_STEM and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > _MIN_STEM and word.endswith("y") else word


_MEANINGLESS = frozenset(map(_bare, _MEANINGLESS_WORDS.split()))
