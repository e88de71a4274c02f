"""The log of trials: what retrievals show and withhold, the outcomes credited to them, and what follows."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from alma import clock
from alma.benefit.report import BenefitReport, MemoryBenefit, demoted, reinstated, report_of
from alma.benefit.slices import eligible_in, is_eligible, with_demoted, without
from alma.benefit.trials import Arm, Trial, decidable, is_withheld
from alma.benefit.tuning import TUNING
from alma.errors import NotFoundError, StorageError, ValidationError
from alma.model.common import same_name
from alma.model.governance import ANONYMOUS, Attribution, BenefitTrial
from alma.model.learning import (
    SIGNAL,
    VERIFIED_BY,
    Outcome,
    verified_weight,
)
from alma.model.query import And, Compare, In, Order, Predicate
from alma.model.scope import Scope
from alma.model.slice import MemorySlice
from alma.model.workspace import AgentState, SessionHandoff, SessionOutcome
from alma.storage.base import StorageBackend, Transaction
from alma.text.tokens import query_terms

_log = logging.getLogger("alma.benefit")

SIGNAL_WEIGHTS: dict[str, float] = {
    "test-results": 0.75,
    "exit-status": 0.5,
    "correction": 0.5,
    "handoff": 0.5,
    "conversation": 0.5,
    "thanks": 0.25,
    "retry": 0.25,
}
"""How much an observed signal counts where nothing was reported."""

_SAME_TASK = timedelta(hours=1)
_RETRY_AFTER = timedelta(minutes=2)
_OUTCOME_COMES = timedelta(hours=24)
_LEAST_OVERLAP, _SAME_WORDS = 0.5, 0.8
_RECENT = 200
_SUSPECTED = "suspected"
_MOST_TRIALS = 20_000
_HARM_IS_KNOWN_FOR = timedelta(minutes=10)
_MOST_SCOPES = 64
_NEWEST = (Order("created_at", "desc"), Order("id", "desc"))


class Observed(NamedTuple):
    """A signal about the outcome of a task, as `observe` stored it."""

    retrieval_id: str
    signal: str
    success: float
    weight: float


class BenefitLog:
    """Withholds lessons at random where that is configured, and credits outcomes to trials."""

    def __init__(self, storage: StorageBackend, withhold: float = 0.0, of: Mapping[str, float] | None = None) -> None:
        self._storage = storage
        self._withhold = _share(withhold)
        self._of = {same_name(agent): _share(share) for agent, share in (of or {}).items()}
        self._harmful: dict[Scope, tuple[datetime, Sequence[MemoryBenefit]]] = {}

    def share(self, agent: str) -> float:
        """The share of eligible lessons that is withheld from an agent."""
        return self._of.get(same_name(agent), self._withhold)

    @property
    def is_used(self) -> bool:
        """Whether lessons are withheld from any agent."""
        return self._withhold > 0 or any(self._of.values())

    # ------------------------------------------------------------------ before a task

    def drawn(
        self, found: MemorySlice, task: str, agent: str, project_id: str, *, known: Collection[str] = ()
    ) -> MemorySlice:
        """The slice without the lessons that this trial withholds, and with demoted ones as weak.

        The agent's session has the `known` ones already, so they are neither withheld nor measured.
        """
        found = with_demoted(found)
        share = self.share(agent)
        eligible = [each for each in eligible_in(found) if str(each.key) not in known] if share else []
        if not eligible:
            return found
        try:
            trial = self._storage.write(lambda tx: _opened(tx, task, agent, project_id, eligible, share))
        except StorageError as exc:
            # Without a log nothing may be withheld.
            _log.warning("nothing is withheld, because the trial was not stored", extra={"error": str(exc)})
            return found
        here = {str(each.key) for each in eligible}
        withheld = {key for key, arm in trial.arms.items() if key in here and not arm["shown"]}
        return replace(without(found, withheld), retrieval_id=trial.id)

    # ------------------------------------------------------------------ after a task

    def credit(self, outcome: Outcome, retrieval_id: str | None = None) -> str | None:
        """Credit an outcome to a trial: the named one, or that of this agent, task and time. Returns a note if the
        named one cannot take it. An outcome that was observed and not reported is stored as a signal.
        """
        if retrieval_id is None and not self.is_used:
            return None
        try:
            return self._storage.write(lambda tx: _credited(tx, outcome, retrieval_id))
        except StorageError as exc:
            _log.warning("an outcome was not credited", extra={"error": str(exc), "outcome_id": outcome.id})
            return "the outcome was stored, but not credited to the retrieved memories, because the store failed"

    def observe(
        self,
        signal: str,
        success: bool,
        agent: str,
        project_id: str,
        *,
        task: str | None = None,
        retrieval_id: str | None = None,
    ) -> Observed:
        """Store a signal about the outcome of a task beside its trial; it never replaces what was reported."""
        if signal not in SIGNAL_WEIGHTS:
            raise ValidationError("observe", "signal", signal, f"must be one of {', '.join(SIGNAL_WEIGHTS)}")
        if (task is None) == (retrieval_id is None):
            raise ValidationError("observe", "task", task, "or retrieval_id must be given, one of them")
        weight = SIGNAL_WEIGHTS[signal]

        def observe(tx: Transaction) -> str:
            scope = Scope(project_id=project_id, agent=agent)
            trial = _trial(tx, scope, clock.now(), _fingerprints(task or ""), retrieval_id, credited=True)
            if trial is None:
                raise NotFoundError("retrieval", retrieval_id or f"for the task {task!r}")
            tx.save(_with_signal(trial, signal, success=success))
            return trial.id

        return Observed(self._storage.write(observe), signal, float(success), weight)

    # ------------------------------------------------------------------ what is known

    def trials(self, scope: Scope, *, signals: bool = False, since: datetime | None = None) -> list[Trial]:
        """The trials of a scope whose outcome was reported; with `signals`, those with observed outcomes as well."""
        found = [_trial_of(row, signals=signals) for row in self._rows(scope, since)]
        return sorted(filter(None, found), key=lambda each: each.at)

    def counts(self, scope: Scope, since: datetime | None = None) -> dict[str, int]:
        """How many trials have which outcome: by what verified it, only observed, or none yet."""
        return _counted(self._rows(scope, since))

    def report(self, scope: Scope, *, signals: bool = False, since: datetime | None = None) -> BenefitReport:
        """What each memory and each group changes in the success of the newest tasks, up to 20,000 of them.

        With `signals`, tasks count of which an outcome was only observed, by the weight of the signals.
        """
        rows = self._rows(scope, since)
        trials = [trial for row in rows if (trial := _trial_of(row, signals=signals)) is not None]
        return report_of(self._storage, scope, trials, _counted(rows))

    def harmful(self, scope: Scope) -> Sequence[MemoryBenefit]:
        """The stored memories that harm and are not demoted, as they were known within the last ten minutes."""
        known = self._harmful.get(scope)
        if known is None or clock.now() - known[0] >= _HARM_IS_KNOWN_FOR:
            trials = decidable(self.trials(scope), TUNING.least_of_each)
            known = clock.now(), report_of(self._storage, scope, trials, {}).harmful
            if len(self._harmful) >= _MOST_SCOPES:
                self._harmful.clear()
            self._harmful[scope] = known
        return known[1]

    def _rows(self, scope: Scope, since: datetime | None) -> list[BenefitTrial]:
        where: list[Predicate] = [] if since is None else [Compare("created_at", "ge", since)]
        rows = self._storage.find(BenefitTrial, scope, And(*where), _NEWEST, _MOST_TRIALS)
        return _with_handoffs(self._storage, scope, rows)

    # ------------------------------------------------------------------ what follows

    def demote_harmful(
        self,
        scope: Scope,
        ids: Collection[str] | None = None,
        *,
        dry_run: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> Sequence[MemoryBenefit]:
        """Demote the memories that harm by reported outcomes, all or these; retrieval keeps them as weak, so prompts
        lack them.

        The numbers are stored in their metadata. `reinstate` undoes it.
        """
        self._harmful.clear()
        harmful = [each for each in self.report(scope).harmful if ids is None or each.memory_id in ids]
        return demoted(self._storage, scope, harmful, is_eligible, by, dry_run=dry_run)

    def maintain(self, *, dry_run: bool = False, by: Attribution = ANONYMOUS) -> int:
        """Demote what harms in each project; returns how many memories that were.

        From then on, what is suspected to harm is withheld from half of the tasks, until that is clear.
        """
        projects = {name for (name,) in self._storage.values(BenefitTrial, ("project_id",), Scope.everywhere())}
        count = 0
        for project_id in sorted(projects):
            scope = Scope(project_id=project_id)
            report = self.report(scope)
            count += len(demoted(self._storage, scope, report.harmful, is_eligible, by, dry_run=dry_run))
            if not dry_run:
                self._note_suspects(project_id, report, by)
        return count

    def _note_suspects(self, project_id: str, report: BenefitReport, by: Attribution) -> None:
        key = _suspects_of(project_id)
        state = {_SUSPECTED: [each.memory_id for each in report.memories if each.uplift.is_suspected]}

        def note(tx: Transaction) -> None:
            stored = tx.lock(AgentState, [key], Scope.everywhere())
            if not stored or stored[0].state_data != state:
                tx.save(AgentState(id=key, agent_id=key, state_data=state))

        self._storage.write(note, by)

    def reinstate(self, kind: str, ids: Collection[str], scope: Scope, by: Attribution = ANONYMOUS) -> list[str]:
        """Use demoted memories again, and measure them anew from now on; returns the ids of those that were demoted."""
        self._harmful.clear()
        return reinstated(self._storage, scope, kind, ids, by)


def _share(given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 0.5:
        raise ValidationError("benefit", "withhold", given, "must be a share from 0 to 0.5")
    return float(given)


# ---------------------------------------------------------------------- rows


def _fingerprints(task: str) -> tuple[str, ...]:
    """Fingerprints of the words of a task."""
    words = query_terms(task)
    return tuple(sorted({blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest() for word in words}))


def is_same_task(one: str, other: str) -> bool:
    """Whether two texts name the same task, in nearly the same words."""
    return _overlap(_fingerprints(one), _fingerprints(other)) >= _SAME_WORDS


def _opened(tx: Transaction, task: str, agent: str, project_id: str, eligible: list[Any], share: float) -> BenefitTrial:
    """The trial of this task: a new one, or the one that waits for its outcome, so that repeated retrievals for a task
    withhold the same.
    """
    words, scope = _fingerprints(task), Scope(project_id=project_id, agent=agent)
    noted = tx.get(AgentState, _suspects_of(project_id), Scope.everywhere())
    suspected = set() if noted is None else {*noted.state_data[_SUSPECTED]}
    where = Compare("created_at", "ge", clock.now() - _SAME_TASK)
    recent = tx.find(BenefitTrial, scope, where, _NEWEST, _RECENT)
    same = (each for each in recent if each.success is None and each.task_terms == words)
    trial = next(same, None) or BenefitTrial(
        agent=agent, project_id=project_id, task_terms=words, created_at=clock.now()
    )
    arms = dict(trial.arms)
    for each in eligible:
        key = str(each.key)
        if key not in arms:
            own = max(share, TUNING.suspected_share) if key in suspected else share
            shown = not is_withheld(trial.id, key, own)
            arms[key] = {"kind": each.spec.kind, "shown": shown, "propensity": 1.0 - own}
    opened = trial.replace(arms=arms)
    if clock.now() - trial.created_at >= _RETRY_AFTER:
        opened = _with_signal(opened, "retry", success=False)
    if opened != trial or not trial.arms:
        tx.save(opened)
    return opened


def _suspects_of(project_id: str) -> str:
    """The id of the state that names the suspected memories of a project."""
    return f"benefit:{blake2b(project_id.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _trial(
    tx: Transaction,
    scope: Scope,
    at: datetime,
    words: tuple[str, ...],
    retrieval_id: str | None,
    *,
    credited: bool = False,
) -> BenefitTrial | None:
    """The named trial, or the one with the most similar task of the last day."""
    if retrieval_id is not None:
        return next(iter(tx.lock(BenefitTrial, [retrieval_id], scope)), None)
    recent = tx.find(BenefitTrial, scope, Compare("created_at", "ge", at - _OUTCOME_COMES), _NEWEST, _RECENT)
    waiting = [each for each in recent if credited or each.success is None]
    best = max(waiting, key=lambda each: _overlap(each.task_terms, words), default=None)
    if best is None or _overlap(best.task_terms, words) < _LEAST_OVERLAP:
        return None
    return next(iter(tx.lock(BenefitTrial, [best.id], scope)), None)


def _overlap(one: Collection[str], other: Collection[str]) -> float:
    every = {*one, *other}
    return len({*one} & {*other}) / len(every) if every else 0.0


def _credited(tx: Transaction, outcome: Outcome, retrieval_id: str | None) -> str | None:
    scope = Scope(project_id=outcome.project_id, agent=outcome.agent)
    trial = _trial(tx, scope, clock.now(), _fingerprints(outcome.task_description), retrieval_id)
    if trial is None:
        if retrieval_id is None:
            return None
        return f"nothing was credited, because {outcome.agent} has no retrieval {retrieval_id!r} in this project"
    signal, verified_by = outcome.metadata.get(SIGNAL), outcome.metadata.get(VERIFIED_BY)
    if retrieval_id is None and signal is not None:
        if signal in SIGNAL_WEIGHTS:
            tx.save(_with_signal(trial, str(signal), success=outcome.success))
        return None
    if trial.success is not None and verified_weight(verified_by) <= verified_weight(trial.verified_by):
        return f"nothing was credited, because the retrieval {trial.id!r} has an outcome already"
    tx.save(
        trial.replace(
            outcome_id=outcome.id,
            success=outcome.success,
            verified_by=verified_by if isinstance(verified_by, str) else None,
            credited_at=clock.now(),
        )
    )
    return None


def _with_signal(trial: BenefitTrial, signal: str, *, success: bool, at: datetime | None = None) -> BenefitTrial:
    """The trial with a signal; a later one of the same name takes its place."""
    seen = {"success": success, "at": (at or clock.now()).isoformat()}
    return trial.replace(signals={**trial.signals, signal: seen})


def _with_handoffs(storage: StorageBackend, scope: Scope, rows: list[BenefitTrial]) -> list[BenefitTrial]:
    """The rows, given newest first, oldest first, with handoffs as signals of the last task before them."""
    if not rows:
        return rows
    told = And(
        In("last_outcome", [str(SessionOutcome.SUCCESS), str(SessionOutcome.FAILURE)]),
        Compare("created_at", "ge", rows[-1].created_at),
    )
    made = rows[::-1]
    begun = [row.created_at for row in made]
    for handoff in storage.find(SessionHandoff, scope, told):
        spent = timedelta(milliseconds=handoff.duration_ms) if handoff.duration_ms else _OUTCOME_COMES
        first, end = bisect_left(begun, handoff.created_at - spent), bisect_right(begun, handoff.created_at)
        agent = same_name(handoff.agent)
        last = next(
            (number for number in range(end - 1, first - 1, -1) if same_name(made[number].agent) == agent), None
        )
        if last is not None:
            success = handoff.last_outcome == SessionOutcome.SUCCESS
            made[last] = _with_signal(made[last], "handoff", success=success, at=handoff.created_at)
    return made


def _counted(rows: Iterable[BenefitTrial]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for row in rows:
        how = row.verified_by or "not stated"
        name = how if row.success is not None else "observed only" if row.signals else "no outcome yet"
        counted[name] = counted.get(name, 0) + 1
    return counted


def _trial_of(row: BenefitTrial, *, signals: bool) -> Trial | None:
    """The trial for the estimates; None without an outcome."""
    success: float
    if row.success is not None:
        success, weight = float(row.success), verified_weight(row.verified_by)
    elif signals and row.signals:
        weights = {name: SIGNAL_WEIGHTS.get(name, 0.0) for name in row.signals}
        weight = max(weights.values())
        total = sum(weights.values())
        success = sum(weights[name] * bool(each["success"]) for name, each in row.signals.items()) / (total or 1.0)
    else:
        return None
    arms = {
        key: Arm(arm["shown"], arm["propensity"], (arm["kind"], f"agent {row.agent}")) for key, arm in row.arms.items()
    }
    return Trial(row.created_at, success, arms, weight) if weight else None
