"""Candidates: memories proposed by vectors and by words, with the features that add up to their similarity."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter

from alma.errors import ConfigurationError, IndexUnavailable, ProviderError, StorageError, ValidationError
from alma.model.memory import Memory
from alma.model.query import Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.retrieval.query_text import asks_advice
from alma.retrieval.router import SearchRequest, Target
from alma.retrieval.tuning import SCORE, TUNING
from alma.storage.base import Transaction
from alma.vectors.base import Nearest, VectorIndex

_log = logging.getLogger("alma.retrieval")


class Candidate:
    """A proposed memory and the weighted features that add up to its similarity.

    There are hundreds of them: slots and tuples instead of dictionaries keep garbage collection rare.
    """

    __slots__ = ("_terms", "cosine", "found_by", "id", "target", "total", "words")

    def __init__(self, target: Target, record_id: str, found_by: tuple[str, ...] = ()) -> None:
        self.target = target
        self.id = record_id
        self.cosine: float | None = None
        self.words: float | None = None
        self.found_by = found_by
        self.total = 0.0
        self._terms: tuple[tuple[str, float], ...] = ()

    @property
    def terms(self) -> dict[str, float]:
        """The weighted features, by name."""
        found: dict[str, float] = {}
        for name, value in self._terms:
            found[name] = found.get(name, 0.0) + value
        return found

    def has_any(self, names: frozenset[str]) -> bool:
        """Whether it has one of these features."""
        return not names.isdisjoint(map(itemgetter(0), self._terms))

    def found_also(self, by: str) -> None:
        """Add a source that found it."""
        self.found_by = _joined(self.found_by, by)

    def add(self, name: str, value: float) -> None:
        """Add a weighted feature."""
        if value:
            self._terms += ((name, value),)
            self.total += value


@lru_cache(maxsize=256)
def _joined(found_by: tuple[str, ...], by: str) -> tuple[str, ...]:
    """Shares one tuple between the candidates that were found by the same sources."""
    return found_by if by in found_by else (*found_by, by)


class CandidatePool:
    """The candidates of a request, and the problems met while they were gathered."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.has_words = True
        self.among_many = False
        # The ids left out because the query asks only for a time range.
        self.outside_time: list[str] = []
        self._by_kind: dict[type[Record], dict[str, Candidate]] = defaultdict(dict)
        # The candidates of a kind sorted by id, until further ones are proposed.
        self._sorted: dict[type[Record], Sequence[Candidate]] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return chain.from_iterable(found.values() for found in self._by_kind.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_kind.values()))

    def get(self, cls: type[Record], record_id: str) -> Candidate | None:
        return self._by_kind[cls].get(record_id)

    def propose(self, target: Target, record_ids: Iterable[str], by: str) -> list[Candidate]:
        """The new or known candidates with these ids, after adding the source that found them."""
        known, found_by, wanted = self._by_kind[target.cls], (by,), list(record_ids)
        new = [record_id for record_id in wanted if record_id not in known]
        for record_id in new:
            known[record_id] = Candidate(target, record_id, found_by)
        proposed = list(map(known.__getitem__, wanted))
        if len(new) < len(wanted):
            for candidate in proposed:
                if by not in candidate.found_by:
                    candidate.found_also(by)
        return proposed

    def keep_those_of_the_time(self) -> None:
        """Drop the candidates outside of the time range of the query."""
        for known in self._by_kind.values():
            others = [each.id for each in known.values() if not each.has_any(_TIME)]
            self.outside_time += others
            for record_id in others:
                del known[record_id]
        self._sorted.clear()

    def clear(self) -> None:
        """Release all candidates."""
        self._by_kind.clear()
        self._sorted.clear()

    def of(self, cls: type[Record]) -> list[Candidate]:
        """The candidates of a kind, best first, with the id for tie-breaking."""
        known, by_id = self._by_kind[cls], self._sorted.get(cls, ())
        if len(by_id) != len(known):
            others = islice(known.values(), len(by_id), None)
            by_id = self._sorted[cls] = sorted([*by_id, *others], key=attrgetter("id"))
        # Sorting is stable: twice by one attribute is faster than once by two.
        return sorted(by_id, key=attrgetter("total"), reverse=True)


_TIME = frozenset(("time",))


def records_read(top_k: int, pool: CandidatePool) -> int:
    """The number of best candidates that are read as records."""
    least = TUNING.records_read_among_many if pool.among_many else TUNING.records_read
    return max(least, TUNING.records_read_per_result * top_k)


def by_target(candidates: Iterable[Candidate]) -> dict[Target, list[str]]:
    """The ids of the candidates by the target each was found for."""
    found: dict[Target, list[str]] = defaultdict(list)
    for target, group in groupby(candidates, key=attrgetter("target")):
        found[target] += map(attrgetter("id"), group)
    return found


def gather(
    tx: Transaction,
    index: VectorIndex,
    targets: Iterable[Target],
    request: SearchRequest,
    vector: Vector | None,
) -> CandidatePool:
    """Candidates of each target from vector and full-text search; a failed source is noted and skipped."""
    pool = CandidatePool()
    if request.index_error is not None:
        pool.problems.append(f"the vector index is down ({request.index_error})")
        vector = None
    cosine_floor = 0.0
    targets = list(targets)
    sizes = [tx.size(target.cls, target.scope, target.where) for target in targets]
    if vector is not None and targets and not any(sizes):
        # A store of another embedding model is an error even if it is empty.
        nearest(index, targets[0].cls, vector, targets[0].scope, targets[0].where, limit=1)
    # Most stores have no records of most kinds.
    for target, size in ((target, size) for target, size in zip(targets, sizes, strict=True) if size):
        among_many = target.cls is Memory and size > TUNING.many_memories
        pool.among_many |= among_many
        limit = _limit(target, request.top_k, among_many=among_many)
        if vector is not None:
            found = nearest(index, target.cls, vector, target.scope, target.where, limit)
            for candidate, near in zip(pool.propose(target, map(itemgetter(0), found), "meaning"), found, strict=True):
                candidate.cosine = near.cosine
            if len(found) == limit:
                # Candidates found by words only have at most the cosine of the last one.
                cosine_floor = max(cosine_floor, found[-1].cosine)
        _propose_by_words(pool, tx, target, request, limit)
        if size > TUNING.words_left_out and pool.has_words:
            _score_words(pool, tx, target, request.query)
    _add_similarity(pool, request.query, cosine_floor)
    return pool


def nearest(
    index: VectorIndex, cls: type[Record], vector: Vector, scope: Scope, where: Predicate, limit: int
) -> list[Nearest]:
    """The results of an index; any failure that is not an error of the caller means that the index is down."""
    try:
        return index.search(cls, vector, scope, where, limit)
    except (ConfigurationError, ValidationError, ProviderError):
        raise
    except Exception as exc:
        # The index may be a custom one that raises anything.
        _log.warning("the vector index failed", extra={"error": repr(exc)})
        raise IndexUnavailable(str(exc) or type(exc).__name__) from exc


def _limit(target: Target, top_k: int, *, among_many: bool) -> int:
    """The number of candidates that each source proposes."""
    most, per_result = TUNING.memory_candidates, 2
    if target.cls is not Memory:
        most = TUNING.lesson_candidates
    elif among_many:
        most, per_result = TUNING.candidates_among_many, TUNING.candidates_per_result
    if target.selective:
        most, per_result = TUNING.selective_candidates, TUNING.candidates_per_result
    return max(most, per_result * top_k)


def _propose_by_words(pool: CandidatePool, tx: Transaction, target: Target, request: SearchRequest, limit: int) -> None:
    error: StorageError | None = request.text_search_error
    if error is None:
        try:
            found = tx.matching_ids(target.cls, request.query, target.scope, target.where, limit, exact=False)
        except StorageError as exc:
            error = exc
    if error is not None:
        pool.has_words = False
        pool.problems.append(f"full-text search is down ({error})")
        return
    for candidate, (_, score) in zip(pool.propose(target, map(itemgetter(0), found), "words"), found, strict=True):
        candidate.words = score


def _score_words(pool: CandidatePool, tx: Transaction, target: Target, query: str) -> None:
    """Score the words of candidates that only vectors found: a search of many records leaves out common words."""
    found = {each.id: each for each in pool if each.words is None and each.target is target}
    for record_id, score in tx.word_scores(target.cls, query, found, target.scope, target.where).items():
        found[record_id].words = score


def _add_similarity(pool: CandidatePool, query: str, cosine_floor: float) -> None:
    """Add the features for cosine and BM25, each relative to its best hit, so that neither outweighs the other."""
    prefix = "advice_" if asks_advice(query) else ""
    meaning_weight, words_weight = SCORE[f"{prefix}meaning"], SCORE[f"{prefix}words"]
    candidates = list(pool)
    best_words = max(filter(None, map(attrgetter("words"), candidates)), default=0.0)
    best_cosine = max(filter(None, map(attrgetter("cosine"), candidates)), default=0.0)
    span = best_cosine - TUNING.unrelated_cosine
    if span > 0:
        # Words that nearly all candidates have carry little information.
        words_weight *= min(1.0, best_words / (TUNING.telling_words * math.log1p(len(candidates))))
    for candidate in candidates:
        if span > 0:
            cosine = cosine_floor if candidate.cosine is None else candidate.cosine
            candidate.add("meaning", meaning_weight * max(0.0, cosine - TUNING.unrelated_cosine) / span)
        if candidate.words and best_words > 0:
            candidate.add("words", words_weight * candidate.words / best_words)
