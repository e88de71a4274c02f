"""The features of candidates, and their order in the pool."""

from __future__ import annotations

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval.candidates import Candidate, CandidatePool
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
    assert candidate.terms == {"meaning": 0.25, "words": 0.75}
    assert candidate.total == sum(candidate.terms.values())


def test_one_that_was_found_again_is_the_same_candidate() -> None:
    pool = CandidatePool()
    pool.propose(HERE, ["a", "b"], "meaning")
    again = pool.propose(HERE, ["b", "c", "b"], "words")
    assert [each.found_by for each in pool.of(Memory)] == [("meaning",), ("meaning", "words"), ("words",)]
    assert again[0] is again[2]


def test_those_that_came_later_stand_in_their_place() -> None:
    pool = CandidatePool()
    pool.propose(HERE, ["b", "d"], "meaning")
    assert [each.id for each in pool.of(Memory)] == ["b", "d"]
    pool.propose(HERE, ["c", "a"], "words")
    pool.propose(HERE, ["d"], "words")[0].add("words", 0.5)
    assert [each.id for each in pool.of(Memory)] == ["d", "a", "b", "c"]


def test_what_was_let_go_is_no_longer_held() -> None:
    pool = CandidatePool()
    pool.propose(HERE, ["a"], "meaning")
    pool.clear()
    assert (len(pool), pool.of(Memory)) == (0, [])
