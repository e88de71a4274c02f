"""Whether anything that is stored has to do with a task."""

from __future__ import annotations

import pytest

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval import relevance
from alma.retrieval.candidate import Candidate
from alma.retrieval.relevance import Fitting
from alma.retrieval.router import Target
from alma.testing import builders as make


def fitting(meaning: float | None, words: float = 0.0) -> Fitting:
    memory = make.a_memory()
    candidate = Candidate(Target(Memory, Scope.everywhere()), memory.id)
    candidate.cosine = meaning
    return Fitting(candidate, memory, meaning or 0.0, words, frozenset())


def anything_fits(*found: Fitting, compared: int, **known: bool) -> bool:
    return relevance.anything_fits(found, 0.0, compared, **{"with_vectors": True, **known})


@pytest.mark.parametrize(("compared", "relevant"), [(500, True), (2_000, False), (1_000_000, False)])
def test_the_more_there_are_the_better_the_best_must_fit(compared: int, relevant: bool) -> None:
    assert anything_fits(fitting(0.44), compared=compared) == relevant


def test_however_many_there_are_half_of_a_perfect_fit_is_enough() -> None:
    assert anything_fits(fitting(0.5), compared=10_000_000)


def test_among_few_less_is_enough() -> None:
    assert anything_fits(fitting(0.3), compared=10)
    assert not anything_fits(fitting(0.2), compared=10)


def test_a_task_in_a_writing_that_the_model_does_not_know_needs_a_word() -> None:
    assert not anything_fits(fitting(0.9), compared=10, understood=False)
    assert anything_fits(fitting(0.9, words=0.1), compared=10, understood=False)
    assert relevance.fits(fitting(0.9, words=0.1), understood=False)
    assert not relevance.fits(fitting(0.9), understood=False)


def test_what_has_nearly_all_words_of_the_question_fits_in_any_case() -> None:
    assert anything_fits(fitting(0.0, words=0.9), compared=1_000_000)


def test_what_has_no_vector_is_judged_by_its_words() -> None:
    assert anything_fits(fitting(None, words=0.3), compared=1_000_000)
    assert not anything_fits(fitting(None, words=0.2), compared=1)
    assert relevance.fits(fitting(None, words=0.2))
    assert not relevance.fits(fitting(0.0, words=0.2))


def test_in_a_language_that_was_not_learned_the_nearest_says_nothing_by_itself() -> None:
    far = fitting(0.1)
    assert relevance.anything_fits([far], 0.6, 20, with_vectors=True)
    assert not relevance.anything_fits([far], 0.6, 20, with_vectors=True, learned=False)


def test_in_a_language_that_was_not_learned_words_tell_as_much_as_without_vectors() -> None:
    assert anything_fits(fitting(0.1, words=0.3), compared=10_000, learned=False)
    assert not anything_fits(fitting(0.1, words=0.2), compared=10_000, learned=False)
    assert not anything_fits(fitting(0.1, words=0.3), compared=10_000)
