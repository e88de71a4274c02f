"""The router of layers: from which layers a question is answered, chosen from its words and from where it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from alma import clock
from alma.model.memory import Layer
from alma.text.timeexpr.extract import time_window

_HERE = re.compile(
    r"\b(?:this session|(?:just|right) now|a moment ago|so far|where (?:was|were) (?:i|we)|continue|go on|"
    r"(?:we|i|you) (?:just|were|was)|current(?:ly)?|working on|next step)\b",
    re.IGNORECASE,
)
_EVERYWHERE = re.compile(
    r"\b(?:prefer\w*|usual(?:ly)?|in general|generally|best practices?|as a rule|my (?:style|habits?|way)|"
    r"(?:other|all|every|any|across|which) projects?|elsewhere|do i (?:like|want))\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:when|since when|how long ago|history|timeline|changed|used to|used? before|previously|formerly|originally|"
    r"at (?:the|that) time|recent(?:ly)?|latest|last time|evolv\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """The layers to look into, most telling first, each with its reason."""

    reasons: Mapping[Layer, str]

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(self.reasons)

    def __str__(self) -> str:
        return "; ".join(f"{layer}: {reason}" for layer, reason in self.reasons.items())


def route_layers(
    question: str,
    *,
    user_id: str | None = None,
    project_id: str | None = None,
    session_id: str | None = None,
    now: datetime | None = None,
) -> LayerPlan:
    """The layers that a question should be answered from.

    What its words ask for comes first. Its project always takes part, since most that is worth knowing is there, and
    where the words name no place so does every layer there is from here.
    """
    reasons = _asked_for(question, session_id, user_id, now or clock.now())
    told = Layer.SESSION in reasons or Layer.GLOBAL in reasons
    if project_id is not None:
        reasons.setdefault(Layer.PROJECT, "it is asked in a project")
    if not told:
        if session_id is not None:
            reasons[Layer.SESSION] = "it is asked in a session and names no place"
        if user_id is not None:
            reasons[Layer.GLOBAL] = "it names no place, and its user carries knowledge along"
    if not reasons:
        reasons = dict.fromkeys(Layer, "nothing says where to look")
    return LayerPlan(reasons)


def _asked_for(question: str, session_id: str | None, user_id: str | None, now: datetime) -> dict[Layer, str]:
    found: dict[Layer, str] = {}
    here = _HERE.search(question)
    if here is not None and session_id is not None:
        found[Layer.SESSION] = f"{here[0]!r} speaks of what is going on"
    everywhere = _EVERYWHERE.search(question)
    if everywhere is not None and user_id is not None:
        found[Layer.GLOBAL] = f"{everywhere[0]!r} asks for what holds everywhere"
    window = time_window(question, now)
    history = _HISTORY.search(question)
    if window is not None:
        found[Layer.TEMPORAL] = f"{window.phrase!r} names a time"
    elif history is not None:
        found[Layer.TEMPORAL] = f"{history[0]!r} asks how things went over time"
    return found
