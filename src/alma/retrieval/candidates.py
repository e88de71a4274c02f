"""Candidates: what vectors and words propose for a request, and how well each fits by itself."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import cast

from alma.errors import ConfigurationError, IndexUnavailable, ProviderError, StorageError, ValidationError
from alma.model.memory import Memory
from alma.model.query import Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.retrieval.asking import asks_advice
from alma.retrieval.candidate import Candidate
from alma.retrieval.router import Asked, Target
from alma.storage.base import StorageBackend
from alma.vectors.base import Foresighted, Nearest, VectorIndex

_log = logging.getLogger("alma.retrieval")

MEANING, WORDS = 0.45, 0.55
"""How much of the similarity is owed to vectors, and how much to words."""
ADVICE = 0.65, 0.35
"""The same, where advice is asked for."""

# A match counts fully from this share of what a word weighs that only one of the candidates has.
_TELLING = 0.3
# Below this cosine two sentences have nothing to do with each other.
_UNRELATED = 0.1
_MEMORIES, _LESSONS = 200, 50
# Among very many memories those behind the best are noise: with fewer of them the answers stand higher, and sooner.
_LARGE, _OF_MANY, _OF_MANY_PER_RESULT = 10_000, 80, 4
# Of memories behind a filter fewer are proposed: to find as many, ten or a hundred times as many must be looked at.
_NARROWED, _NARROWED_PER_RESULT = 60, 4
# In larger scopes words that many records have are not looked up, so that what has only those is not found by words.
_EVERY_WORD_COUNTS = 3_000
_FEWEST_READ, _FEWEST_READ_OF_MANY, _READ_PER_RESULT = 30, 20, 3


Matches = Sequence[tuple[str, float]]
"""The ids that words found, with their scores."""


class Pool:
    """The candidates of a request, and what went wrong while they were gathered."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        # Whether words can be looked up at all.
        self.has_words = True
        # What only words find has a cosine of at most this; 0 where the vectors found all there is.
        self.cosine_floor = 0.0
        # What a cosine above that of strangers is worth, where anything was found by meaning.
        self.worth_of_cosine = 0.0
        # Whether there are more memories than were proposed.
        self.is_full = False
        # The kinds of which there are so many that what one source finds is judged by both.
        self.judged_by_both: set[type[Record]] = set()
        # Whether there are very many general memories.
        self.among_many = False
        # What was left out because the question asks for some other time and nothing else.
        self.of_other_times: list[str] = []
        self._by_kind: dict[type[Record], dict[str, Candidate]] = defaultdict(dict)
        # Those of a kind by their ids, as long as no others were proposed.
        self._by_id: dict[type[Record], Sequence[Candidate]] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return chain.from_iterable(found.values() for found in self._by_kind.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def note_words_down(self, error: StorageError) -> None:
        """Words cannot be looked up: what is near in meaning is found without them."""
        self.has_words = False
        self.problems.append(f"full-text search is down ({error})")

    def has(self, cls: type[Record]) -> bool:
        """Whether anything of a kind was proposed."""
        return bool(self._by_kind.get(cls))

    def get(self, cls: type[Record], record_id: str) -> Candidate | None:
        return self._by_kind[cls].get(record_id)

    def meaning(self, cosine: float) -> float:
        """What so near a meaning is worth."""
        return self.worth_of_cosine * max(0.0, cosine - _UNRELATED)

    def propose(self, target: Target, record_id: str, by: str) -> Candidate:
        """The candidate with this id, new or known, found in one more way."""
        return self.propose_each(target, (record_id,), by)[0]

    def propose_each(self, target: Target, record_ids: Iterable[str], by: str) -> list[Candidate]:
        """The candidates with these ids, as there are hundreds of them."""
        known, alone, wanted = self._by_kind[target.cls], (by,), list(record_ids)
        new = [record_id for record_id in wanted if record_id not in known]
        for record_id in new:
            known[record_id] = Candidate(target, record_id, alone)
        proposed = list(map(known.__getitem__, wanted))
        # Those of the first source are all new.
        if len(new) < len(wanted):
            for candidate in proposed:
                if by not in candidate.found_by:
                    candidate.found_also(by)
        return proposed

    def found_for(self, target: Target) -> list[Candidate]:
        """The candidates that were found for a target."""
        return [each for each in self._by_kind[target.cls].values() if each.target is target]

    def keep_those_of_the_time(self) -> None:
        """Leave out what gained nothing from the time that is asked for."""
        for known in self._by_kind.values():
            others = [each.id for each in known.values() if "time" not in each.relevance]
            self.of_other_times += others
            for record_id in others:
                del known[record_id]
        self._by_id.clear()

    def let_go(self) -> None:
        """Hold none of the candidates any longer."""
        self._by_kind.clear()
        self._by_id.clear()

    def of(self, cls: type[Record]) -> list[Candidate]:
        """The candidates of a kind, best first, ids breaking ties."""
        known, by_id = self._by_kind[cls], self._by_id.get(cls, ())
        if len(by_id) != len(known):
            # Those that came since stand behind those that are in order already.
            others = islice(known.values(), len(by_id), None)
            by_id = self._by_id[cls] = sorted([*by_id, *others], key=attrgetter("id"))
        # Sorting is stable, and twice by one thing is faster than once by two.
        return sorted(by_id, key=attrgetter("total"), reverse=True)


def most_read(top_k: int, pool: Pool) -> int:
    """How many of the best candidates are read as records."""
    return max(_FEWEST_READ_OF_MANY if pool.among_many else _FEWEST_READ, _READ_PER_RESULT * top_k)


def by_target(candidates: Iterable[Candidate]) -> dict[Target, list[str]]:
    """The ids of the candidates, under the target each was found for."""
    found: dict[Target, list[str]] = defaultdict(list)
    for target, group in groupby(candidates, key=attrgetter("target")):
        found[target] += map(attrgetter("id"), group)
    return found


def gather(
    storage: StorageBackend,
    index: VectorIndex,
    targets: Iterable[Target],
    request: Asked,
    vector: Vector | None,
) -> Pool:
    """What vectors and words propose for each target; words that are down are noted and done without."""
    pool = Pool()
    query, wanted = request.query, vector
    if request.index_down is not None:
        pool.problems.append(f"the vector index is down ({request.index_down})")
        wanted = None
    for target in targets:
        size = storage.size(target.cls, target.scope, target.where)
        among_many = target.cls is Memory and size > _LARGE
        pool.among_many |= among_many
        limit = _proposed(target, request.top_k, among_many=among_many)
        if wanted is not None:
            _expect(index, target, wanted, limit)
        # Words first: what is expected may be looked for meanwhile.
        by_words = request.words_down or _matching(storage, target, query, limit)
        if wanted is not None:
            _by_meaning(pool, index, target, wanted, limit)
        _by_words(pool, target, by_words)
        if size > _EVERY_WORD_COUNTS and pool.has_words:
            pool.judged_by_both.add(target.cls)
            _score_by_words(pool, storage, target, query)
    _weigh(pool, *(ADVICE if asks_advice(query) else (MEANING, WORDS)))
    return pool


def nearest(
    index: VectorIndex, cls: type[Record], vector: Vector, scope: Scope, where: Predicate, limit: int
) -> list[Nearest]:
    """What an index finds; whatever makes it fail, it is an index that is down.

    But for what is wrong with the question or with how the store was opened: those errors say how to mend that.
    """
    try:
        return index.search(cls, vector, scope, where, limit)
    except (ConfigurationError, ValidationError, ProviderError):
        raise
    except Exception as exc:
        # An index may be anybody's.
        _log.warning("the vector index failed", extra={"error": repr(exc)})
        raise IndexUnavailable(str(exc) or type(exc).__name__) from exc


def _proposed(target: Target, top_k: int, *, among_many: bool) -> int:
    """How many memories each source proposes."""
    if target.narrowed:
        return max(_NARROWED, _NARROWED_PER_RESULT * top_k)
    if target.cls is not Memory:
        return max(_LESSONS, 2 * top_k)
    if among_many:
        return max(_OF_MANY, _OF_MANY_PER_RESULT * top_k)
    return max(_MEMORIES, 2 * top_k)


def _expect(index: VectorIndex, target: Target, vector: Vector, limit: int) -> None:
    if _foresees(type(index)):
        # What is wrong is told when the index is asked.
        with suppress(ProviderError):
            cast(Foresighted, index).expect(target.cls, vector, target.scope, target.where, limit)


@lru_cache(maxsize=16)
def _foresees(index: type[VectorIndex]) -> bool:
    """Whether indexes of a type are foresighted, which takes long to find out."""
    return issubclass(index, Foresighted)


def _matching(storage: StorageBackend, target: Target, query: str, limit: int) -> Matches | StorageError:
    try:
        return storage.matching_ids(target.cls, query, target.scope, target.where, limit, exact=False)
    except StorageError as exc:
        return exc


def _by_meaning(pool: Pool, index: VectorIndex, target: Target, vector: Vector, limit: int) -> None:
    found = nearest(index, target.cls, vector, target.scope, target.where, limit)
    proposed = pool.propose_each(target, map(itemgetter(0), found), "meaning")
    for candidate, near in zip(proposed, found, strict=True):
        candidate.cosine = near.cosine
    if len(found) == limit:
        pool.is_full = True
        pool.cosine_floor = max(pool.cosine_floor, found[-1].cosine)


def _by_words(pool: Pool, target: Target, found: Matches | StorageError) -> None:
    if isinstance(found, StorageError):
        pool.note_words_down(found)
        return
    proposed = pool.propose_each(target, map(itemgetter(0), found), "words")
    for candidate, (_, score) in zip(proposed, found, strict=True):
        candidate.words = score


def _score_by_words(pool: Pool, storage: StorageBackend, target: Target, query: str) -> None:
    """What only its meaning found is scored by words as well: both are judged by the same measures."""
    only_near = {each.id: each for each in pool.found_for(target) if each.words is None}
    try:
        scores = storage.word_scores(target.cls, query, only_near, target.scope, target.where)
    except StorageError as exc:
        pool.note_words_down(exc)
        return
    for record_id, score in scores.items():
        only_near[record_id].words = score


def _weigh(pool: Pool, of_meaning: float, of_words: float) -> None:
    """Both sources on one scale: the best hit of each counts fully, so that neither drops the other's strong hits."""
    candidates = list(pool)
    best_words = max(filter(None, map(attrgetter("words"), candidates)), default=0.0)
    best_cosine = max(filter(None, map(attrgetter("cosine"), candidates)), default=0.0)
    span = best_cosine - _UNRELATED
    if span > 0:
        pool.worth_of_cosine = of_meaning / span
        # Words that nearly all of them have tell little, however well they match, and meaning tells more.
        of_words *= min(1.0, best_words / (_TELLING * math.log1p(len(candidates))))
    supposed = pool.meaning(pool.cosine_floor)
    for candidate in candidates:
        cosine, words = candidate.cosine, candidate.words
        candidate.add("meaning", supposed if cosine is None else pool.meaning(cosine))
        if words and best_words > 0:
            candidate.add("words", of_words * words / best_words)
