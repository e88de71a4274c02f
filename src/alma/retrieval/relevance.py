"""Relevance: whether a memory has anything to do with the task, and whether any memory has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from alma.model.record import Record
from alma.model.text import is_english, stored_terms
from alma.model.vector import Vector
from alma.retrieval.candidate import Candidate
from alma.retrieval.length import STATEMENT, best_passage
from alma.storage.nearest import cosines

# What covering all of the question's words adds to the cosine.
_WORDS = 0.4
# How well the best memory must fit for there to be anything relevant at all: the more there are to compare with, the
# better one of them fits by chance, quickly at first and then more slowly.
_BY_CHANCE = ((0.12, 0.055), (0.15, 0.04))
# In stores of thousands hardly a question about stored things fits worse than that, and one in four about other things
# better.
_FITS_BEST_OF_MANY = 0.5
# How well every other memory must fit beside the best.
_FITS = 0.2
# Whoever asks for a rare name or number means the memory that has it.
_SURE_WORDS = 0.85
# Without vectors there are only words to go by.
_FITS_BEST_BY_WORDS, _FITS_BY_WORDS = 0.3, 0.15
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
    stand for several terms in one piece. `reads` says whether the model knows a writing, where it knows the task's.
    """

    vector: Vector | None
    terms: frozenset[str]
    weights: Mapping[str, float]
    records: int = 0
    known: frozenset[str] = frozenset()
    learned: bool = True
    compounds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reads: Callable[[str], bool] | None = None

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
    """

    candidate: Candidate
    record: Record
    meaning: float
    words: float
    said: frozenset[str]
    gathered: float = 0.0
    is_unread: bool = False

    @property
    def fit(self) -> float:
        return self.meaning + _WORDS * self.words

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


def anything_fits(
    found: Iterable[Fitting],
    nearest: float,
    compared: int,
    *,
    with_vectors: bool,
    understood: bool = True,
    learned: bool = True,
) -> bool:
    """Whether any memory has enough to do with the task; where none has, the rest is noise as well.

    `found` are the best of the candidates, which were the best of so many that were `compared`, and `nearest` is the
    cosine of the nearest candidate. A task that was not `understood` is near to everything that is not understood
    either, so that a word must speak for it. In a language that was not `learned` the cosine alone says little.
    """
    found = list(found)
    if any(each.is_of_the_time for each in found):
        return True
    if with_vectors and not understood:
        return any(each.words > 0 for each in found)
    if any(each.words >= _FITS_BEST_BY_WORDS for each in found if not (learned and each.has_vector)):
        return True
    if not with_vectors:
        return False
    folds = math.log(max(1, compared))
    least = min(_FITS_BEST_OF_MANY, *(of_one + for_each_fold * folds for of_one, for_each_fold in _BY_CHANCE))
    # What means the same may stand behind others, and still shows that there is something.
    if learned and _nearest_read(found, nearest) >= least:
        return True
    return any(each.fit >= least or each.words >= _SURE_WORDS for each in found)


def _nearest_read(found: Sequence[Fitting], nearest: float) -> float:
    """The cosine of the nearest memory, unless that is one that the model cannot read."""
    if any(each.is_unread and each.candidate.cosine == nearest for each in found):
        return max(each.meaning for each in found)
    return nearest


def fits(found: Fitting, *, understood: bool = True) -> bool:
    """Whether a memory fits well enough beside one that fits best, or stands in a context that does."""
    if found.has_context or found.is_of_the_time:
        return True
    if not understood and found.words <= 0:
        return False
    return found.fit >= _FITS if found.has_vector else found.words >= _FITS_BY_WORDS
