"""Simulate tasks with lessons of known effect, and measure what the measurement of benefit finds of it.

Lessons belong to families of tasks; harmful ones come up on easy tasks (confounding), agents ignore a fifth of
the advice, and with drift some lessons change their effect. Every 100 tasks, lessons that harm are demoted, and those
suspected of it are withheld half of the time from then on. A family is a group. Compared with the success rate when
shown and with Thompson sampling.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from alma.benefit.trials import Arm, BenefitEstimator, Trial
from alma.benefit.tuning import TUNING
from alma.benefit.uplift import UpliftEstimator

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TASKS_A_DAY = 20
_FAMILIES, _LESSONS_EACH, _SHOWN = 8, 5, 4
_EFFECTS = (0.25, 0.15, 0.1, 0.0, -0.25)
"""The effects of the lessons of a family, before a fifth of the advice is ignored."""
_OBEYED = 0.8
_CHECKPOINTS = (250, 500, 1000, 2000, 4000)


@dataclass
class World:
    """Families of tasks, their lessons, and what shows them."""

    seed: int
    tasks: int
    withhold: float
    drift: bool = False
    confounding: float = 8.0
    ease: float = 0.2
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.base = self.rng.uniform(0.25, 0.55, _FAMILIES)

    def effect(self, lesson: int, task: int) -> float:
        """The effect of a lesson when it is obeyed; with drift, each second useful lesson fades at half time."""
        effect = _EFFECTS[lesson % _LESSONS_EACH]
        faded = self.drift and task >= self.tasks // 2 and lesson % 2 == 1
        return effect * (0.0 if faded else 1.0)

    def eligible(self, family: int, ease: float) -> list[int]:
        """The lessons that a retrieval finds for a task; harmful ones more often where tasks are easy."""
        lessons = family * _LESSONS_EACH + np.arange(_LESSONS_EACH)
        leaning = np.array([-_EFFECTS[i] for i in range(_LESSONS_EACH)]) * self.confounding * ease
        odds = leaning + self.rng.gumbel(size=_LESSONS_EACH)
        return [int(each) for each in lessons[np.argsort(-odds)[:_SHOWN]]]

    def task(self) -> tuple[int, float]:
        """The family of the next task and how easy it is."""
        return int(self.rng.integers(_FAMILIES)), float(self.rng.uniform(-self.ease, self.ease))

    def chance(self, family: int, ease: float, shown: Sequence[int], task: int) -> float:
        """The chance of success with these lessons shown."""
        return float(
            np.clip(self.base[family] + ease + _OBEYED * sum(self.effect(each, task) for each in shown), 0.02, 0.98)
        )


@dataclass
class Run:
    """What one simulation gave."""

    coverage: list[bool] = field(default_factory=list)
    group_coverage: list[bool] = field(default_factory=list)
    auroc: dict[int, dict[str, float]] = field(default_factory=dict)
    success: dict[str, float] = field(default_factory=dict)
    false_alarms: int = 0
    alarms: int = 0
    found: int = 0
    harmful: int = 0
    cost: float = 0.0
    said_cost: float = 0.0


@dataclass
class Truth:
    """The discounted average of true effects, and whether an interval always held it."""

    last: datetime = _START
    total: float = 0.0
    weight: float = 0.0
    is_covered: bool = True

    def add(self, effect: float, at: datetime) -> None:
        """Count the effect of a task."""
        share = 0.5 ** ((at - self.last).total_seconds() / 86400 / TUNING.half_life_days)
        self.last, self.total, self.weight = at, self.total * share + effect, self.weight * share + 1

    def compare(self, estimator: UpliftEstimator) -> None:
        """Note whether the interval holds it now."""
        low, high = estimator.interval()
        self.is_covered &= low <= self.total / self.weight <= high


class Simulation:
    """ALMA, both baselines and no memory on the same tasks."""

    def __init__(self, world: World) -> None:
        count = _FAMILIES * _LESSONS_EACH
        self.world, self.run, self.estimator = world, Run(), BenefitEstimator(TUNING)
        self.harmful = np.array([_EFFECTS[i % _LESSONS_EACH] < 0 for i in range(count)])
        self.shown = np.tile([1.0, 2.0], (count, 1))
        self.beta = np.ones((count, 2))
        self.truths: defaultdict[str, Truth] = defaultdict(Truth)
        self.group_truths: defaultdict[str, Truth] = defaultdict(Truth)
        self.demoted: set[int] = set()
        self.shares: dict[int, float] = {}
        self.totals = dict.fromkeys(("no memory", "shown always", "Thompson sampling", "ALMA"), 0.0)

    def result(self) -> Run:
        """Go through all tasks."""
        world, run = self.world, self.run
        for number in range(1, world.tasks + 1):
            self._task(number)
            if number % 100 == 0:
                # Looking again and again is what the intervals allow.
                self._maintain()
            if number in _CHECKPOINTS:
                run.auroc[number] = self._aurocs()
        run.success = {name: total / world.tasks for name, total in self.totals.items()}
        run.cost, run.said_cost = run.cost / world.tasks, run.said_cost / world.tasks
        run.coverage = [each.is_covered for each in self.truths.values()]
        run.group_coverage = [each.is_covered for each in self.group_truths.values()]
        run.found = sum(bool(self.harmful[each]) for each in self.demoted)
        run.alarms, run.harmful = len(self.demoted), int(self.harmful.sum())
        return run

    def _task(self, number: int) -> None:
        world = self.world
        family, ease = world.task()
        eligible, dice = world.eligible(family, ease), world.rng.random()

        def chance(shown: Sequence[int]) -> float:
            return world.chance(family, ease, shown, number)

        self.totals["no memory"] += chance(())
        self.totals["shown always"] += chance(eligible)
        self.shown[eligible] += (float(dice < chance(eligible)), 1.0)
        # Thompson sampling shows the half that a draw likes best, and counts what it showed.
        liked = sorted(eligible, key=lambda each: -world.rng.beta(*self.beta[each]))[: _SHOWN // 2]
        self.totals["Thompson sampling"] += chance(liked)
        self.beta[liked, 0 if dice < chance(liked) else 1] += 1
        self._withheld(number, [each for each in eligible if each not in self.demoted], dice, chance)

    def _withheld(self, number: int, offered: list[int], dice: float, chance: Callable[[Sequence[int]], float]) -> None:
        """ALMA withholds at random what is not demoted."""
        world, at = self.world, _START + timedelta(days=number / _TASKS_A_DAY)
        share = {each: max(world.withhold, self.shares.get(each, 0.0)) for each in offered}
        kept = [each for each in offered if world.rng.random() >= share[each]]
        self.totals["ALMA"] += chance(kept)
        self.run.cost += chance(offered) - chance(kept)
        self.run.said_cost += _OBEYED * sum(share[each] * max(0.0, world.effect(each, number)) for each in offered)
        group = f"family {offered[0] // _LESSONS_EACH}" if offered else ""
        arms = {str(each): Arm(each in kept, 1 - share[each], (group,)) for each in offered}
        self.estimator.add(Trial(at, float(dice < chance(kept)), arms))
        for each in offered:
            others = [lesson for lesson in kept if lesson != each]
            effect = chance((*others, each)) - chance(others)
            self.group_truths[group].add(effect, at)
            self.truths[str(each)].add(effect, at)
            self.truths[str(each)].compare(self.estimator.memories[str(each)].estimator)
        if offered:
            self.group_truths[group].compare(self.estimator.groups[group].estimator)

    def _maintain(self) -> None:
        """Demote what harms, and withhold more often what is suspected to."""
        for name, known in self.estimator.memories.items():
            lesson = int(name)
            self.shares[lesson] = TUNING.suspected_share if known.estimator.is_suspected else 0.0
            if lesson not in self.demoted and known.estimator.uplift().state == "harms":
                self.demoted.add(lesson)
                self.run.false_alarms += not self.harmful[lesson]

    def _aurocs(self) -> dict[str, float]:
        scores = {
            "ALMA": -np.array([_shrunk(self.estimator, each) for each in range(len(self.harmful))]),
            "rate when shown": -self.shown[:, 0] / self.shown[:, 1],
            "Thompson sampling": -self.beta[:, 0] / self.beta.sum(1),
        }
        return {name: auroc(score, self.harmful) for name, score in scores.items()}


def _shrunk(estimator: BenefitEstimator, lesson: int) -> float:
    known = estimator.memories.get(str(lesson))
    return 0.0 if known is None else known.estimator.shrunk


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The probability that a harmful lesson scores above another one; ties count half."""
    above = scores[positive][:, None] - scores[~positive][None, :]
    return float((above > 0).mean() + 0.5 * (above == 0).mean())


def main() -> None:
    """Run all worlds and print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=8, help="simulations of each world")
    options.add_argument("--tasks", type=int, default=4000)
    given = options.parse_args()
    plain = World(0, given.tasks, 0.05)
    worlds = {
        "5 % withheld": plain,
        "5 % withheld, drift": replace(plain, drift=True),
        "10 % withheld": replace(plain, withhold=0.1),
        "20 % withheld": replace(plain, withhold=0.2),
        "10 % withheld, much confounding": replace(plain, withhold=0.1, confounding=40.0, ease=0.4),
    }
    results = {
        name: [Simulation(replace(world, seed=seed)).result() for seed in range(given.runs)]
        for name, world in worlds.items()
    }
    print(
        f"{given.runs} simulations of {given.tasks:,} tasks, {_FAMILIES * _LESSONS_EACH} lessons, {_FAMILIES} harmful\n"
    )
    _print_intervals(results)
    _print_auroc(results)
    _print_success(results)


def _row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |")


def _head(*cells: str) -> None:
    _row(*cells)
    _row(*("---" for _ in cells))


def _print_intervals(results: dict[str, list[Run]]) -> None:
    _head("", "95 % intervals that never missed", "those of groups", "harmful found", "false alarms")
    for name, runs in results.items():
        coverage = np.mean([each for run in runs for each in run.coverage])
        groups = np.mean([each for run in runs for each in run.group_coverage])
        found, harmful = sum(run.found for run in runs), sum(run.harmful for run in runs)
        false, alarms = sum(run.false_alarms for run in runs), sum(run.alarms for run in runs)
        _row(name, f"{coverage:.3f}", f"{groups:.3f}", f"{found} of {harmful}", f"{false} of {alarms}")
    print()


def _print_auroc(results: dict[str, list[Run]]) -> None:
    points = [each for each in _CHECKPOINTS if each in next(iter(results.values()))[0].auroc]
    _head("AUROC of finding harmful lessons after", *(f"{each:,} tasks" for each in points))
    for name, runs in results.items():
        scorers = ("ALMA", "rate when shown", "Thompson sampling")
        for scorer in scorers if name == "5 % withheld" or "much" in name else scorers[:1]:
            means = [np.mean([run.auroc[each][scorer] for run in runs]) for each in points]
            _row(f"{scorer}, {name}" if scorer == "ALMA" else scorer, *(f"{mean:.2f}" for mean in means))
    print()


def _print_success(results: dict[str, list[Run]]) -> None:
    names = ("no memory", "shown always", "Thompson sampling", "ALMA")
    _head("success rate", *names, "ALMA over none", "cost of withholding", "at most, as said")
    for name, runs in results.items():
        means = {each: float(np.mean([run.success[each] for run in runs])) for each in names}
        gain = means["ALMA"] / means["no memory"] - 1
        cost, said = np.mean([run.cost for run in runs]), np.mean([run.said_cost for run in runs])
        _row(name, *(f"{means[each]:.3f}" for each in names), f"{gain:+.0%}", f"{cost:.4f}", f"{said:.4f}")


if __name__ == "__main__":
    main()
