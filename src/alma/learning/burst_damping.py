"""Burst damping: the weight of a report among others of the same agent within the hour.

An agent chooses its words and how often it reports, but neither its name nor the time. So n reports of one agent on one
task within an hour count as 1 + 1/2 + … + 1/n; reports on other tasks, at other hours or by other agents count in full.
Another agent also chooses its tasks: all that it reports of a strategy within an hour counts together like that, and as
a quarter of a report where others report something as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from alma.lazy import lazy_module
from alma.model.learning import SESSION_LENGTH, Belief

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# The reports of another agent on a strategy within an hour count as this many beside those of others.
_SESSION_OF_ANOTHER = 0.25
# With this weight of other reports: one report on a task that shares most of its words with this one.
_FULLY_CONTESTED = 0.25


class Reported(Protocol):
    """The fields of a report that determine its weight."""

    @property
    def task_description(self) -> str: ...
    @property
    def timestamp(self) -> datetime | None: ...


class Sessions:
    """Numbers sessions: an hour of one agent, or of another key, from the first report in it."""

    def __init__(self) -> None:
        self._open: dict[Hashable, tuple[int, datetime | None]] = {}
        self._count = 0

    def number(self, key: Hashable, moment: datetime | None) -> int:
        """The session that a report belongs to; reports come oldest first."""
        session, began = self._open.get(key, (-1, None))
        if session < 0 or _is_over(began, moment):
            session, self._count = self._count, self._count + 1
            self._open[key] = session, moment
        return session


def _is_over(began: datetime | None, moment: datetime | None) -> bool:
    return began is not None and moment is not None and abs(moment - began) > SESSION_LENGTH


def report_weights(reports: Sequence[Reported]) -> list[float]:
    """The weight of each report of one agent about one strategy."""
    if len(reports) == 1:
        return [1.0]
    order = sorted(range(len(reports)), key=lambda i: reports[i].timestamp or _LONG_AGO)
    sessions, numbers = Sessions(), [0] * len(reports)
    for i in order:
        numbers[i] = sessions.number(reports[i].task_description, reports[i].timestamp)
    counts = [0] * len(reports)
    for number in numbers:
        counts[number] += 1
    harmonic = [0.0, *accumulate(1 / n for n in range(1, max(counts, default=0) + 1))]
    return [harmonic[counts[number]] / counts[number] for number in numbers]


def weights_for(reader: int | None, authors: Any, groups: Any, sessions: Any, strategies: Any, similarity: Any) -> Any:
    """The weight of each report of several agents for one of them; the arrays have an element for each report.

    `groups` are the sessions of an agent at one task with one strategy, `sessions` those of an agent at any task;
    `similarity` is that of the task of each report to the task in question.
    """
    own, _ = _shared(groups)
    foreign = authors != reader
    if reader is None or not foreign.any():
        return own
    together, counts = _shared(sessions * (int(strategies.max()) + 1) + strategies)
    weights = np.where(foreign, together, own)
    near = np.bincount(authors, weights=weights * similarity)
    contested = np.minimum(1, (near.sum() - near) / _FULLY_CONTESTED)[authors]
    beside_others = (1 - contested) * together + contested * _SESSION_OF_ANOTHER / counts
    return np.where(foreign, beside_others, own)


def _shared(groups: Any) -> tuple[Any, Any]:
    """The weight of each member of a group, and the size of its group."""
    _, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    harmonic = np.cumsum(1 / np.arange(1, sizes.max(initial=0) + 1))
    return (harmonic[sizes - 1] / sizes)[place], sizes[place]


def limited_by_hours(belief: Belief, began: datetime | None, last: datetime | None) -> Belief:
    """The belief in a lesson of another agent: at most one report for each hour in which it was learned."""
    hours = (last - began) / SESSION_LENGTH if began is not None and last is not None else 0.0
    most = 1.0 + max(0.0, hours)
    share = min(1.0, most / belief.evidence) if belief.evidence else 1.0
    return Belief(belief.weight_for * share, belief.weight_against * share)
