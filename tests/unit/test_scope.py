"""Scopes: what a call may see, and what an agent may learn and read."""

from __future__ import annotations

from typing import Any

import pytest

from alma.errors import ScopeViolationError, ValidationError
from alma.model.learning import Heuristic, UserPreference
from alma.model.query import matches
from alma.model.scope import MemoryScope, Scope
from alma.testing import builders as make


def test_a_scope_must_name_something() -> None:
    with pytest.raises(ScopeViolationError, match="must name at least one of user_id, project_id, session_id, agent"):
        Scope()


def test_the_whole_store_is_seen_only_on_purpose() -> None:
    assert matches(Scope.everywhere().predicate(Heuristic.spec), make.a_heuristic())


@pytest.mark.parametrize("value", ["", "  ", 7, "a\x00b", "x" * 1000])
def test_a_name_in_a_scope_is_held_to_the_rules_of_names(value: Any) -> None:
    with pytest.raises(ScopeViolationError, match=r"scope\.project_id must"):
        Scope(project_id=value)


def test_every_name_of_a_scope_must_match() -> None:
    inside = Scope(project_id="shop", agent=["helena", "victor"]).predicate(Heuristic.spec)
    assert matches(inside, make.a_heuristic(agent="victor"))
    assert not matches(inside, make.a_heuristic(agent="mallory"))
    assert not matches(inside, make.a_heuristic(project_id="bank"))


@pytest.mark.parametrize("agent", [7, [7], [""], [None]])
def test_the_agents_of_a_scope_are_names(agent: Any) -> None:
    with pytest.raises(ScopeViolationError, match=r"scope\.agent must"):
        Scope(agent=agent)


def test_a_scope_of_no_agents_sees_nothing() -> None:
    assert not matches(Scope(agent=[]).predicate(Heuristic.spec), make.a_heuristic())


def test_a_kind_without_the_name_of_a_scope_cannot_be_seen_through_it() -> None:
    with pytest.raises(ScopeViolationError, match="cannot be scoped by agent"):
        Scope(agent="helena").predicate(UserPreference.spec)


def test_an_agent_reads_its_own_and_what_it_inherits() -> None:
    scope = MemoryScope("helena", inherit_from=["victor", "helena", "clara"])
    assert scope.get_readable_agents() == ["helena", "victor", "clara"]
    assert scope.can_read_from("helena")
    assert scope.can_read_from("clara")
    assert not scope.can_read_from("mallory")


def test_sharing_is_a_permission_for_others_and_none_for_oneself() -> None:
    scope = MemoryScope("helena", share_with=["victor"])
    assert scope.shares_with("victor")
    assert scope.shares_with("helena")
    assert not scope.shares_with("clara")
    assert not scope.can_read_from("victor")


def test_an_agent_may_learn_everything_unless_told_otherwise() -> None:
    assert MemoryScope("helena").is_allowed("anything")


def test_an_agent_may_learn_only_what_is_listed() -> None:
    scope = MemoryScope("helena", can_learn=["testing"])
    assert scope.is_allowed("testing")
    assert not scope.is_allowed("backend")


def test_what_is_forbidden_wins() -> None:
    scope = MemoryScope("helena", can_learn=["testing", "backend"], cannot_learn=["backend"])
    assert not scope.is_allowed("backend")


def test_lists_of_a_scope_are_kept_as_they_were_given() -> None:
    domains = ["testing"]
    scope = MemoryScope("helena", can_learn=domains)
    domains.append("backend")
    assert scope == MemoryScope("helena", can_learn=("testing",))


@pytest.mark.parametrize("name", ["can_learn", "cannot_learn", "share_with", "inherit_from"])
@pytest.mark.parametrize("value", ["testing", [""], [7], [None], None, 7])
def test_the_lists_of_a_scope_hold_names(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=rf"scope\.{name} must"):
        MemoryScope("helena", **{name: value})


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_a_scope_belongs_to_an_agent(name: Any) -> None:
    with pytest.raises(ValidationError, match=r"scope\.agent_name must"):
        MemoryScope(name)


@pytest.mark.parametrize("least", [0, -1, True, 1.5, "3", None])
def test_a_heuristic_needs_at_least_one_occurrence(least: Any) -> None:
    with pytest.raises(
        ValidationError, match=r"scope\.min_occurrences_for_heuristic must be a whole number of at leas"
    ):
        MemoryScope("helena", min_occurrences_for_heuristic=least)


@pytest.mark.parametrize("domain", ["backend_logic", "Backend Logic", " BACKEND-LOGIC ", "ｂackend_logic"])
def test_a_domain_is_the_same_however_it_is_spelled(domain: str) -> None:
    assert not MemoryScope("helena", cannot_learn=["backend_logic"]).is_allowed(domain)
    assert MemoryScope("helena", can_learn=["backend logic"]).is_allowed(domain)
    assert not MemoryScope("helena", can_learn=["backend_logic"], cannot_learn=["Backend logic"]).is_allowed(domain)


def test_agents_are_the_same_whatever_the_case_and_the_encoding_of_their_names() -> None:
    scope = MemoryScope("Zo\u00eb", share_with=["Ren\u00e9"], inherit_from=["REN\u00c9"])
    assert scope.shares_with("rene\u0301")
    assert scope.can_read_from("Rene\u0301")
    assert scope.can_read_from("zoe\u0308")
    assert not scope.shares_with("Rene")


@pytest.mark.parametrize("method", ["is_allowed", "can_read_from", "shares_with"])
@pytest.mark.parametrize("scope", [MemoryScope("helena"), MemoryScope("helena", ["a"], ["b"], ["c"], ["d"])])
@pytest.mark.parametrize("asked", [None, 5, ["a"], b"a"])
def test_a_scope_says_nothing_of_what_is_not_a_name(scope: MemoryScope, method: str, asked: Any) -> None:
    with pytest.raises(ValidationError, match="must be text"):
        getattr(scope, method)(asked)
