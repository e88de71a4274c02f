"""Operations on measured benefit: the report, observed outcomes, and the demotion of memories that harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from alma.benefit.log import SIGNAL_WEIGHTS
from alma.benefit.report import GroupBenefit, MemoryBenefit
from alma.benefit.tuning import TUNING
from alma.benefit.uplift import State
from alma.errors import NotFoundError
from alma.model.kinds import kind_named
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Limit, Name, Operation, Output, Text, operation
from alma.operations.places import place_of

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_LONGEST = 400
Signal = Literal["test-results", "exit-status", "correction", "handoff", "conversation", "thanks", "retry"]
LessonKind = Literal["heuristic", "domain_knowledge"]


class Report(InProject):
    agent: Name | None = Field(None, description="Only tasks of this agent.")
    signals: bool = Field(False, description="Also tasks of which an outcome was only observed, with less weight.")
    since: AwareDatetime | None = Field(None, description="Only tasks begun since this time.")
    limit: Limit = Field(50, description="The maximum number of memories.")


class Effect(Output):
    """What showing changes in the success rate, and how sure that is."""

    state: State
    effect: float = Field(description="The difference of the success rates with and without, from -1 to 1.")
    low: float = Field(description="The lower limit of the 95 % interval, which holds at all times.")
    high: float
    shown: int = Field(description="The tasks for which it was shown.")
    withheld: int = Field(description="The tasks for which it was withheld.")
    rate_shown: float | None = Field(None, description="The success rate of the tasks for which it was shown.")
    rate_withheld: float | None = None


class MemoryEffect(Effect):
    """The effect of a memory."""

    memory_id: str
    kind: str
    text: str = Field(description="What it says, shortened; empty if it is no longer stored.")
    agent: str | None = None
    additive: float | None = Field(None, description="The effect with the memories shown beside it held fixed.")
    is_demoted: bool
    is_stored: bool


class GroupEffect(Effect):
    """The average effect of the memories of a kind, or of those for an agent."""

    name: str


class BenefitReported(Output):
    trials: int = Field(description="The tasks whose outcome counts.")
    outcomes: Mapping[str, int] = Field(description="Tasks by what verified their outcome, or why none counts.")
    level: float = Field(default=1 - TUNING.alpha, description="The probability with which an interval never misses.")
    memories: Sequence[MemoryEffect] = Field(description="Those that harm first, then those that help.")
    left_out: int = Field(0, description="How many memories more there are.")
    groups: Sequence[GroupEffect]


@operation("benefit", Right.READ, example={"agent": "helena"})
def benefit_report(caller: Caller, request: Report) -> BenefitReported:
    """Report for each memory and group whether it helps: uplift with an interval, exposures and a state.

    It is measured where a project or an agent withholds a share of its lessons at random.
    """
    scope = caller.project_scope(request.project_id, request.agent)
    found = caller.store.benefit.report(scope, signals=request.signals, since=request.since)
    return BenefitReported(
        trials=found.trials,
        outcomes=found.outcomes,
        memories=[_memory_effect(each) for each in found.memories[: request.limit]],
        left_out=max(0, len(found.memories) - request.limit),
        groups=[GroupEffect(name=each.name, **_effect(each)) for each in found.groups],
    )


def _memory_effect(found: MemoryBenefit) -> MemoryEffect:
    return MemoryEffect(
        memory_id=found.memory_id,
        kind=found.kind,
        text=found.text[:_LONGEST],
        agent=found.agent,
        additive=found.additive,
        is_demoted=found.is_demoted,
        is_stored=found.is_stored,
        **_effect(found),
    )


def _effect(found: MemoryBenefit | GroupBenefit) -> dict[str, Any]:
    uplift = found.uplift
    names = ("state", "effect", "shown", "withheld", "rate_shown", "rate_withheld")
    return {name: getattr(uplift, name) for name in names} | uplift.interval._asdict()


# ---------------------------------------------------------------------- observed outcomes


class Observe(InProject):
    signal: Signal = Field(description="What was observed.")
    success: bool = Field(description="Whether it indicates a success.")
    agent: Name
    task: Text | None = Field(None, description="The task that retrieve was asked about.")
    retrieval_id: Name | None = Field(None, description="Instead of the task: the retrieval_id of the memories.")


class ObservedOutcome(Output):
    retrieval_id: str | None = Field(
        default=None, description="The retrieval it counts for; none if nothing is measured."
    )
    signal: Signal
    weight: float = Field(description="What it counts where nothing is reported; a reported outcome counts 1 or more.")


@operation(
    "benefit",
    Right.WRITE,
    idempotent=True,
    example={"signal": "exit-status", "success": False, "agent": "helena", "task": "Test the login form"},
)
def observe_outcome(caller: Caller, request: Observe) -> ObservedOutcome:
    """Note what a host observed about the outcome of a task: an exit status, test results, a correction, thanks.

    It is stored with the retrieval, separately from outcomes reported with learn, and teaches no lesson.
    """
    memory, weight = caller.memory(request.project_id), SIGNAL_WEIGHTS[request.signal]
    given = {"task": request.task, "retrieval_id": request.retrieval_id}
    try:
        seen = memory.benefit.observe(
            request.signal, request.success, caller.agent(request.agent), memory.project_id, **given
        )
    except NotFoundError:
        if request.retrieval_id is not None:
            raise
        # Nothing was withheld or measured for this task.
        return ObservedOutcome(signal=request.signal, weight=weight)
    return ObservedOutcome(retrieval_id=seen.retrieval_id, signal=request.signal, weight=weight)


# ---------------------------------------------------------------------- demotion


class DemoteHarmful(InProject):
    ids: Annotated[Sequence[Name], Field(max_length=1_000)] | None = Field(
        None, description="Only these; default: all that harm."
    )
    dry_run: bool = Field(False, description="Show what would be demoted without changing anything.")


class Demoted(Output):
    memories: Sequence[MemoryEffect]
    dry_run: bool


@operation("benefit", Right.DELETE, takes_long=True, idempotent=True, example={"dry_run": True})
def demote_harmful(caller: Caller, request: DemoteHarmful) -> Demoted:
    """Demote the memories that are measured to harm: prompts lack them until they are reinstated.

    The review inbox lists them with their numbers. Maintenance does this by itself.
    """
    scope = caller.project_scope(request.project_id)
    done = caller.store.benefit.demote_harmful(scope, request.ids, dry_run=request.dry_run, by=caller.by())
    return Demoted(memories=[_memory_effect(each) for each in done], dry_run=request.dry_run)


class Reinstate(InProject):
    kind: LessonKind
    ids: Annotated[Sequence[Name], Field(min_length=1, max_length=1_000)]


class Reinstated(Output):
    reinstated: Sequence[str]


@operation("benefit", Right.WRITE, idempotent=True, example={"kind": "heuristic", "ids": [_ID]})
def reinstate_memories(caller: Caller, request: Reinstate) -> Reinstated:
    """Use demoted memories again, and measure them anew from now on."""
    place = place_of(caller, kind_named(request.kind), request.project_id)
    if place is None:
        return Reinstated(reinstated=[])
    done = caller.store.benefit.reinstate(request.kind, request.ids, place.scope, caller.by())
    return Reinstated(reinstated=done)


BENEFIT: tuple[Operation[Any, Any], ...] = (benefit_report, observe_outcome, demote_harmful, reinstate_memories)
