"""Prompts: memories as text for a language model, inside a token budget, with what was stored shown as data."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from alma.errors import ValidationError
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.tokens import count_tokens

# Behind this mark a line is a quotation: no heading, list or fence can start there.
_CONTINUED = "\n    │ "
_SHORTENED = "…"
_LEAST_CHARACTERS = 24
# Characters that turn the reading direction around and could show a text in another order than it is read.
_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])

Shorten = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory in the section it belongs to, with the score that decides when there is no room for all."""

    record: Record
    score: float
    section: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt, the ids of the memories in it and of those there was no room for."""

    text: str
    included: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and how the memories under it are written."""

    heading: str
    lines: Callable[[Record, Shorten], Iterator[str]]
    # In which order the sections get their first memory into a narrow prompt.
    turn: int


def as_data(text: str) -> str:
    """Stored text that can stand in a prompt: whatever it holds, it opens no heading, list or fence of ours."""
    lines = (_visible(line).strip() for line in text.translate(_TURNING).splitlines())
    return _CONTINUED.join(line for line in lines if line)


def _visible(line: str) -> str:
    return "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") else c for c in line)


def pack(entries: Sequence[Entry], max_tokens: int) -> Packed:
    """The prompt that fits: the best memory of every section first, then the others by their score."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
        raise ValidationError("prompt", "max_tokens", max_tokens, "must be a whole number of at least 0")
    prompt = _Prompt(max_tokens)
    firsts, others = _by_turn(entries)
    for entry in firsts:
        prompt.add(entry, may_shorten=True)
    for entry in others:
        prompt.add(entry, may_shorten=False)
    return prompt.packed(entries)


def _by_turn(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    ranked = sorted(entries, key=lambda entry: -entry.score)
    first: dict[int, Entry] = {}
    for entry in ranked:
        first.setdefault(entry.section, entry)
    firsts = sorted(first.values(), key=lambda entry: SECTIONS[entry.section].turn)
    chosen = set(map(id, firsts))
    return firsts, [entry for entry in ranked if id(entry) not in chosen]


class _Prompt:
    """A prompt that grows while there is room."""

    def __init__(self, max_tokens: int) -> None:
        self._max = max_tokens
        self._used = 0
        self._written: list[tuple[Entry, str]] = []

    def add(self, entry: Entry, *, may_shorten: bool) -> None:
        room = self._max - self._used - self._heading_cost(entry)
        if room <= 0:
            return
        text = _written(entry)
        if _cost(text) > room:
            if not may_shorten:
                return
            text = _shortened(entry, room)
        if text:
            self._used += self._heading_cost(entry) + _cost(text)
            self._written.append((entry, text))

    def _heading_cost(self, entry: Entry) -> int:
        if any(other.section == entry.section for other, _ in self._written):
            return 0
        return count_tokens(f"## {SECTIONS[entry.section].heading}\n\n\n")

    def packed(self, entries: Iterable[Entry]) -> Packed:
        # The parts of a text may take a token more together than apart.
        while (text := self._text()) and count_tokens(text) > self._max:
            self._written.pop()
        included = tuple(str(entry.record.key) for entry, _ in self._written)
        inside = set(included)
        return Packed(text, included, tuple(key for entry in entries if (key := str(entry.record.key)) not in inside))

    def _text(self) -> str:
        by_section: dict[int, list[str]] = {}
        for entry, text in sorted(self._written, key=lambda pair: (pair[0].section, -pair[0].score)):
            by_section.setdefault(entry.section, []).append(text)
        parts = (f"## {SECTIONS[number].heading}\n" + "\n".join(texts) for number, texts in by_section.items())
        return "\n\n".join(parts)


def _cost(text: str) -> int:
    return count_tokens(text + "\n")


def _written(entry: Entry, shorten: Shorten = lambda text: text) -> str:
    return "\n".join(SECTIONS[entry.section].lines(entry.record, lambda text: as_data(shorten(text))))


def _shortened(entry: Entry, room: int) -> str:
    """The memory with its texts cut to the most characters that fit, or nothing where too little would be left."""
    low, high = 0, max(map(len, _texts(entry)), default=0)
    best = ""
    while low < high:
        most = (low + high + 1) // 2
        text = _written(entry, partial(_cut, most=most))
        if _cost(text) <= room:
            low, best = most, text
        else:
            high = most - 1
    return best if low >= _LEAST_CHARACTERS else ""


def _texts(entry: Entry) -> list[str]:
    texts: list[str] = []

    def noted(text: str) -> str:
        texts.append(text)
        return text

    list(SECTIONS[entry.section].lines(entry.record, noted))
    return texts


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + _SHORTENED


# ---------------------------------------------------------------------- how each kind is written


def _heuristic(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, Heuristic)
    yield f"- When: {shown(record.condition)}"
    yield f"  Do: {shown(record.strategy)}"
    seen = f", worked {record.success_count} of {record.occurrence_count} times" if record.occurrence_count else ""
    yield f"  (confidence: {record.confidence:.0%}{seen})"


def _anti_pattern(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, AntiPattern)
    yield f"- Don't: {shown(record.pattern)}"
    if record.why_bad:
        yield f"  Why: {shown(record.why_bad)}"
    if record.better_alternative:
        yield f"  Instead: {shown(record.better_alternative)}"


def _preference(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, UserPreference)
    topic = f"[{shown(record.category)}] " if record.category else ""
    yield f"- {topic}Prefers: {shown(record.preference)}"


def _instruction(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, Memory)
    yield f"- Always: {shown(record.content)}"


def _knowledge(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, DomainKnowledge)
    yield f"- Fact{f' ({shown(record.domain)})' if record.domain else ''}: {shown(record.fact)}"


def _outcome(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, Outcome)
    result = "succeeded" if record.success else "failed"
    how = f" with: {shown(record.strategy_used)}" if record.strategy_used else ""
    yield f"- Task: {shown(record.task_description)}"
    yield f"  Result: {result}{how}"
    if record.error_message:
        yield f"  Error: {shown(record.error_message)}"
    if record.user_feedback:
        yield f"  Feedback: {shown(record.user_feedback)}"


def _memory(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, Memory)
    moment = record.event_time or record.created_at
    title = f" {shown(record.title)}" if record.title else ""
    yield f"- [{moment:%Y-%m-%d}]{title}: {shown(record.content)}"


SECTIONS = (
    Section("Relevant Strategies", _heuristic, turn=3),
    Section("Avoid These Patterns", _anti_pattern, turn=0),
    Section("User Preferences", _preference, turn=1),
    Section("Standing Instructions", _instruction, turn=2),
    Section("Domain Context", _knowledge, turn=4),
    Section("Recent Outcomes", _outcome, turn=6),
    Section("Related Memories", _memory, turn=5),
)
