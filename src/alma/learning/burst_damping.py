"""Damping: how much a report counts beside others that the same agent gave within the hour.

Who reports chooses the words and how often to say them, but neither its own name nor the time. So repetition is told by
these: n reports of one agent on one task within an hour count as 1 + 1/2 + … + 1/n, and reports on other tasks, at
other hours or by other agents in full. The tasks that another agent names are its own choice as well: all it reports of
a strategy within an hour counts together like that, and as a quarter of a report where others report something, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from alma.model.learning import SESSION_LENGTH, Belief

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# What another agent reports of a strategy within an hour counts as this many reports beside those of others.
_SESSION_OF_ANOTHER = 0.25
# So much do others report, at least: one report on a task that shares most of its words with this one.
_FULLY_CONTESTED = 0.25


class Reported(Protocol):
    """What a report tells that counts here; one of a single agent about a single strategy."""

    @property
    def task_description(self) -> str: ...
    @property
    def timestamp(self) -> datetime | None: ...


class Sessions:
    """Numbers sessions: an hour of one agent, or of whatever else the key is, from its first report in it on."""

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
    """What each report of one agent about one strategy counts."""
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
    """What each report of several agents counts for one of them; the arrays have an entry for each report.

    `groups` are the sessions of an agent at one task with one strategy, `sessions` those of an agent at any task;
    `similarity` is how alike the task of each report is to the one that is asked about.
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
    """What each member of a group counts, and how many members its group has."""
    _, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    harmonic = np.cumsum(1 / np.arange(1, sizes.max(initial=0) + 1))
    return (harmonic[sizes - 1] / sizes)[place], sizes[place]


def limited_by_hours(belief: Belief, began: datetime | None, last: datetime | None) -> Belief:
    """What a lesson of another agent is worth: no more than one report for each hour in which it was learned."""
    hours = (last - began) / SESSION_LENGTH if began is not None and last is not None else 0.0
    most = 1.0 + max(0.0, hours)
    share = min(1.0, most / belief.evidence) if belief.evidence else 1.0
    return Belief(belief.weight_for * share, belief.weight_against * share)
