"""Relevance: the features of the records that were read, and the probability that each is relevant to the query.

The probability is calibrated, by a logistic model of the features.
The weights are in `weights.json`; `bench/relevance.py` fits them and validates them on data sets that it leaves out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import compress
from typing import Any, Final

from alma.lazy import lazy_regex
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.record import Record
from alma.model.slice import Strength, is_evidence
from alma.model.vector import Vector
from alma.retrieval.candidates import Candidate
from alma.retrieval.tuning import RELEVANCE, TUNING
from alma.storage.nearest import cosines
from alma.text.tokens import is_english, stored_terms

_CONTEXT = frozenset(("conversation", "linked", "related"))
_LATIN = lazy_regex("[A-Za-z]")


@dataclass(slots=True)
class Match:
    """A candidate with its record: the cosine, the share of the query's words it has, and all its terms.

    `in_passage` is the share of the words within one passage. The cosine is ignored for an `unreadable` text, whose
    script the model does not know. `relevance` is the probability that it is relevant.
    """

    candidate: Candidate
    record: Record
    meaning: float
    words: float
    terms: frozenset[str]
    in_passage: float = 0.0
    unreadable: bool = False
    relevance: float = 0.0

    @property
    def has_vector(self) -> bool:
        """Whether its vector was compared."""
        return self.candidate.cosine is not None and not self.unreadable

    @property
    def has_context(self) -> bool:
        """Whether it belongs to the conversation of another candidate, or is linked to one."""
        return self.candidate.has_any(_CONTEXT)


@dataclass(frozen=True, slots=True)
class Query:
    """The features of a query: the vector, the terms, and the weight of each term among all records of a kind.

    `known` are the terms that any record has, `compounds` are words that replace several terms. `reads` checks whether
    the model knows the script of a text; it is None if the query itself is not `understood`. `learned` means that the
    model was trained on the language of the query.
    """

    vector: Vector | None
    terms: frozenset[str]
    weights: Mapping[str, float] = field(default_factory=dict)
    records: int = 0
    known: frozenset[str] = frozenset()
    learned: bool = True
    compounds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reads: Callable[[str], bool] | None = None
    understood: bool = True

    def matches(self, found: Sequence[tuple[Candidate, Record]]) -> list[Match]:
        """The features of each record by itself."""
        if self.vector is not None:
            _compare(self.vector, found)
        full = sum(self.weights.values())
        known = sum(self.weights[word] for word in self.known)
        matches = [self._match(candidate, record, full, known) for candidate, record in found]
        if not self.learned:
            _subtract_usual_cosine(matches)
        return matches

    @property
    def unknown_share(self) -> float:
        """The share of the query, by the weight of its words, that no record has."""
        full = sum(self.weights.values())
        if not full:
            return 1.0
        # In a script that the model does not know, function words are not recognized.
        return 1.0 - sum(self.weights[word] for word in self.known) / full if self.understood else 0.0

    def _match(self, candidate: Candidate, record: Record, full: float, known: float) -> Match:
        text = record.text()
        words = stored_terms(text[: TUNING.characters_read])
        terms = frozenset(words)
        if len(text) > TUNING.characters_read and "words" in candidate.found_by and not self.terms <= terms:
            terms |= self.terms.intersection(stored_terms(text[TUNING.characters_read :]))
        if self.compounds:
            terms = terms.union(*(parts for whole, parts in self.compounds.items() if whole in terms))
        shared = self.terms & terms
        weight = sum(map(self.weights.__getitem__, shared))
        # With words alone, a word that no record has says nothing about this one.
        total = full if candidate.cosine is not None else known
        share = weight / total if total else 0.0
        scattered = full and len(shared) > 1 and len(text) > TUNING.statement_length
        in_passage = best_passage(words, self.weights) / full if scattered else weight / full if full else 0.0
        # A fast path for most texts.
        unreadable = self.reads is not None and not text.isascii() and not _is_readable(text, self.reads)
        meaning = 0.0 if unreadable else max(0.0, candidate.cosine or 0.0)
        return Match(candidate, record, meaning, share, terms, in_passage, unreadable)


def concision(length: int) -> float:
    """The factor of the similarity for a text of this length: long texts match more often by accident."""
    shortest, longest = TUNING.statement_length, TUNING.long_text
    return 1.0 if length <= shortest else float((shortest / min(length, longest)) ** TUNING.length_exponent)


def best_passage(words: Sequence[str], weight_of: Mapping[str, float]) -> float:
    """The highest weight of distinct query words that occur within one passage of a text."""
    places = list(compress(enumerate(words), map(weight_of.__contains__, words)))
    inside: Counter[str] = Counter()
    weight = best = 0.0
    first = 0
    for place, word in places:
        weight += 0.0 if inside[word] else weight_of[word]
        inside[word] += 1
        while places[first][0] <= place - TUNING.passage_words:
            left = places[first][1]
            inside[left] -= 1
            weight -= 0.0 if inside[left] else weight_of[left]
            first += 1
        best = max(best, weight)
    return best


def _compare(vector: Vector, found: Iterable[tuple[Candidate, Record]]) -> None:
    """Compute the cosine of the candidates that were found by words only."""
    unknown = [
        (candidate, own.to_bytes())
        for candidate, record in found
        if candidate.cosine is None and (own := getattr(record, "embedding", None)) is not None
    ]
    if unknown:
        compared = cosines(vector, [data for _, data in unknown])
        for (candidate, _), cosine in zip(unknown, compared, strict=True):
            candidate.cosine = cosine


def _is_readable(text: str, reads: Callable[[str], bool]) -> bool:
    beginning = text[: TUNING.characters_of_language]
    return _LATIN.search(beginning) is not None or reads(beginning)


def _subtract_usual_cosine(matches: Iterable[Match]) -> None:
    """For languages that the model was not trained on, use the excess of the cosine over the usual one."""
    characters = TUNING.characters_of_language
    foreign = [each for each in matches if each.has_vector and not is_english(each.record.text()[:characters])]
    known = sorted(each.meaning for each in foreign)
    usual = known[len(known) // 2] if known else 0.0
    # A prior for the usual cosine, because a few texts say little about it.
    prior, count = TUNING.foreign_cosine, TUNING.foreign_cosine_count
    usual = min(TUNING.highest_foreign_cosine, (count * prior + len(known) * usual) / (count + len(known)))
    for each in foreign:
        each.meaning = max(0.0, TUNING.foreign_cosine_scale * (each.meaning - usual))


FEATURES: Final = (
    "meaning",
    "words",
    "outcome",
    "best_meaning",
    "best_words",
    "unknown_words",
    "store_size",
    "outcome_store_size",
)
"""Of a memory: its cosine, its share of the query's words by weight, and whether it is an outcome, of which the task
alone is compared. Of all of its kind: the best cosine and share that were read, the share of the query that no record
has, and the logarithm of the number of records."""

LESSONS: Final = (Heuristic, Outcome)
"""The kinds of lessons: unless one of them is strong, weak ones are returned only on request."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of features; the weighted sum is the log-odds."""

    bias: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability for these features; those without a weight do not count."""
        log_odds = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, log_odds))))


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """Turns features into relevance, and relevance into *strong*, *weak* or neither.

    `words_only` is used without a vector, or where the model cannot read the query or the memory.
    """

    with_vectors: Weights
    words_only: Weights
    strong: float
    weak: float

    def assess(self, matches: Sequence[Match], query: Query) -> None:
        """Compute the relevance of all memories of one kind that were read."""
        for each, features in zip(matches, features_of(matches, query), strict=True):
            if each.has_vector and query.understood:
                each.relevance = self.with_vectors.probability(features)
            # In a language that the model was not trained on, words count as much as without vectors.
            if not (each.has_vector and query.understood and query.learned) and each.words > 0:
                each.relevance = max(each.relevance, self.words_only.probability(features))
        # The context of a strong memory is at least weak. If the query asks only for a time range, every memory of that
        # time is relevant.
        any_strong = any(each.relevance >= self.strong for each in matches)
        for each in matches:
            if "time" in each.candidate.found_by:
                each.relevance = 1.0
            elif any_strong and each.has_context:
                each.relevance = max(each.relevance, self.weak)

    def strength(self, match: Match) -> Strength:
        """Whether a memory is strong or weak; the threshold of warnings is lower, because a false positive costs only
        one line.
        """
        least = self.weak if isinstance(match.record, AntiPattern) else self.strong
        return "strong" if match.relevance >= least else "weak"


def add_evidence(lessons: Iterable[Match], outcomes: Iterable[Match]) -> None:
    """Raise the relevance of rules and warnings to that of the best outcome that is evidence for them."""
    known = [(each.record, each.relevance) for each in outcomes if isinstance(each.record, Outcome)]
    for lesson in lessons:
        if isinstance(lesson.record, Heuristic | AntiPattern):
            counted = (relevance for record, relevance in known if is_evidence(record, lesson.record))
            lesson.relevance = max(lesson.relevance, *counted, 0.0)


@cache
def default_relevance() -> RelevanceModel:
    """The model with the weights of this package."""
    return relevance_from(RELEVANCE)


def relevance_from(document: Mapping[str, Any]) -> RelevanceModel:
    """The model with the weights of a JSON document."""

    def weights(name: str) -> Weights:
        values: dict[str, float] = {**document[name]}
        return Weights(values.pop("bias"), values)

    return RelevanceModel(weights("with_vectors"), weights("words_only"), document["strong"], document["weak"])


def features_of(matches: Sequence[Match], query: Query) -> list[dict[str, float]]:
    """The features of all memories of one kind, by name."""
    store_size = math.log(max(query.records, TUNING.fewest_records) / TUNING.fewest_records)
    of_all = {
        "best_meaning": max((each.meaning for each in matches), default=0.0),
        "best_words": max((each.words for each in matches), default=0.0),
        "unknown_words": query.unknown_share,
        "store_size": store_size,
    }
    return [
        {
            **of_all,
            "meaning": each.meaning,
            "words": each.words,
            "outcome": float(isinstance(each.record, Outcome)),
            "outcome_store_size": store_size if isinstance(each.record, Outcome) else 0.0,
        }
        for each in matches
    ]
