"""Experience: what an agent went through and what was made of it, held until something is written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from alma.learning.evidence import Evidence, Gathered, gathered
from alma.learning.remembered import Lesson, lessons_of
from alma.learning.weighing import Weighing
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

MOST_SCOPES = 256
MOST_TASKS_TOGETHER = 16_000
"""Of so many agents, and of so many different tasks together, experience is held: a task takes 16 KB."""


@dataclass(frozen=True)
class Experience:
    """The outcomes of a scope and its rules and warnings, as one state of the store shows them."""

    generation: str
    gathered: Gathered
    lessons: Sequence[Lesson]
    weighing: Weighing = field(default_factory=Weighing)

    @property
    def evidence(self) -> Evidence:
        return self.gathered.evidence


class ExperienceReader:
    """Reads the experience of a scope, again once anything was committed; for one thread at a time."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._held: OrderedDict[Scope, Experience] = OrderedDict()

    def __len__(self) -> int:
        """Of how many scopes experience is held."""
        return len(self._held)

    def read(self, scope: Scope) -> Experience:
        """What the newest state of the store shows, whichever process wrote it."""
        held = self._held.get(scope)
        if held is None or held.generation != self._storage.generation():
            held = self._held[scope] = self._read(scope, held)
            self._let_go()
        self._held.move_to_end(scope)
        return held

    def _read(self, scope: Scope, held: Experience | None) -> Experience:
        with self._storage.reading() as (_, generation):
            lessons = lessons_of(self._storage, scope)
            if held is None:
                return Experience(generation, gathered(self._storage, scope), lessons)
            return Experience(generation, gathered(self._storage, scope, held.gathered), lessons, held.weighing)

    def _let_go(self) -> None:
        """Forget what was not asked for longest, until the rest is few enough; the newest is always kept."""
        tasks = sum(len(held.evidence.task_rows) for held in self._held.values())
        while len(self._held) > 1 and (len(self._held) > MOST_SCOPES or tasks > MOST_TASKS_TOGETHER):
            _, gone = self._held.popitem(last=False)
            tasks -= len(gone.evidence.task_rows)
