"""Relevance: whether a memory has anything to do with the task at all."""

from __future__ import annotations

from collections.abc import Mapping

from alma.model.record import Record
from alma.model.text import terms
from alma.retrieval.candidates import Candidate

# A memory is relevant by its meaning, by its words, or by enough of both together.
ENOUGH_MEANING = 0.5
ENOUGH_WORDS = 0.7
_LEAST = 1.0
_CONTEXT = ("conversation", "linked", "related")
_LOOKED_AT = 20_000


def is_relevant(candidate: Candidate, record: Record, asked: frozenset[str], word_weights: Mapping[str, float]) -> bool:
    """Whether its meaning and its words are near enough to the task, or it stands beside something that is."""
    meaning = max(0.0, candidate.cosine or 0.0) / ENOUGH_MEANING
    if meaning >= _LEAST or any(name in candidate.relevance for name in _CONTEXT):
        return True
    return meaning + covered(record, asked, word_weights) / ENOUGH_WORDS >= _LEAST


def covered(record: Record, asked: frozenset[str], word_weights: Mapping[str, float]) -> float:
    """How much of what the question says, by the weight of its words, the memory says as well."""
    full = sum(word_weights.values())
    if not full:
        return 0.0
    own = asked.intersection(terms(record.text()[:_LOOKED_AT]))
    return sum(word_weights[word] for word in own) / full
