"""Signals about tasks in the conversations of frameworks: what tools report, and what the user says next."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from alma.benefit.signals import EXIT_STATUS, Signal, reaction_to
from alma.errors import ALMAError, NotFoundError

if TYPE_CHECKING:
    from alma.core import ALMA

_log = logging.getLogger("alma.integration")


class Told(NamedTuple):
    """The prompt of a user, or whether the call of a tool succeeded."""

    prompt: str = ""
    succeeded: bool | None = None


class TaskSignals:
    """Stores what a conversation tells about the tasks that an agent retrieved memories for.

    Nothing is stored unless the benefit of memories is measured and the agent is known. The task is what the user said
    last.
    """

    def __init__(self, alma: ALMA, agent: str | None) -> None:
        self._alma = alma
        self._agent = agent

    @property
    def are_used(self) -> bool:
        """Whether signals are stored at all."""
        return self._agent is not None and self._alma.benefit.is_used

    def observe(self, told: Iterable[Told], task: str) -> str:
        """Store the signals in what was told after a task; returns the task at the end."""
        for each in told if self.are_used else ():
            signal = None
            if task and each.prompt:
                signal = reaction_to(task, each.prompt)
            elif task and each.succeeded is not None:
                signal = Signal(EXIT_STATUS, each.succeeded)
            if signal is not None:
                self._note(signal, task)
            task = each.prompt or task
        return task

    def _note(self, signal: Signal, task: str) -> None:
        try:
            self._alma.benefit.observe(
                signal.name, signal.success, agent=str(self._agent), project_id=self._alma.project_id, task=task
            )
        except NotFoundError:
            pass  # The agent retrieved nothing for this task.
        except ALMAError as exc:
            # A conversation is stored without its signals.
            _log.warning("a signal was not stored", extra={"error": str(exc)})
