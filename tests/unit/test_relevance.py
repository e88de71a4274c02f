"""Whether anything that is stored has to do with a task."""

from __future__ import annotations

import pytest

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval.candidates import Candidate, Pool
from alma.retrieval.relevance import Fitting, anything_fits
from alma.retrieval.router import Target
from alma.testing import builders as make


def fitting(meaning: float, words: float = 0.0) -> Fitting:
    memory = make.a_memory()
    return Fitting(Candidate(Target(Memory, Scope.everywhere()), memory.id), memory, meaning, words, frozenset())


def pool_of(candidates: int, *, is_full: bool) -> Pool:
    pool = Pool()
    pool.is_full = is_full
    target = Target(Memory, Scope.everywhere())
    for number in range(candidates):
        pool.propose(target, str(number), "meaning")
    return pool


@pytest.mark.parametrize(("records", "relevant"), [(500, True), (2_000, False), (1_000_000, False)])
def test_the_more_there_are_the_better_the_best_must_fit(records: int, relevant: bool) -> None:
    assert anything_fits([fitting(0.44)], pool_of(300, is_full=True), records, with_vectors=True) == relevant


def test_however_many_there_are_half_of_a_perfect_fit_is_enough() -> None:
    assert anything_fits([fitting(0.5)], pool_of(300, is_full=True), 10_000_000, with_vectors=True)


def test_where_everything_was_compared_only_what_was_compared_counts() -> None:
    assert anything_fits([fitting(0.3)], pool_of(10, is_full=False), 100_000, with_vectors=True)
    assert not anything_fits([fitting(0.2)], pool_of(10, is_full=False), 100_000, with_vectors=True)


def test_a_task_in_a_writing_that_the_model_does_not_know_needs_a_word() -> None:
    unread = {"with_vectors": True, "understood": False}
    assert not anything_fits([fitting(0.9)], pool_of(10, is_full=False), 10, **unread)
    assert anything_fits([fitting(0.9, words=0.1)], pool_of(10, is_full=False), 10, **unread)


def test_what_has_nearly_all_words_of_the_question_fits_in_any_case() -> None:
    assert anything_fits([fitting(0.0, words=0.9)], pool_of(300, is_full=True), 1_000_000, with_vectors=True)
