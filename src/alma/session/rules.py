"""Rules of engagement: what an agent may learn and read, and what is asked of its work."""

from __future__ import annotations

from dataclasses import dataclass

from alma.model.briefing import Line, Topic
from alma.model.common import LONGEST_TEXT, checked_names
from alma.model.scope import MemoryScope


@dataclass(frozen=True, slots=True)
class RulesOfEngagement:
    """The rules an agent works under."""

    scope_rules: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    quality_gates: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        scope: MemoryScope | None,
        constraints: tuple[str, ...] = (),
        quality_gates: tuple[str, ...] = (),
    ) -> RulesOfEngagement:
        """The rules that follow from an agent's scope, and those given besides."""
        limits = (*_limits(scope), *checked_names("rules", "constraints", constraints, LONGEST_TEXT))
        gates = tuple(checked_names("rules", "quality_gates", quality_gates, LONGEST_TEXT))
        return cls(() if scope is None else tuple(_scope_rules(scope)), limits, gates)

    def topic(self) -> Topic:
        """The rules as a topic of a briefing."""
        lines = [
            *(Line("", rule) for rule in self.scope_rules),
            *(Line("Constraint", rule) for rule in self.constraints),
            *(Line("Before it is done", gate) for gate in self.quality_gates),
        ]
        return Topic("Rules Of Engagement", tuple(lines))


def _scope_rules(scope: MemoryScope) -> list[str]:
    rules = [f"Learn about {_listed(scope.can_learn)}" if scope.can_learn else "Learn about anything not forbidden"]
    if scope.inherit_from:
        rules.append(f"Memories of {_listed(scope.inherit_from)} can be read too")
    if scope.share_with:
        rules.append(f"What is learned may be read by {_listed(scope.share_with)}")
    rules.append(f"{scope.min_occurrences_for_heuristic} like outcomes make a strategy known to work")
    return rules


def _limits(scope: MemoryScope | None) -> tuple[str, ...]:
    if scope is None or not scope.cannot_learn:
        return ()
    return (f"Do not learn about {_listed(scope.cannot_learn)}",)


def _listed(names: object) -> str:
    assert isinstance(names, tuple)
    return ", ".join(names)
