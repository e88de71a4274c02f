"""The synthetic memories of every contender, made from a seed: texts, owners, clustered unit vectors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

PROJECT = "bench"
AGENTS = 100
DIMS = 384
SINGLES = 300
QUERIES = 200
NEIGHBOURS = 5

_START = datetime(2025, 1, 1, tzinfo=UTC)
_CLUSTERS = 64
_SPREAD = 0.6
_SYLLABLES = ("ba", "cor", "de", "fin", "ga", "hel", "in", "ko", "lum", "ma", "ner", "or", "pe", "ras", "sto", "ti")
_VOCABULARY = 2000
_CONDITION_WORDS, _CONDITION_CHARACTERS = 14, 60
_STRATEGY_WORDS, _STRATEGY_CHARACTERS = 20, 90


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory, before it becomes a record of a contender's type."""

    id: str
    agent: str
    condition: str
    strategy: str
    confidence: float
    moment: datetime
    vector: Floats


class Workload:
    """Facts to load, facts to save one by one, and query vectors."""

    def __init__(self, count: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.count = count
        self._words = _vocabulary(rng)
        self._picks = _picks(rng, count + SINGLES)
        self._confidences = rng.random(count + SINGLES).round(3)
        centers = _unit(rng.standard_normal((_CLUSTERS, DIMS)))
        self._vectors = _scattered(rng, centers, count + SINGLES)
        self.queries = _scattered(rng, centers, QUERIES)

    def facts(self, numbers: range) -> list[Fact]:
        """The facts with these numbers."""
        return [self._fact(number) for number in numbers]

    def nearest(self, query: int, stored: int) -> set[str]:
        """The ids truly nearest to a query among those of its agent's facts that were stored."""
        owned = np.arange(query % AGENTS, stored, AGENTS)
        # Double precision, so that rounding does not decide which of two close neighbours is the nearer one.
        cosines = self._vectors[owned].astype(np.float64) @ self.queries[query].astype(np.float64)
        return {id_of(int(number)) for number in owned[np.argsort(-cosines)[:NEIGHBOURS]]}

    def _fact(self, number: int) -> Fact:
        words = [self._words[pick] for pick in self._picks[number]]
        return Fact(
            id=id_of(number),
            agent=agent_of(number),
            condition=" ".join(words[:_CONDITION_WORDS])[:_CONDITION_CHARACTERS].strip(),
            strategy=" ".join(words[_CONDITION_WORDS:])[:_STRATEGY_CHARACTERS].strip(),
            confidence=float(self._confidences[number]),
            moment=_START + timedelta(seconds=number),
            vector=self._vectors[number],
        )


def id_of(number: int) -> str:
    """The id of the fact with this number: 32 hexadecimal digits that grow, as those of a version 7 UUID do."""
    return f"019{number:029x}"


def agent_of(number: int) -> str:
    """The agent that owns the fact with this number; every agent owns one in a hundred."""
    return f"agent-{number % AGENTS:03d}"


def _vocabulary(rng: np.random.Generator) -> list[str]:
    """Pronounceable words of two or three syllables, the commonest first."""
    chosen = rng.integers(len(_SYLLABLES), size=(_VOCABULARY, 3))
    lengths = rng.integers(2, 4, size=_VOCABULARY)
    return ["".join(_SYLLABLES[i] for i in row[:length]) for row, length in zip(chosen, lengths, strict=True)]


def _picks(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """The words of every fact, with the frequencies of a natural language."""
    weights = 1 / np.arange(1, _VOCABULARY + 1)
    return rng.choice(_VOCABULARY, size=(count, _CONDITION_WORDS + _STRATEGY_WORDS), p=weights / weights.sum())


def _scattered(rng: np.random.Generator, centers: npt.NDArray[np.float64], count: int) -> Floats:
    """Unit vectors scattered around randomly chosen cluster centers."""
    noise = rng.standard_normal((count, DIMS)) * (_SPREAD / np.sqrt(DIMS))
    return _unit(centers[rng.integers(len(centers), size=count)] + noise).astype(np.float32)


def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths: npt.NDArray[np.float64] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths
