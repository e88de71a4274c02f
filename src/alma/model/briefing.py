"""Briefings: headings with lines, within a token budget; stored text is quoted as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alma.model.prompt import as_data, checked_tokens
from alma.tokens import LONGEST_TOKEN, count_tokens

_SHORTENED = "…"
_LEAST_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Line:
    """A line: our label, and stored text, which is escaped so that it cannot add structure."""

    label: str
    text: str = ""

    def written(self) -> str:
        label = f"{self.label}: " if self.label and self.text else self.label
        return f"- {label}{as_data(self.text)}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A heading and its lines, the most important first."""

    heading: str
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, heading: str, label: str, texts: Sequence[str]) -> Topic:
        """A topic with one line for each text."""
        return cls(heading, tuple(Line(label, text) for text in texts if text.strip()))


def briefing(topics: Sequence[Topic], max_tokens: int) -> str:
    """The text that fits the budget: topics in order, each with its first line before any gets its second."""
    aim = checked_tokens(max_tokens)
    while True:
        text = _filled([topic for topic in topics if topic.lines], aim)
        # Joined text may take one more token than its parts.
        excess = count_tokens(text) - max_tokens
        if excess <= 0:
            return text
        aim -= excess


def _filled(topics: Sequence[Topic], max_tokens: int) -> str:
    room = max_tokens
    shown: dict[int, list[str]] = {}
    for turn in range(max((len(topic.lines) for topic in topics), default=0)):
        for number, topic in enumerate(topics):
            if turn >= len(topic.lines) or (turn and number not in shown):
                continue
            heading = 0 if number in shown else count_tokens(f"## {topic.heading}\n\n\n")
            line = _fitting(topic.lines[turn], room - heading)
            if line is not None:
                shown.setdefault(number, []).append(line)
                room -= heading + count_tokens(line + "\n")
    return "\n\n".join(f"## {topics[number].heading}\n" + "\n".join(shown[number]) for number in sorted(shown))


def _fitting(line: Line, room: int) -> str | None:
    """The line, truncated to the remaining tokens, or None if too few remain."""
    if room < _LEAST_TOKENS:
        return None
    # Only a prefix that could fit is counted, because counting a long text is slow.
    text = line.text[: room * LONGEST_TOKEN]
    low, high = 0, len(text)
    best: str | None = None
    most = high
    while low <= high:
        cut = text[:most].rstrip() + _SHORTENED if most < len(line.text) else text
        written = Line(line.label, cut).written()
        if count_tokens(written + "\n") <= room:
            best, low = written, most + 1
        else:
            high = most - 1
        most = (low + high) // 2
    return best
