"""The scorer: what a memory is worth for one request, term by term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.slice import Strength
from alma.retrieval.asking import answering
from alma.retrieval.length import given_back
from alma.retrieval.ranked import Ranked
from alma.retrieval.relevance import Fitting
from alma.retrieval.router import Asked
from alma.retrieval.scoring import ScoringWeights, factors, score_terms
from alma.text.timeexpr import TimeWindow


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores records for one request."""

    request: Asked
    weights: ScoringWeights
    memory_weights: ScoringWeights
    half_life_days: float
    evidence_half_life_days: float
    wants_time: bool = False
    by_passages: bool = True
    window: TimeWindow | None = None

    def fitting(self, found: Fitting, strength: Strength) -> Ranked:
        relevance = found.candidate.relevance
        if isinstance(found.record, Memory):
            relevance = relevance | answering(found.record.content, found.said, relevance, wants_time=self.wants_time)
            if self.by_passages:
                relevance |= given_back(len(found.record.text()), found.gathered)
        ranked = self.scored(found.record, relevance, found.candidate.found_by)
        ranked.said, ranked.similarity = found.said, found.candidate.cosine
        ranked.relevance, ranked.strength = found.relevance, strength
        ranked.lost = self.memory_weights.similarity * found.candidate.lost
        return ranked

    def scored(self, record: Record, relevance: Mapping[str, float], found_by: Iterable[str]) -> Ranked:
        weights = self.memory_weights if isinstance(record, Memory) else self.weights
        known = factors(
            record,
            self.request.now,
            self.half_life_days,
            self.window,
            evidence_half_life_days=self.evidence_half_life_days,
        )
        return Ranked(record, score_terms(relevance, known, weights), tuple(found_by))
