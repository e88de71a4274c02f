"""Relevance: the calibrated probability that a memory has to do with the query, a logistic model of its features.

The weights are in `weights.json`; `bench/relevance.py` fits them and validates them on data sets that it leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.slice import Strength, is_evidence
from alma.retrieval.features import Match, Query
from alma.retrieval.tuning import RELEVANCE, TUNING

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
"""The kinds that tell what to do: unless one of them is strong, the weak ones are returned only on request."""


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
        """Set the relevance of all memories of one kind that were read."""
        for each, features in zip(matches, features_of(matches, query), strict=True):
            if each.has_vector and query.understood:
                each.relevance = self.with_vectors.probability(features)
            # In a language that the model was not trained on, words tell as much as without vectors.
            if not (each.has_vector and query.understood and query.learned) and each.words > 0:
                each.relevance = max(each.relevance, self.words_only.probability(features))
        # The context of a strong memory is at least weak. Where a time range is all that is asked for, what is of that
        # time is the answer.
        any_strong = any(each.relevance >= self.strong for each in matches)
        for each in matches:
            if "time" in each.candidate.found_by:
                each.relevance = 1.0
            elif any_strong and each.has_context:
                each.relevance = max(each.relevance, self.weak)

    def strength(self, match: Match) -> Strength:
        """Whether a memory is strong or weak; a warning needs less, because reading it in vain costs one line."""
        least = self.weak if isinstance(match.record, AntiPattern) else self.strong
        return "strong" if match.relevance >= least else "weak"


def add_evidence(lessons: Iterable[Match], outcomes: Iterable[Match]) -> None:
    """Let rules and warnings be as relevant as the best outcome that is evidence for them."""
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
    """The model that a document of weights describes."""

    def weights(name: str) -> Weights:
        values: dict[str, float] = {**document[name]}
        return Weights(values.pop("bias"), values)

    return RelevanceModel(weights("with_vectors"), weights("words_only"), document["strong"], document["weak"])


def features_of(matches: Sequence[Match], query: Query) -> list[dict[str, float]]:
    """The features of all memories of one kind that were read, by name."""
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
