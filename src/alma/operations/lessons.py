"""Operations on lessons over time: how sure one is after each outcome, learning curves, and contradictions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count, pairwise, takewhile
from typing import Any

from pydantic import AwareDatetime, Field

from alma.clock import now
from alma.errors import NotFoundError, ValidationError
from alma.learning.lessons import RELATED
from alma.model.learning import Belief, Heuristic, Outcome, belief_in
from alma.model.query import And, Compare, Order
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import Hinted, InProject, Name, Operation, Output, operation
from alma.storage.base import StorageBackend

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_MOST_POINTS = 200
_MOST_OUTCOMES = 50_000
_MOST_RULES = 2_000
_MOST_AGENTS = 12
_MOST_TO_TURN = 1_000
_NEWEST = (Order("timestamp", "desc"),)


class Point(Output):
    """What was known at a time: the expected success rate and its 90 % credible interval."""

    at: datetime
    expected: float
    low: float
    high: float
    tried: int
    succeeded: int
    success: bool | None = Field(default=None, description="The outcome at this time, if there was one alone.")
    outcome_id: str | None = None


class LessonId(InProject):
    heuristic_id: Name
    as_of: AwareDatetime | None = Field(None, description="Only outcomes reported before this time.")


class LessonHistory(Output):
    heuristic_id: str
    points: Sequence[Point] = Field(description="After each outcome that is still stored, oldest first.")
    unstored: int = Field(description="Outcomes that the rule counts and that are no longer stored.")
    to_turn: int | None = Field(
        None, description="How many opposite outcomes in a row bring the expected success to the other side of 0.5."
    )


@operation("learning", Right.READ, example={"heuristic_id": _ID})
def lesson_history(caller: Caller, request: LessonId) -> LessonHistory:
    """Show how sure a lesson was after each of its outcomes, and what would turn it around."""
    scope, storage = caller.project_scope(request.project_id), caller.store.storage
    rule = storage.get(Heuristic, request.heuristic_id, scope, request.as_of)
    if rule is None:
        raise NotFoundError("heuristic", request.heuristic_id)
    before = [] if request.as_of is None else [Compare("timestamp", "lt", request.as_of)]
    of_lesson = And(Compare("lesson_id", "eq", rule.id), *before)
    outcomes = storage.find(Outcome, scope, of_lesson, _NEWEST, _MOST_POINTS)[::-1]
    belief = belief_in(rule) or Belief()
    return LessonHistory(
        heuristic_id=rule.id,
        points=list(_after_each(caller, outcomes)),
        unstored=max(0, rule.occurrence_count - len(outcomes)),
        to_turn=None if belief_in(rule) is None else _to_turn(belief),
    )


def _after_each(caller: Caller, outcomes: Sequence[Outcome]) -> Iterable[Point]:
    extractor = caller.store.learning.extractor
    succeeded = 0
    for number, outcome in enumerate(outcomes, start=1):
        at = outcome.timestamp or now()
        succeeded += outcome.success
        belief = extractor.belief(outcomes[:number], at)
        yield _point(at, belief, number, succeeded).model_copy(
            update={"success": outcome.success, "outcome_id": outcome.id}
        )


def _point(at: datetime, belief: Belief, tried: int, succeeded: int) -> Point:
    low, high = belief.interval
    return Point(at=at, expected=belief.mean, low=low, high=high, tried=tried, succeeded=succeeded)


def _to_turn(belief: Belief) -> int:
    """How many outcomes of the other kind bring the mean to the other side of one half."""
    return int(abs(belief.weight_for - belief.weight_against)) + 1


# ---------------------------------------------------------------------- learning curves


class Curve(InProject):
    agent: Name | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = Field(None, description="Default: now.")
    days: float = Field(30, gt=0, le=36_500, description="The length of the range, if since is not given.")
    buckets: int = Field(15, ge=1, le=200)
    agents: bool = Field(True, description="Also the curve of each agent, of the newest 50,000 outcomes.")


class AgentCurve(Output):
    agent: str | None = None
    tried: int
    succeeded: int
    points: Sequence[Point] = Field(description="For each part of the range in which there were outcomes.")


class Curves(Hinted):
    overall: AgentCurve
    agents: Sequence[AgentCurve] = Field(description="The agents with the most outcomes.")


@operation("learning", Right.READ, example={"days": 90})
def learning_curve(caller: Caller, request: Curve) -> Curves:
    """Show the share of outcomes that succeeded over time, for a project and each of its agents."""
    until = request.until or now()
    since = request.since or until - timedelta(days=request.days)
    if since >= until:
        raise ValidationError("learning_curve", "since", since, "must be before until")
    scope = caller.project_scope(request.project_id, request.agent)
    edges = [since + (until - since) * i / request.buckets for i in range(request.buckets + 1)]
    storage = caller.store.storage
    overall = _curve(None, [_counted(storage, scope, *pair) for pair in pairwise(edges)], edges)
    return Curves(overall=overall, agents=_of_agents(storage, scope, edges) if request.agents else [])


def _counted(storage: StorageBackend, scope: Scope, since: datetime, until: datetime) -> tuple[int, int]:
    """How many outcomes there were between two times, and how many of them succeeded."""
    inside = And(Compare("timestamp", "ge", since), Compare("timestamp", "lt", until))
    tried = storage.count(Outcome, scope, inside)
    return tried, storage.count(Outcome, scope, And(inside, Compare("success", "eq", True))) if tried else 0


def _of_agents(storage: StorageBackend, scope: Scope, edges: Sequence[datetime]) -> list[AgentCurve]:
    """The curves of the agents with the most outcomes."""
    inside = And(Compare("timestamp", "ge", edges[0]), Compare("timestamp", "lt", edges[-1]))
    rows = storage.values(Outcome, ("timestamp", "success", "agent"), scope, inside, _NEWEST, _MOST_OUTCOMES)
    by_agent: dict[str, list[list[int]]] = {}
    for at, success, agent in rows:
        part = by_agent.setdefault(agent, [[0, 0] for _ in edges[1:]])[bisect_right(edges, at) - 1]
        part[0] += 1
        part[1] += success
    most = sorted(by_agent, key=lambda agent: -sum(tried for tried, _ in by_agent[agent]))[:_MOST_AGENTS]
    return [_curve(agent, by_agent[agent], edges) for agent in most]


def _curve(agent: str | None, counts: Sequence[Sequence[int]], starts: Sequence[datetime]) -> AgentCurve:
    points = [
        _point(start, Belief(good, tried - good), tried, good)
        for start, (tried, good) in zip(starts, counts, strict=False)
        if tried
    ]
    tried, succeeded = (sum(each) for each in zip(*counts, strict=True))
    return AgentCurve(agent=agent, tried=tried, succeeded=succeeded, points=points)


# ---------------------------------------------------------------------- contradictions


class Contradictions(InProject):
    agent: Name | None = None
    as_of: AwareDatetime | None = Field(None, description="As it was recorded at this time.")


class Side(Output):
    id: str
    agent: str
    condition: str
    strategy: str
    expected: float
    low: float
    high: float
    tried: int
    succeeded: int


class Contradiction(Output):
    stronger: Side
    weaker: Side
    probability: float = Field(description="How sure the judge is that the two say the opposite.")
    successes_to_turn: int | None = Field(
        None, description="How many successes of the weaker lesson would make it the stronger one."
    )


class ContradictionList(Output):
    contradictions: Sequence[Contradiction]


@operation("learning", Right.READ, example={})
def list_contradictions(caller: Caller, request: Contradictions) -> ContradictionList:
    """List lessons that say the opposite, side by side, and which outcomes would change which one is stronger."""
    scope = caller.project_scope(request.project_id, request.agent)
    newest = (Order("created_at", "desc"),)
    found = caller.store.storage.find(Heuristic, scope, order=newest, limit=_MOST_RULES, as_of=request.as_of)
    rules = {rule.id: rule for rule in found}
    moment = request.as_of or now()
    pairs = {
        tuple(sorted((rule.id, other))): float(link.get("probability", 1.0))
        for rule in rules.values()
        for other, link in _links(rule).items()
        if other in rules and link.get("is") == "opposite"
    }
    return ContradictionList(
        contradictions=[
            _contradiction(caller, rules[one], rules[other], sure, moment) for (one, other), sure in pairs.items()
        ]
    )


def _links(rule: Heuristic) -> Mapping[str, Mapping[str, Any]]:
    related = rule.metadata.get(RELATED)
    known = related if isinstance(related, Mapping) else {}
    return {key: link for key, link in known.items() if isinstance(link, Mapping)}


def _contradiction(
    caller: Caller, one: Heuristic, other: Heuristic, probability: float, moment: datetime
) -> Contradiction:
    extractor = caller.store.learning.extractor
    beliefs = {rule.id: extractor.current_belief(rule, moment) for rule in (one, other)}
    weaker, stronger = sorted((one, other), key=lambda rule: beliefs[rule.id].mean)
    return Contradiction(
        stronger=_side(stronger, beliefs[stronger.id]),
        weaker=_side(weaker, beliefs[weaker.id]),
        probability=probability,
        successes_to_turn=_successes_to_turn(beliefs[weaker.id], beliefs[stronger.id], probability),
    )


def _side(rule: Heuristic, belief: Belief) -> Side:
    low, high = belief.interval
    return Side(
        id=rule.id,
        agent=rule.agent,
        condition=rule.condition,
        strategy=rule.strategy,
        expected=belief.mean,
        low=low,
        high=high,
        tried=rule.occurrence_count,
        succeeded=rule.success_count,
    )


def _successes_to_turn(weaker: Belief, stronger: Belief, probability: float) -> int | None:
    """Each success of the weaker lesson also counts against the stronger one, as the judge is sure."""

    def behind(number: int) -> bool:
        gained = Belief(weaker.weight_for + number, weaker.weight_against)
        lost = Belief(stronger.weight_for, stronger.weight_against + probability * number)
        return gained.mean <= lost.mean and number < _MOST_TO_TURN

    needed = sum(1 for _ in takewhile(behind, count()))
    return needed if needed < _MOST_TO_TURN else None


LESSONS: tuple[Operation[Any, Any], ...] = (lesson_history, learning_curve, list_contradictions)
