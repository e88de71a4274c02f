"""Slices: contents, order and explanations."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from alma.errors import NotFoundError, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.slice import Dropped, Explanation, MemorySlice
from alma.testing import builders as make


def explained(score: float, key: str) -> Explanation:
    return Explanation("heuristic", key, score, {"meaning": score - 0.1, "recency": 0.1}, ("meaning", "words"))


def test_a_slice_can_be_made_by_hand() -> None:
    heuristic = make.a_heuristic()
    found = MemorySlice(heuristics=[heuristic])
    assert found.heuristics == (heuristic,)
    assert heuristic.strategy in found.to_prompt()


def test_a_slice_can_be_made_from_memories_by_kind() -> None:
    heuristic, memory = make.a_heuristic(), make.a_memory()
    found = MemorySlice.of({Memory: [memory], Heuristic: [heuristic]}, query="q", agent="helena")
    assert (found.heuristics, found.memories, found.outcomes) == ((heuristic,), (memory,), ())
    assert (found.query, found.agent) == ("q", "helena")


def test_a_slice_gives_every_memory_kind_by_kind() -> None:
    memory, heuristic, always = make.a_memory(), make.a_heuristic(), make.a_memory(memory_type="instruction")
    avoid, wish, fact = make.an_anti_pattern(), make.a_preference(), make.some_knowledge()
    outcome = make.an_outcome()
    found = MemorySlice(
        memories=[memory],
        outcomes=[outcome],
        domain_knowledge=[fact],
        instructions=[always],
        preferences=[wish],
        anti_patterns=[avoid],
        heuristics=[heuristic],
    )
    assert list(found) == [heuristic, avoid, wish, always, fact, outcome, memory]
    assert found.total_items == 7


def test_a_slice_is_true_when_something_was_found() -> None:
    assert not MemorySlice()
    assert MemorySlice(memories=[make.a_memory()])


def test_the_best_of_any_kind_comes_first() -> None:
    low, high = make.a_heuristic(confidence=0.9), make.a_memory()
    reasons = {low.id: explained(0.3, low.id), high.id: explained(0.7, high.id)}
    assert MemorySlice(heuristics=[low], memories=[high], explanations=reasons).ranked() == [high, low]


def test_without_scores_the_surest_comes_first() -> None:
    unsure, sure, unknown = make.a_heuristic(confidence=0.1), make.a_heuristic(confidence=0.9), make.a_memory()
    assert MemorySlice(heuristics=[unsure, sure], memories=[unknown]).ranked() == [sure, unknown, unsure]


def test_every_memory_is_explained_best_first() -> None:
    low, high = make.a_heuristic(), make.a_heuristic()
    reasons = {low.id: explained(0.3, low.id), high.id: explained(0.7, high.id)}
    found = MemorySlice(heuristics=[high, low], explanations=reasons)
    assert found.explain() == [reasons[high.id], reasons[low.id]]
    assert found.explanation_of(low.id) is reasons[low.id]


def test_what_is_not_in_the_slice_has_no_explanation() -> None:
    with pytest.raises(NotFoundError, match="there is no memory of this slice with id 'nobody'"):
        MemorySlice().explanation_of("nobody")


def test_an_explanation_reads_as_a_sum() -> None:
    assert str(explained(0.5, "h1")) == "heuristic h1: 0.500 = 0.400 meaning + 0.100 recency (found by meaning, words)"


def test_an_explanation_without_terms_is_a_sum_of_nothing() -> None:
    assert str(Explanation("memory", "m1", 0.0, {}, ("recency",))) == "memory m1: 0.000 = nothing (found by recency)"


def test_what_is_in_the_prompt_was_not_dropped() -> None:
    heuristic = make.a_heuristic()
    assert MemorySlice(heuristics=[heuristic]).why_not(heuristic.id) is None


def test_what_the_prompt_has_no_room_for_is_said_to_be_dropped_there() -> None:
    many = [make.a_heuristic(strategy="word " * 300, confidence=1 - number / 100) for number in range(20)]
    found = MemorySlice(heuristics=many)
    assert found.why_not(many[0].id) is None
    dropped = found.why_not(many[-1].id)
    assert str(dropped) == "prompt: there was no room for it in a prompt of 2,000 tokens"


def shared(rule_of: str, warning_of: str, pattern: str = "Retry the request") -> MemorySlice:
    """What victor is handed, of which a rule and a warning say the opposite."""
    rule = make.a_heuristic(id="rule", agent=rule_of, strategy="retry a request")
    warning = make.an_anti_pattern(id="warning", agent=warning_of, pattern=pattern)
    return MemorySlice(heuristics=[rule], anti_patterns=[warning], agent="victor")


@pytest.mark.parametrize(
    ("rule_of", "warning_of", "said"),
    [("helena", "victor", "warning"), ("victor", "helena", "rule"), ("helena", "ada", "warning")],
)
def test_of_agents_that_found_the_opposite_the_one_who_asks_is_believed(
    rule_of: str, warning_of: str, said: str
) -> None:
    found = shared(rule_of, warning_of)
    left_out = "rule" if said == "warning" else "warning"
    assert found.packed().included == (said,)
    assert str(found.why_not(left_out)).startswith("prompt: it ")
    assert found.total_items == 2


def test_what_agents_found_of_different_things_stands_side_by_side() -> None:
    assert set(shared("helena", "victor", "never retry a request").packed().included) == {"rule", "warning"}


@pytest.mark.parametrize("nothing", [None, "", 7])
def test_why_not_wants_an_id(nothing: Any) -> None:
    with pytest.raises(ValidationError, match="record_id must be the id of a memory"):
        MemorySlice().why_not(nothing)


def test_of_an_unknown_memory_a_slice_says_that_no_one_looked_at_it() -> None:
    dropped = MemorySlice().why_not("nobody")
    assert dropped == Dropped("scope", "no memory 'nobody' was looked at: it does not exist or lies outside the scope")


def test_what_retrieval_knows_of_others_is_asked_for() -> None:
    found = MemorySlice(_why_not=lambda key: Dropped("score", f"{key} is weak"))
    assert found.why_not("h1") == Dropped("score", "h1 is weak")


def test_slices_with_the_same_memories_are_equal_whatever_they_were_given_in() -> None:
    heuristic = make.a_heuristic()
    assert MemorySlice(heuristics=[heuristic]) == MemorySlice(heuristics=(heuristic,))
    assert MemorySlice(heuristics=[heuristic]) != MemorySlice(heuristics=[heuristic.replace(strategy="another")])


def test_how_long_it_took_and_from_where_it_came_make_no_other_slice() -> None:
    found = MemorySlice(memories=[make.a_memory()], retrieval_time_ms=3.0)
    assert replace(found, retrieval_time_ms=0.1, from_cache=True) == found


def test_a_slice_does_not_change_with_the_list_it_was_made_from() -> None:
    heuristics = [make.a_heuristic()]
    found = MemorySlice(heuristics=heuristics)
    heuristics.clear()
    assert found.total_items == 1


def test_a_slice_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        MemorySlice().query = "another"  # type: ignore[misc]


def test_a_slice_shows_what_it_holds_and_not_how_it_works() -> None:
    heuristic = make.a_heuristic(id="h1")
    text = repr(MemorySlice(heuristics=[heuristic], query="q"))
    assert text.startswith("MemorySlice(heuristics=(Heuristic(id='h1'")
    assert "query='q'" in text
    assert "function" not in text
