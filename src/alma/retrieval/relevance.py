"""Relevance: the calibrated probability that a memory has to do with the task, from features and fitted weights.

The weights are in `relevance.json`; `bench/relevance.py` fits them and validates them on data sets that it leaves out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.record import Record
from alma.model.slice import Strength, is_evidence
from alma.model.vector import Vector
from alma.retrieval.candidate import Candidate
from alma.retrieval.length import STATEMENT, best_passage
from alma.storage.nearest import cosines
from alma.text.tokens import is_english, stored_terms

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
"""Of a memory: its cosine, its share of the task's words by their weight, and whether it is an outcome, of which the
task alone is compared. Of all of its kind: the best cosine and share that were read, the share of the task that no
record has, and how many records there are."""

LESSONS: Final = (Heuristic, Outcome)
"""The kinds that tell what to do: where nothing of them is strong, the weak ones are handed over on demand only."""

# A few records say as little as this many do: what is near in a store of two is near by chance.
_FEWEST = 10
_CONTEXT = frozenset(("conversation", "linked", "related"))
# What a text is about stands at its beginning; what it was found by may stand anywhere.
_LOOKED_AT = 20_000


# In a language that the model has not learned any two texts are about so near, and what is nearer stands out by less. A
# few memories say little about how near they are by chance: this counts as much as so many of them.
_ALIKE, _MOST_ALIKE, _COUNTS_FOR = 0.4, 0.5, 3
_STANDS_OUT = 1.7
# In characters: what tells the language of a text.
_TELLS_LANGUAGE = 500
_LATIN = re.compile("[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Question:
    """What memories are compared with: the task's vector, its terms and what each of them weighs among all records.

    `known` are the terms that any record has; `learned` says whether the model learned the task's language. `compounds`
    stand for several terms in one piece. `reads` says whether the model knows a writing, where it knows the task's:
    where it does not, the task is not `understood`.
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

    def fitting(self, found: Sequence[tuple[Candidate, Record]]) -> list[Fitting]:
        """How well each memory fits by itself: by meaning and by words."""
        self._compare(found)
        full = sum(self.weights.values())
        known = sum(self.weights[word] for word in self.known)
        fitting = [self._fitting(candidate, record, full, known) for candidate, record in found]
        if not self.learned:
            _only_standing_out(fitting)
        return fitting

    def _compare(self, found: Iterable[tuple[Candidate, Record]]) -> None:
        """The cosine of those that only words have found, all at once."""
        if self.vector is None:
            return
        unknown = [
            (candidate, own.to_bytes())
            for candidate, record in found
            if candidate.cosine is None and (own := getattr(record, "embedding", None)) is not None
        ]
        if unknown:
            compared = cosines(self.vector, [data for _, data in unknown])
            for (candidate, _), cosine in zip(unknown, compared, strict=True):
                candidate.cosine = cosine

    def _fitting(self, candidate: Candidate, record: Record, full: float, known: float) -> Fitting:
        text = record.text()
        words = stored_terms(text[:_LOOKED_AT])
        said = frozenset(words)
        if len(text) > _LOOKED_AT:
            said = self._said(candidate, text, said)
        # Most questions have none.
        if self.compounds:
            said = self._with_pieces(said)
        # How much of what the task says, by the weight of its words, the memory says as well, and in one passage.
        shared = self.terms & said
        worth = sum(map(self.weights.__getitem__, shared))
        # Where nothing but words tells what is meant, one that nobody has tells nothing.
        all_of_it = full if candidate.cosine is not None else known
        covered = worth / all_of_it if all_of_it else 0.0
        scattered = full and len(shared) > 1 and len(text) > STATEMENT
        gathered = best_passage(words, self.weights) / full if scattered else worth / full if full else 0.0
        is_unread = self._is_unread(text)
        meaning = 0.0 if is_unread else max(0.0, candidate.cosine or 0.0)
        return Fitting(candidate, record, meaning, covered, said, gathered, is_unread)

    def _is_unread(self, text: str) -> bool:
        """Whether the model can read nothing of a text: then it is as near to a word or a number as it is by chance."""
        # Nearly every text that it reads is seen to be one at once.
        if self.reads is None or text.isascii():
            return False
        beginning = text[:_TELLS_LANGUAGE]
        return _LATIN.search(beginning) is None and not self.reads(beginning)

    def _said(self, candidate: Candidate, text: str, said: frozenset[str]) -> frozenset[str]:
        """The words of the beginning of a long text, and those of the task's that it has further on."""
        if "words" not in candidate.found_by or self.terms <= said:
            return said
        return said | self.terms.intersection(stored_terms(text[_LOOKED_AT:]))

    def _with_pieces(self, said: frozenset[str]) -> frozenset[str]:
        """Who says *backend* has said *back-end*."""
        return said.union(*(pieces for whole, pieces in self.compounds.items() if whole in said))


@dataclass(slots=True)
class Fitting:
    """A candidate with its record, and how well that fits: its cosine, and the share of the words it has.

    `gathered` is the share that it has in one passage. Of what `is_unread` by the model the meaning counts for nothing.
    `relevance` is the probability that it has to do with the task.
    """

    candidate: Candidate
    record: Record
    meaning: float
    words: float
    said: frozenset[str]
    gathered: float = 0.0
    is_unread: bool = False
    relevance: float = 0.0

    @property
    def has_vector(self) -> bool:
        """Whether it was compared by its meaning; a memory, or a task, without a vector has only words to go by."""
        return self.candidate.cosine is not None and not self.is_unread

    @property
    def has_context(self) -> bool:
        """Whether it was said beside, or is linked to, other candidates."""
        return self.candidate.has_any(_CONTEXT)

    @property
    def is_of_the_time(self) -> bool:
        """Whether it was found because nothing but its time is asked for."""
        return "time" in self.candidate.found_by


def _only_standing_out(found: Iterable[Fitting]) -> None:
    """Let count of the meaning of memories in languages that the model has not learned what others do not have."""
    alike = [each for each in found if each.has_vector and not is_english(each.record.text()[:_TELLS_LANGUAGE])]
    background = _background(sorted(each.meaning for each in alike))
    for each in alike:
        each.meaning = max(0.0, _STANDS_OUT * (each.meaning - background))


def _background(cosines: Sequence[float]) -> float:
    """How near texts are to a question in such a language that have nothing to do with it."""
    usual = cosines[len(cosines) // 2] if cosines else 0.0
    return min(_MOST_ALIKE, (_COUNTS_FOR * _ALIKE + len(cosines) * usual) / (_COUNTS_FOR + len(cosines)))


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of features, whose sum is a logarithm of odds."""

    bias: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability for these features; those without a weight do not count."""
        return sigmoid(self.bias + sum(weight * features[name] for name, weight in self.weights.items()))


def sigmoid(log_odds: float) -> float:
    """The probability with these logarithmic odds."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, log_odds))))


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """Turns features into relevance, and relevance into *strong*, *weak* or neither.

    `words_only` holds where there is no vector to compare, or where the model cannot read the task or the memory.
    """

    with_vectors: Weights
    words_only: Weights
    strong: float
    weak: float

    def assess(self, found: Sequence[Fitting], question: Question) -> None:
        """Set the relevance of all memories of one kind that were read."""
        if not found:
            return
        features = features_of(found, question)
        for each, own in zip(found, features, strict=True):
            each.relevance = self._relevance(each, own, question)
        # What stands beside, or is linked to, a strong memory is at least weak; what is of the time that is asked for,
        # where nothing else is asked, is the answer.
        anything = max(each.relevance for each in found) >= self.strong
        for each in found:
            if each.is_of_the_time:
                each.relevance = 1.0
            elif anything and each.has_context:
                each.relevance = max(each.relevance, self.weak)

    def strength(self, found: Fitting) -> Strength:
        """Whether a memory is strong or weak. Of a warning less is enough: to read it in vain costs a line."""
        least = self.weak if isinstance(found.record, AntiPattern) else self.strong
        return "strong" if found.relevance >= least else "weak"

    def _relevance(self, found: Fitting, features: Mapping[str, float], question: Question) -> float:
        if not found.has_vector or not question.understood:
            return self.words_only.probability(features) if found.words > 0 else 0.0
        by_both = self.with_vectors.probability(features)
        # Of a language that the model did not learn, words tell as much as where there are no vectors.
        return by_both if question.learned else max(by_both, self.words_only.probability(features))


def add_evidence(lessons: Iterable[Fitting], outcomes: Iterable[Fitting]) -> None:
    """Let rules and warnings be as relevant as the best outcome that they count: they were learned from its task."""
    known = [(each.record, each.relevance) for each in outcomes if isinstance(each.record, Outcome)]
    for lesson in lessons:
        if isinstance(lesson.record, Heuristic | AntiPattern):
            counted = (relevance for record, relevance in known if is_evidence(record, lesson.record))
            lesson.relevance = max(lesson.relevance, *counted, 0.0)


@cache
def default_relevance() -> RelevanceModel:
    """The model with the weights of this package."""
    file = resources.files("alma.retrieval").joinpath("relevance.json")
    return relevance_from(json.loads(file.read_text(encoding="utf-8")))


def relevance_from(document: Mapping[str, object]) -> RelevanceModel:
    """The model that a document of weights describes."""

    def weights(name: str) -> Weights:
        values: dict[str, float] = {**document[name]}  # type: ignore[dict-item]
        return Weights(values.pop("bias"), values)

    strong, weak = float(str(document["strong"])), float(str(document["weak"]))
    return RelevanceModel(weights("with_vectors"), weights("words_only"), strong, weak)


def features_of(found: Sequence[Fitting], question: Question) -> list[dict[str, float]]:
    """The features of all memories of one kind that were read, by their names."""
    store_size = math.log(max(question.records, _FEWEST) / _FEWEST)
    of_all = {
        "best_meaning": max((each.meaning for each in found), default=0.0),
        "best_words": max((each.words for each in found), default=0.0),
        "unknown_words": _unknown_words(question),
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
        for each in found
    ]


def _unknown_words(question: Question) -> float:
    """How much of the task, by the weight of its words, no record has.

    Which words of a writing that the model does not know only hold a sentence together is unknown as well.
    """
    full = sum(question.weights.values())
    if not full:
        return 1.0
    known = sum(question.weights[word] for word in question.known)
    return 1.0 - known / full if question.understood else 0.0
