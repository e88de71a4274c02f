"""Maturity: how far a lesson is confirmed by distinct tasks, sessions and verifiers.

It is computed from the outcomes that are stored, oldest first, and is kept nowhere. Each state is left at another
success rate than it is entered at, so that one more outcome does not turn it back and forth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from alma.learning.burst_damping import Sessions
from alma.model.learning import VERIFIED_BY, AntiPattern, Heuristic, Outcome, demotion_of
from alma.model.query import Compare, In, Order
from alma.model.scope import Scope
from alma.model.slice import ESTABLISHED_OUTCOMES, MemorySlice
from alma.storage.base import StorageBackend
from alma.text.canonical import canonical_words

SELF_REPORT = "self-report"


class Maturity(StrEnum):
    """How far a lesson is confirmed."""

    PROVISIONAL = "provisional"
    CORROBORATED = "corroborated"
    ESTABLISHED = "established"
    CONTESTED = "contested"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class MaturityTuning:
    """The thresholds of the states; the rate is of recent outcomes, of which each counts `keep` times the next."""

    keep: float = 0.9
    corroborated_rate: float = 0.65
    established_rate: float = 0.75
    contested_below: float = 0.5
    retired_below: float = 0.25
    corroborated_sources: int = 2
    established_tasks: int = 3
    established_sessions: int = 2
    unverified_sessions: int = 4
    failures: int = 2


TUNING = MaturityTuning()


class Observation(NamedTuple):
    """An outcome of a lesson; two with the same task, session or verifier confirm it less than two distinct ones."""

    success: bool
    task: str
    session: str
    verifier: str = SELF_REPORT


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The confirmations of a lesson, and its state."""

    state: Maturity = Maturity.PROVISIONAL
    successes: int = 0
    failures: int = 0
    tasks: frozenset[str] = field(default=frozenset(), repr=False)
    sessions: frozenset[str] = field(default=frozenset(), repr=False)
    verifiers: frozenset[str] = frozenset()
    failed_sessions: frozenset[str] = field(default=frozenset(), repr=False)
    won: float = 0.0
    lost: float = 0.0

    @property
    def rate(self) -> float:
        """The success rate of recent outcomes, with one success and one failure as the prior."""
        return (self.won + 1) / (self.won + self.lost + 2)

    def __str__(self) -> str:
        parts = (
            _number(len(self.tasks), "task"),
            _number(len(self.sessions), "session"),
            _number(len(self.verifiers), "verifier"),
        )
        return f"{self.state}: {self.successes} of {self.successes + self.failures} succeeded, in {', '.join(parts)}"

    def after(self, seen: Observation, tuning: MaturityTuning = TUNING) -> Confirmation:
        """The confirmation after one more outcome."""
        won, lost = self.won * tuning.keep + seen.success, self.lost * tuning.keep + (not seen.success)
        counted = replace(self, won=won, lost=lost)
        if seen.success:
            counted = replace(
                counted,
                successes=self.successes + 1,
                tasks=self.tasks | {seen.task},
                sessions=self.sessions | {seen.session},
                verifiers=self.verifiers | {seen.verifier},
            )
        else:
            counted = replace(
                counted, failures=self.failures + 1, failed_sessions=self.failed_sessions | {seen.session}
            )
        return replace(counted, state=_next(counted, tuning))


def confirmation(
    observations: Iterable[Observation], unstored: Confirmation | None = None, tuning: MaturityTuning = TUNING
) -> Confirmation:
    """What observations, oldest first, confirm; `unstored` is what was confirmed before them."""
    known = unstored or Confirmation()
    for seen in observations:
        known = known.after(seen, tuning)
    return known


def _next(known: Confirmation, tuning: MaturityTuning) -> Maturity:
    """The state after an outcome; from one outcome to the next, a lesson takes at most one step."""
    match known.state:
        case Maturity.PROVISIONAL | Maturity.CORROBORATED | Maturity.ESTABLISHED:
            if known.rate < tuning.contested_below and known.failures >= tuning.failures:
                return Maturity.CONTESTED
            return _confirmed(known, tuning)
        case Maturity.CONTESTED:
            if known.rate >= tuning.corroborated_rate:
                return Maturity.CORROBORATED
            far = known.rate < tuning.retired_below and len(known.failed_sessions) >= tuning.corroborated_sources
            return Maturity.RETIRED if far else Maturity.CONTESTED
        case Maturity.RETIRED:
            return Maturity.CONTESTED if known.rate >= tuning.contested_below else Maturity.RETIRED


def _confirmed(known: Confirmation, tuning: MaturityTuning) -> Maturity:
    """A higher state where it is reached, otherwise the one before."""
    if known.state is Maturity.ESTABLISHED:
        return known.state
    if _is_established(known, tuning):
        return Maturity.ESTABLISHED
    sources = max(len(known.tasks), len(known.sessions))
    enough = sources >= tuning.corroborated_sources and known.rate >= tuning.corroborated_rate
    return Maturity.CORROBORATED if enough else known.state


def _is_established(known: Confirmation, tuning: MaturityTuning) -> bool:
    if known.rate < tuning.established_rate or len(known.tasks) < tuning.established_tasks:
        return False
    # A self-report of one agent is the weakest verification, so it takes more sessions.
    verified = len(known.verifiers) > 1 or any(not each.startswith(SELF_REPORT) for each in known.verifiers)
    return len(known.sessions) >= (tuning.established_sessions if verified else tuning.unverified_sessions)


# ---------------------------------------------------------------------- from the store

_FIELDS = ("lesson_id", "success", "task_description", "timestamp", "agent", "metadata")
_OLDEST_FIRST = (Order("timestamp"), Order("id"))
_MOST_LESSONS, _MOST_WARNINGS, _MOST_READ = 8, 5, 40
_MOST_CACHED = 1_000


def confirmations(storage: StorageBackend, rules: Sequence[Heuristic]) -> dict[str, Confirmation]:
    """The confirmations of each of these rules, by its id."""
    if not rules:
        return {}
    projects = {rule.project_id for rule in rules}
    rows = [
        row
        for project in projects
        for row in storage.values(
            Outcome,
            _FIELDS,
            Scope(project_id=project),
            In("lesson_id", [rule.id for rule in rules if rule.project_id == project]),
            _OLDEST_FIRST,
        )
    ]
    seen = _observations(rows)
    return {rule.id: confirmation(seen[rule.id], _unstored(rule, len(seen[rule.id]))) for rule in rules}


def confirmation_of(storage: StorageBackend, rule: Heuristic) -> Confirmation:
    """The confirmations of a rule."""
    return confirmations(storage, [rule])[rule.id]


def _observations(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = defaultdict(list)
    sessions = Sessions()
    for lesson, success, task, at, agent, metadata in rows:
        session = _session(metadata, sessions, lesson, agent, at)
        verifier = f"{metadata.get(VERIFIED_BY) or SELF_REPORT} of {agent}"
        found[lesson].append(Observation(bool(success), " ".join(canonical_words(task)), session, verifier))
    return found


def _session(metadata: Mapping[str, Any], sessions: Sessions, lesson: str, agent: str, moment: datetime | None) -> str:
    """The session that the host named; otherwise what one agent reports within an hour is one session."""
    number = sessions.number((lesson, agent), moment)
    named = metadata.get("session")
    return f"{agent} {named if isinstance(named, str) and named else number}"


def _unstored(rule: Heuristic, stored: int) -> Confirmation | None:
    """What outcomes confirm that were forgotten since: the rule has their counts, but not their tasks and sessions."""
    gone = rule.occurrence_count - stored
    if gone <= 0:
        return None
    share = rule.success_rate
    state = (
        Maturity.CORROBORATED
        if gone >= TUNING.corroborated_sources and share >= TUNING.corroborated_rate
        else Maturity.PROVISIONAL
    )
    return Confirmation(state, won=share * gone, lost=(1 - share) * gone)


class MaturityNotes:
    """Notes in a slice how far its rules are confirmed; what was read is cached until the store changes."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._cached: tuple[str, dict[str, str]] = ("", {})

    def added_to(self, found: MemorySlice) -> MemorySlice:
        """The slice with a note for each rule that is not provisional."""
        rules = [rule for rule in found.heuristics if rule.occurrence_count > 1]
        notes = self._notes(rules) if rules else {}
        explanations = {
            key: replace(each, notes=(*each.notes, notes[each.id]))
            if each.kind == Heuristic.spec.kind and notes.get(each.id)
            else each
            for key, each in found.explanations.items()
        }
        return replace(found, explanations=explanations) if notes else found

    def _notes(self, rules: Sequence[Heuristic]) -> Mapping[str, str]:
        generation = self._storage.generation()
        cached_for, known = self._cached
        if cached_for != generation or len(known) > _MOST_CACHED:
            known = {}
        missing = [rule for rule in rules if rule.id not in known]
        if missing:
            read = confirmations(self._storage, missing).items()
            known = {**known, **{key: "" if each.state is Maturity.PROVISIONAL else str(each) for key, each in read}}
            self._cached = generation, known
        return known


def established(storage: StorageBackend, scope: Scope, most: int | None = None) -> list[tuple[Heuristic, Confirmation]]:
    """The established rules of a scope with what confirms them, surest first."""
    often = Compare("occurrence_count", "ge", ESTABLISHED_OUTCOMES)
    surest = (Order("confidence", "desc"), Order("id"))
    rules = storage.find(Heuristic, scope, often, surest, None if most is None else _MOST_READ)
    rules = [rule for rule in rules if demotion_of(rule) is None]
    known = confirmations(storage, rules)
    found = [(rule, known[rule.id]) for rule in rules if known[rule.id].state is Maturity.ESTABLISHED]
    return found[:most]


def standing_lessons(storage: StorageBackend, scope: Scope) -> tuple[tuple[Heuristic, ...], tuple[AntiPattern, ...]]:
    """The established rules and the repeated warnings of a scope, a few of each."""
    rules = tuple(rule for rule, _ in established(storage, scope, _MOST_LESSONS))
    often = Compare("occurrence_count", "ge", ESTABLISHED_OUTCOMES)
    warnings = storage.find(AntiPattern, scope, often, (Order("last_seen", "desc"),), _MOST_WARNINGS)
    return rules, tuple(warnings)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
