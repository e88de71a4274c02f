"""What speaks for a candidate is kept one after the other, and told by name."""

from __future__ import annotations

import pytest

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval.candidate import Candidate
from alma.retrieval.candidates import Pool
from alma.retrieval.router import Target

HERE = Target(Memory, Scope.everywhere())


def a_candidate() -> Candidate:
    candidate = Candidate(HERE, "some")
    candidate.add("meaning", 0.25)
    candidate.add("words", 0.5)
    return candidate


def test_what_speaks_for_it_twice_counts_twice_under_one_name() -> None:
    candidate = a_candidate()
    candidate.add("words", 0.25)
    assert candidate.relevance == {"meaning": 0.25, "words": 0.75}
    assert candidate.total == sum(candidate.relevance.values())


def test_what_comes_after_it_was_scaled_counts_fully() -> None:
    candidate = a_candidate()
    candidate.scale(0.5)
    candidate.add("words", 0.25)
    assert candidate.relevance == {"meaning": 0.125, "words": 0.5}
    assert candidate.total == pytest.approx(0.625)


def test_a_meaning_that_was_only_supposed_is_corrected() -> None:
    candidate = a_candidate()
    candidate.correct_meaning(0.125)
    assert candidate.relevance == {"words": 0.5, "meaning": 0.125}
    assert candidate.total == pytest.approx(0.625)


def test_one_that_was_found_again_is_the_same_candidate() -> None:
    pool = Pool()
    pool.propose_each(HERE, ["a", "b"], "meaning")
    again = pool.propose_each(HERE, ["b", "c", "b"], "words")
    assert [each.found_by for each in pool.of(Memory)] == [("meaning",), ("meaning", "words"), ("words",)]
    assert again[0] is again[2]


def test_those_that_came_later_stand_in_their_place() -> None:
    pool = Pool()
    pool.propose_each(HERE, ["b", "d"], "meaning")
    assert [each.id for each in pool.of(Memory)] == ["b", "d"]
    pool.propose_each(HERE, ["c", "a"], "words")
    pool.propose(HERE, "d", "words").add("words", 0.5)
    assert [each.id for each in pool.of(Memory)] == ["d", "a", "b", "c"]


def test_what_was_let_go_is_no_longer_held() -> None:
    pool = Pool()
    pool.propose(HERE, "a", "meaning").cosine = 0.5
    pool.let_go()
    assert (len(pool), pool.of(Memory)) == (0, [])
