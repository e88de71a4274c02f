"""The report of benefit, and the demotion of memories that harm."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from alma import clock
from alma.benefit.trials import Trial, estimated
from alma.benefit.uplift import Uplift
from alma.errors import ValidationError
from alma.model.governance import Attribution
from alma.model.learning import DEMOTED, IS_DEMOTED, DomainKnowledge, Heuristic, demotion_of
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction

Lesson = Heuristic | DomainKnowledge

LESSONS: Mapping[str, type[Lesson]] = {cls.spec.kind: cls for cls in (Heuristic, DomainKnowledge)}
"""The kinds of memories that can be demoted."""

_SINCE = "reinstated_at"
_WORST_FIRST = ("harms", "helps", "no effect seen", "not enough data")


@dataclass(frozen=True, slots=True)
class MemoryBenefit:
    """What a memory changes; `additive` is its effect with those shown beside it held fixed.

    A memory that is no longer stored has no text.
    """

    memory_id: str
    kind: str
    text: str
    agent: str | None
    uplift: Uplift
    additive: float | None
    is_demoted: bool = False
    is_stored: bool = True


@dataclass(frozen=True, slots=True)
class GroupBenefit:
    """What the memories of a kind, or those shown to an agent, change on average."""

    name: str
    uplift: Uplift


@dataclass(frozen=True, slots=True)
class BenefitReport:
    """What is known of the benefit of memories: `trials` is how many tasks count, `outcomes` what is known of all.

    Memories and groups that harm come first, then those that help; inside of a state, the largest effects.
    """

    trials: int
    outcomes: Mapping[str, int]
    memories: Sequence[MemoryBenefit]
    groups: Sequence[GroupBenefit]

    @property
    def harmful(self) -> Sequence[MemoryBenefit]:
        """The stored memories that harm and are not demoted."""
        return [
            each for each in self.memories if each.uplift.state == "harms" and each.is_stored and not each.is_demoted
        ]


def report_of(
    storage: StorageBackend, scope: Scope, trials: Sequence[Trial], outcomes: Mapping[str, int]
) -> BenefitReport:
    """The report of these trials of a scope."""
    kinds = {key: arm.groups[0] for trial in trials for key, arm in trial.arms.items()}
    records = _lessons(storage, Scope(project_id=scope.project_id), kinds)
    benefit = estimated(_since_reinstated(trials, records))
    memories = [
        MemoryBenefit(
            memory_id=key,
            kind=kinds[key],
            text=_text_of(records[key]) if key in records else "",
            agent=records[key].agent if key in records else None,
            uplift=uplift,
            additive=benefit.additive.get(key),
            is_demoted=demotion_of(records.get(key)) is not None,
            is_stored=key in records,
        )
        for key, uplift in benefit.memories.items()
    ]
    groups = [GroupBenefit(name, uplift) for name, uplift in benefit.groups.items()]
    return BenefitReport(
        trials=benefit.trials,
        outcomes=outcomes,
        memories=sorted(memories, key=lambda each: (*_rank(each.uplift), each.memory_id)),
        groups=sorted(groups, key=lambda each: (*_rank(each.uplift), each.name)),
    )


def _rank(uplift: Uplift) -> tuple[int, float]:
    return _WORST_FIRST.index(uplift.state), -abs(uplift.shrunk)


def _text_of(lesson: Lesson) -> str:
    return lesson.strategy if isinstance(lesson, Heuristic) else lesson.fact


def _lessons(storage: StorageBackend, scope: Scope, kinds: Mapping[str, str]) -> dict[str, Lesson]:
    found: dict[str, Lesson] = {}
    for kind, cls in LESSONS.items():
        ids = [key for key, of in kinds.items() if of == kind]
        found |= {str(each.key): each for each in storage.get_many(cls, ids, scope)}
    return found


def _since_reinstated(trials: Sequence[Trial], lessons: Mapping[str, Lesson]) -> list[Trial]:
    """The trials without the arms of memories that were reinstated after them."""
    noted = {key: lesson.metadata.get(DEMOTED) for key, lesson in lessons.items()}
    since = {
        key: datetime.fromisoformat(note[_SINCE])
        for key, note in noted.items()
        if isinstance(note, Mapping) and _SINCE in note
    }
    if not since:
        return list(trials)
    return [
        replace(each, arms={key: arm for key, arm in each.arms.items() if key not in since or each.at >= since[key]})
        for each in trials
    ]


# ---------------------------------------------------------------------- demotion


def numbers_of(uplift: Uplift) -> str:
    """An uplift as a sentence."""
    low, high = (round(100 * each) for each in uplift.interval)
    with_it, without = (
        "unknown" if rate is None else f"{rate:.0%}" for rate in (uplift.rate_shown, uplift.rate_withheld)
    )
    return (
        f"it {uplift.state}: {100 * uplift.effect:+.0f} points of success, 95% interval {low:+d} to {high:+d}; "
        f"{with_it} succeeded in {uplift.shown} tasks with it, {without} in {uplift.withheld} without"
    )


def demoted(
    storage: StorageBackend,
    scope: Scope,
    harmful: Sequence[MemoryBenefit],
    may_be: Callable[[Record], bool],
    by: Attribution,
    *,
    dry_run: bool,
) -> list[MemoryBenefit]:
    """Demote those of these memories that lie in the scope, are not pinned and not about safety."""

    def demote(tx: Transaction) -> list[MemoryBenefit]:
        done = []
        for each in harmful:
            for record in tx.lock(LESSONS[each.kind], [each.memory_id], scope):
                if may_be(record):
                    if not dry_run:
                        tx.save(_with_demotion(record, _numbers(each.uplift)))
                    done.append(replace(each, is_demoted=not dry_run))
        return done

    return storage.write(demote, by) if harmful else []


def reinstated(storage: StorageBackend, scope: Scope, kind: str, ids: Collection[str], by: Attribution) -> list[str]:
    """Undo the demotion of memories."""
    if kind not in LESSONS:
        raise ValidationError("reinstate", "kind", kind, f"must be one of {', '.join(LESSONS)}")

    def reinstate(tx: Transaction) -> list[str]:
        held = [each for each in tx.lock(LESSONS[kind], list(ids), scope) if demotion_of(each) is not None]
        tx.save(*(_with_demotion(each, {_SINCE: clock.now().isoformat()}) for each in held))
        return [str(each.key) for each in held]

    return storage.write(reinstate, by)


def _with_demotion(record: Any, note: Mapping[str, Any]) -> Any:
    return record.replace(metadata={**record.metadata, DEMOTED: dict(note)})


def _numbers(uplift: Uplift) -> dict[str, Any]:
    return {
        IS_DEMOTED: True,
        "said": numbers_of(uplift),
        "effect": uplift.effect,
        "low": uplift.interval.low,
        "high": uplift.interval.high,
        "shown": uplift.shown,
        "withheld": uplift.withheld,
        "at": clock.now().isoformat(),
    }
