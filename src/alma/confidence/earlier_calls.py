"""The calls of alma-memory 0.4 on signals and on the confidence engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from alma.clock import new_id, now
from alma.model.briefing import Line, Topic, briefing

_REASON = ("id", "signal_type", "description", "source", "related_memories", "metadata", "detected_at")
_SIGNAL = (
    "id",
    "strategy",
    "context",
    "agent",
    "heuristic_id",
    "historical_success_rate",
    "occurrence_count",
    "predicted_success",
    "uncertainty",
    "context_similarity",
    "risk_signals",
    "total_risk_score",
    "opportunity_signals",
    "total_opportunity_score",
    "confidence_score",
    "recommendation",
    "reasoning",
    "metadata",
    "assessed_at",
)
_PROMPT_TOKENS = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierReason:
    """What a risk or an opportunity was asked for under other names, and where and when it was seen."""

    source: str = ""
    id: str = field(default_factory=new_id, compare=False)
    detected_at: datetime = field(default_factory=now, compare=False)

    @property
    def related_memories(self: Any) -> list[str]:
        """The ids of the memories it is derived from."""
        return list(self.evidence_ids)

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing; the name is for programs that ask."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """It as JSON can hold it."""
        weight = "severity" if hasattr(self, "severity") else "strength"
        return _plain(self, (*_REASON, weight))


class EarlierSignal:
    """What a signal was asked for under other names."""

    __slots__ = ()

    heuristic_id: str | None = None

    def __iter__(self: Any) -> Iterator[Any]:
        """The strategy and the signal, as the pairs that ranked strategies were."""
        return iter((self.strategy, self))

    def __getitem__(self: Any, index: int) -> Any:
        return (self.strategy, self)[index]

    @property
    def risk_signals(self: Any) -> tuple[Any, ...]:
        """The risks, under the name of alma-memory."""
        return self.risks  # type: ignore[no-any-return]

    @property
    def opportunity_signals(self: Any) -> tuple[Any, ...]:
        """The opportunities, under the name of alma-memory."""
        return self.opportunities  # type: ignore[no-any-return]

    @property
    def total_risk_score(self: Any) -> float:
        """The severity of the worst risk."""
        return max((risk.severity for risk in self.risks), default=0.0)

    @property
    def total_opportunity_score(self: Any) -> float:
        """The strength of the strongest opportunity."""
        return max((chance.strength for chance in self.opportunities), default=0.0)

    @property
    def predicted_success(self: Any) -> float:
        """The expected success rate."""
        return float(self.confidence_score)

    @property
    def uncertainty(self: Any) -> float:
        """The width of the interval of the success rate."""
        return float(self.upper_bound - self.lower_bound)

    @property
    def context_similarity(self: Any) -> float:
        """How near the most similar task is, where that was computed."""
        return self.assessed.relevance or 0.0

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing; the name is for programs that ask."""
        return {}

    def to_prompt(self: Any, max_tokens: int = _PROMPT_TOKENS) -> str:
        """The signal as text for a language model, within the token budget."""
        level = f"{self.recommendation} ({self.confidence_score:.0%})"
        tried = f"{self.historical_success_rate or 0:.0%} ({self.occurrence_count} uses)"
        measured = {
            "Historical success": tried,
            "Predicted success": f"{self.predicted_success:.0%}",
            "Context similarity": f"{self.context_similarity:.0%}",
            "Uncertainty": f"{self.uncertainty:.0%}",
        }
        about = (Line("Strategy", self.strategy), Line("Agent", self.agent), Line("Recommendation", level))
        reasons = (Line("Reason", self.reasoning),) if self.reasoning else ()
        topics = [
            Topic("Confidence Assessment", (*about, *reasons)),
            Topic("Metrics", tuple(Line(label, text) for label, text in measured.items())),
            Topic("Risks", tuple(Line(f"{risk.severity:.0%}", risk.description) for risk in self.risks)),
            Topic(
                "Opportunities", tuple(Line(f"{each.strength:.0%}", each.description) for each in self.opportunities)
            ),
        ]
        return briefing(topics, max_tokens)

    def to_dict(self) -> dict[str, Any]:
        """The signal as JSON can hold it."""
        return _plain(self, _SIGNAL)


def _plain(told: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: _json(getattr(told, name)) for name in names}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [each.to_dict() for each in value]
    return str(value) if isinstance(value, str) else value


# What the wording of a strategy alone says: a pattern, how often it must occur, the reason, and its weight.
_RISKY: Mapping[str, tuple[str, int, str, float]] = {
    "high_complexity": (
        r"\b(?:all|every|whole|entire(?:ly)?|complete(?:ly)?)\b",
        2,
        "It tries to do much at once",
        0.4,
    ),
    "risky_pattern": (r"\b(?:sleep|force|delete all)\b", 1, "It waits for a fixed time, forces or deletes", 0.6),
}
_PROMISING: Mapping[str, tuple[str, int, str, float]] = {
    "best_practice": (
        r"\b(?:increment|validat|step by step|test\w* first)",
        1,
        "It goes in steps that are checked",
        0.5,
    ),
}
_LEAST_IN_COMMON = 0.5


def by_wording(draft: Any) -> None:
    """Add the risks and opportunities that the wording of a strategy suggests."""
    for known, add in ((_RISKY, draft.add_risk), (_PROMISING, draft.add_opportunity)):
        for name, (pattern, times, reason, weight) in known.items():
            if len(re.findall(pattern, draft.strategy.casefold())) >= times:
                add(name, reason, weight, "wording")


class EarlierCalls:
    """The calls of the engine under other names."""

    def detect_risks(self: Any, strategy: str, context: str, agent: str) -> list[Any]:
        """The risks of a strategy; see `assess_strategy`."""
        return list(self.assess_strategy(strategy, context, agent).risks)

    def detect_opportunities(self: Any, strategy: str, context: str, agent: str) -> list[Any]:
        """What speaks for a strategy; see `assess_strategy`."""
        return list(self.assess_strategy(strategy, context, agent).opportunities)

    def _compute_uncertainty(self, occurrence_count: int, context_similarity: float) -> float:
        """How little is known: less, the more often something like it was tried."""
        return 1 / (1 + occurrence_count * context_similarity)

    def _is_similar(self, text1: str, text2: str) -> bool:
        """Whether one text contains the other, or they have half of their words in common."""
        one, other = text1.casefold(), text2.casefold()
        words, more = set(one.split()), set(other.split())
        return one in other or other in one or len(words & more) >= _LEAST_IN_COMMON * len(words | more)

    def _generate_reasoning(self, signal: Any) -> str:
        """What a signal is based on, in a sentence."""
        if not signal.occurrence_count:
            return "A novel strategy: it was never tried here."
        rate = f"{signal.historical_success_rate or 0:.0%} success over {signal.occurrence_count} uses"
        return f"{rate}; the context is {signal.context_similarity:.0%} similar to the nearest one."
