"""Packing: the best memories of each kind become a slice, with the reasons for what is in it and what is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from alma.model.record import Record
from alma.model.slice import MemorySlice, by_id
from alma.retrieval.deduplication import DUPLICATE, Duplicates
from alma.retrieval.explain import DropReason, WhyNot
from alma.retrieval.router import RetrievalRequest, SearchRequest, Target, is_instruction
from alma.retrieval.scoring import ScoredRecord
from alma.storage.base import StorageBackend

_AHEAD = 1e-6


@dataclass(slots=True)
class Results:
    """The chosen records by kind, best first, and why every other candidate was dropped.

    `changes_at` is when the next instruction comes into force.
    """

    storage: StorageBackend
    targets: Sequence[Target]
    chosen: dict[type[Record], list[ScoredRecord]] = field(default_factory=lambda: defaultdict(list))
    instructions: list[ScoredRecord] = field(default_factory=list)
    dropped: dict[str, DropReason] = field(default_factory=dict)
    duplicates: Duplicates = field(default_factory=Duplicates)
    changes_at: datetime | None = None

    def drop(self, record_id: str, stage: str, sentence: str, *facts: object) -> None:
        self.dropped.setdefault(record_id, DropReason(stage, sentence, facts))

    @property
    def found_something(self) -> bool:
        """Whether anything is in it that would not be included for any other query as well."""
        every = (each for items in (*self.chosen.values(), self.instructions) for each in items)
        return any(each.found_by != ("rule",) for each in every)

    def join(self, other: Results, top_k: int) -> None:
        """Merge the results of a second search for the same task."""
        self.dropped = {**self.dropped, **other.dropped}
        if other.changes_at is not None:
            self.changes_at = min(other.changes_at, self.changes_at or other.changes_at)
        for cls, items in other.chosen.items():
            self.chosen[cls] = self._best_of(self.chosen[cls], items, top_k)
        self.instructions = self._best_of(self.instructions, other.instructions, 0)

    def _best_of(self, ones: Sequence[ScoredRecord], others: Sequence[ScoredRecord], top_k: int) -> list[ScoredRecord]:
        best: dict[str, ScoredRecord] = {}
        for scored in sorted((*ones, *others), key=best_first):
            reason = self.dropped.get(scored.key)
            # Of two duplicates each search may have kept another one.
            if reason is None or reason.stage != DUPLICATE or reason.facts[0] not in best:
                best.setdefault(scored.key, scored)
        found = list(best.values())
        most = max(top_k, len(ones), len(others))
        self._drop_behind(found[most:], most)
        return found[:most]

    def pack(self, by_score: Iterable[ScoredRecord], request: SearchRequest, min_score: float) -> list[ScoredRecord]:
        """The best `top_k`; instructions, which are included anyway, do not take their places."""
        instructions: list[ScoredRecord] = []
        others: list[ScoredRecord] = []
        always = any(target.always for target in self.targets)
        for scored in by_score:
            if scored.score < min_score:
                self.drop(scored.key, "score", "its score of {:.3f} is below {:g}", scored.score, min_score)
            else:
                (instructions if always and is_instruction(scored.record, request) else others).append(scored)
        _lift_strongest(others, request.top_k)
        others.sort(key=best_first)
        self._drop_behind(others[request.top_k :], request.top_k)
        return sorted((*others[: request.top_k], *instructions), key=best_first)

    def _drop_behind(self, items: Iterable[ScoredRecord], most: int) -> None:
        for scored in items:
            self.drop(scored.key, "rank", "{:,} of its kind have a higher score than {:.3f}", most, scored.score)

    def to_slice(self, request: SearchRequest, degraded: str) -> MemorySlice:
        every = [scored for items in (*self.chosen.values(), self.instructions) for scored in items]
        return MemorySlice.of(
            {cls: [scored.record for scored in items] for cls, items in self.chosen.items()},
            instructions=tuple(scored.record for scored in self.instructions),
            query=request.query,
            agent=request.agent,
            degraded=degraded,
            weak=isinstance(request, RetrievalRequest) and request.weak,
            explanations=by_id(scored.explanation() for scored in every),
            _why_not=WhyNot(self.storage, self.targets, request, dropped=self.dropped),
        )


def best_first(scored: ScoredRecord) -> tuple[float, str]:
    """The order of results."""
    return -scored.score, scored.key


def _lift_strongest(by_score: Sequence[ScoredRecord], top_k: int) -> None:
    """Let the nearest memory and the best match by words be among the first `top_k`; at most half of those.

    Many similar memories, each with a little more in its favour, would leave out the one that is meant.
    """
    current = [each for each in by_score if not each.notes and "overruled" not in each.terms]
    sources = (lambda each: each.similarity or 0.0, lambda each: each.terms.get("words", 0.0))
    strongest = [max(current, key=source) for source in sources if any(map(source, current))]
    behind = {each.key for each in by_score[top_k:]}
    late = list({each.key: each for each in strongest if each.key in behind}.values())[: top_k // 2]
    if not late:
        return
    kept = [each for each in strongest if each.key not in behind] + late
    keys = {each.key for each in kept}
    replaced = [each for each in by_score[:top_k] if each.key not in keys][-len(late)].score
    for each in kept:
        if each.score <= replaced:
            each.terms["strongest"] = replaced - each.score + _AHEAD
