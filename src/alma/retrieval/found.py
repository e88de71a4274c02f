"""What is found for a task, and why everything else is not handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from alma.model.record import Record
from alma.model.slice import MemorySlice, by_id
from alma.retrieval.absent import Absent, Note
from alma.retrieval.copies import Crowd
from alma.retrieval.ranked import Ranked
from alma.retrieval.router import Asked, Request, Target
from alma.storage.base import StorageBackend

REPETITION = "repetition"
"""The stage at which a memory is dropped that says the same as a better one."""


@dataclass(slots=True)
class Ranking:
    """What is handed over, by kind and best first, and why everything else is not."""

    storage: StorageBackend
    targets: Sequence[Target]
    chosen: dict[type[Record], list[Ranked]] = field(default_factory=lambda: defaultdict(list))
    standing: list[Ranked] = field(default_factory=list)
    dropped: dict[str, Note] = field(default_factory=dict)
    crowd: Crowd = field(default_factory=Crowd)
    # When the next instruction begins to hold, where one is waiting.
    changes_at: datetime | None = None

    @property
    def by_rule(self) -> list[Target]:
        """Where that is which comes with every task."""
        return [target for target in self.targets if target.by_rule]

    def drop(self, record_id: str, stage: str, sentence: str, *facts: object) -> None:
        self.dropped.setdefault(record_id, Note(stage, sentence, facts))

    def expect_change(self, moment: datetime | None) -> None:
        """Something else will be handed over from this moment on, if one is given."""
        if moment is not None:
            self.changes_at = min(moment, self.changes_at or moment)

    @property
    def found_something(self) -> bool:
        """Whether anything is handed over for this very task."""
        return any(not ranked.only_by_rule for items in (*self.chosen.values(), self.standing) for ranked in items)

    def join(self, other: Ranking | None, top_k: int) -> None:
        """The best of both, where the same was looked for in two ways."""
        if other is None:
            return
        self.dropped = {**self.dropped, **other.dropped}
        self.expect_change(other.changes_at)
        for cls, items in other.chosen.items():
            self.chosen[cls] = self._best_of_both(self.chosen[cls], items, top_k)
        self.standing = self._best_of_both(self.standing, other.standing, 0)

    def _best_of_both(self, ones: Sequence[Ranked], others: Sequence[Ranked], top_k: int) -> list[Ranked]:
        """What two looks found, each with the better of its scores, and no more than either may have."""
        best: dict[str, Ranked] = {}
        for ranked in sorted((*ones, *others), key=lambda ranked: (-ranked.score, ranked.key)):
            note = self.dropped.get(ranked.key)
            # Of two that say the same, each look may have kept another one.
            if note is None or note.stage != REPETITION or note.facts[0] not in best:
                best.setdefault(ranked.key, ranked)
        found = list(best.values())
        most = max(top_k, len(ones), len(others))
        for ranked in found[most:]:
            self.drop(ranked.key, "rank", "{:,} of its kind have a higher score than {:.3f}", most, ranked.score)
        return found[:most]

    def to_slice(self, request: Asked, degraded: str) -> MemorySlice:
        everything = [ranked for items in (*self.chosen.values(), self.standing) for ranked in items]
        return MemorySlice.of(
            {cls: [ranked.record for ranked in items] for cls, items in self.chosen.items()},
            instructions=tuple(ranked.record for ranked in self.standing),
            query=request.query,
            agent=request.agent,
            degraded=degraded,
            weak=isinstance(request, Request) and request.weak,
            explanations=by_id(ranked.explained() for ranked in everything),
            _why_not=Absent(self.storage, self.targets, request, dropped=self.dropped),
        )
