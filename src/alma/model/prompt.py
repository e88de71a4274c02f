"""Prompts: memories as text for a language model, within a token budget; stored text is quoted as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.model.learning import PROFILE_CATEGORY, AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.text.disguise import visible
from alma.text.excerpt import Excerpts
from alma.tokens import LONGEST_TOKEN, count_tokens

# This mark begins a quoted line, which cannot start a heading, list or fence.
_CONTINUED = "\n    │ "
# The minimum length of a truncated text: characters, or tokens in scripts with few characters per token.
_LEAST_CHARACTERS, _LEAST_TOKENS = 24, 8
# Divisors of the minimum that are tried until the sections up to this turn fit into a narrow prompt.
_PARTS, _LAST_KEPT_IN = (1, 2, 3), 2
# The maximum characters of a text of a memory that does not fit as a whole.
_SOME_CHARACTERS = 400
_INVISIBLE = lazy_regex("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Control tokens that models take for the end of a text or the beginning of a turn.
_CONTROL = lazy_regex(
    r"<(?=[|\uff5c][^<>\s]{1,40}[|\uff5c]>|/?s>|<SYS>>|</SYS>>|(?:start|end)_of_turn>|(?:bos|eos|pad|unk)>)|"
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)

Shorten = Callable[[str], str]
Lines = Callable[[Record, Shorten], Iterator[str]]
Cut = Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory with its section, and the score that decides which memories fit."""

    record: Record
    score: float
    section: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt, the ids of the memories in it, and of those that did not fit."""

    text: str
    included: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the format of the memories under it."""

    heading: str
    lines: Lines
    # The order in which sections get their first memory into a narrow prompt.
    turn: int
    # Its minimum if another section would otherwise get no room.
    brief: Lines | None = None


def as_data(text: str) -> str:
    """Stored text, escaped for a prompt: it cannot start a heading, list or fence, or a turn of the model."""
    lines = (_CONTROL.sub(r"\g<0> ", _INVISIBLE.sub(" ", line)).strip() for line in visible(text).splitlines())
    return _CONTINUED.join(line for line in lines if line)


def pack(entries: Sequence[Entry], max_tokens: int, question: str | None = None) -> Packed:
    """The prompt within the budget: the best memory of every section, truncated if long, then the others by score.
    Truncated texts show the part that matches the query.
    """
    aim = checked_tokens(max_tokens)
    cut = Excerpts(question).cut
    while True:
        prompt = _filled(entries, aim, cut)
        text = prompt.text()
        # Joined text may take one more token than its parts.
        excess = count_tokens(text) - max_tokens
        if excess <= 0:
            return prompt.packed(text, entries)
        aim -= excess


def checked_tokens(max_tokens: int) -> int:
    """The token budget, validated."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
        raise ValidationError("prompt", "max_tokens", max_tokens, "must be a whole number of at least 0")
    return max_tokens


def _filled(entries: Sequence[Entry], max_tokens: int, cut: Cut) -> _Prompt:
    firsts, others = _by_turn(entries)
    prompt = _begun(firsts, max_tokens, cut)
    # Half of the remaining tokens, so that one long memory leaves room for others; the rest is used at the end.
    prompt.widen(share=0.5)
    for entry in others:
        if not prompt.add(entry):
            prompt.add(entry, _at_most(_SOME_CHARACTERS, cut))
    prompt.widen(share=1)
    return prompt


def _begun(firsts: Sequence[Entry], max_tokens: int, cut: Cut) -> _Prompt:
    """The best memory of every section at its minimum length, or shorter so that all sections fit."""
    kept_in = [entry for entry in firsts if SECTIONS[entry.section].turn <= _LAST_KEPT_IN]
    attempts: list[_Prompt] = []
    for brief, part in product((False, True), _PARTS):
        prompt = _Prompt(max_tokens, cut)
        for entry in firsts:
            prompt.add(entry, _to_part(part, cut), brief=brief)
        if all(prompt.has(kept_in)):
            return prompt
        attempts.append(prompt)
    # Warnings first, then preferences.
    return max(attempts, key=lambda prompt: prompt.has(kept_in))


def _by_turn(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    ranked = sorted(entries, key=lambda entry: -entry.score)
    first: dict[int, Entry] = {}
    for entry in ranked:
        first.setdefault(entry.section, entry)
    firsts = sorted(first.values(), key=lambda entry: SECTIONS[entry.section].turn)
    chosen = set(map(id, firsts))
    return firsts, [entry for entry in ranked if id(entry) not in chosen]


@dataclass(slots=True)
class _Part:
    """A memory as text of the prompt, its cost in tokens, and the text without truncation."""

    entry: Entry
    text: str
    cost: int
    whole: str
    brief: bool = False


class _Prompt:
    """A prompt to which memories are added while they fit."""

    def __init__(self, max_tokens: int, cut: Cut) -> None:
        self._room = max_tokens
        self._cut = cut
        self._parts: list[_Part] = []

    def add(self, entry: Entry, shorten: Shorten | None = None, *, brief: bool = False) -> bool:
        """Add a memory, truncated or whole, if it fits."""
        whole = _written(entry)
        text = whole if shorten is None else _written(entry, shorten, brief=brief)
        cost = _cost(text, self._room - self._heading_cost(entry))
        if cost is None:
            return False
        self._room -= cost + self._heading_cost(entry)
        self._parts.append(_Part(entry, text, cost, whole, brief))
        return True

    def has(self, entries: Iterable[Entry]) -> list[bool]:
        """Those of the memories that are in it."""
        inside = {id(part.entry) for part in self._parts}
        return [id(entry) in inside for entry in entries]

    def widen(self, share: float) -> None:
        """Extend the truncated memories, each by up to an equal share of the remaining tokens."""
        cut = sorted((part for part in self._parts if part.text != part.whole), key=lambda part: len(part.whole))
        for number, part in enumerate(cut):
            room = self._room // (len(cut) - number)
            self._room += part.cost
            _widen(part, part.cost + room, part.cost + int(share * room), self._cut)
            self._room -= part.cost

    def text(self) -> str:
        by_section: dict[int, list[str]] = {}
        for part in sorted(self._parts, key=lambda part: (part.entry.section, -part.entry.score)):
            by_section.setdefault(part.entry.section, []).append(part.text)
        texts = (f"## {SECTIONS[number].heading}\n" + "\n".join(texts) for number, texts in by_section.items())
        return "\n\n".join(texts)

    def packed(self, text: str, entries: Iterable[Entry]) -> Packed:
        inside = {id(part.entry) for part in self._parts}
        left_out = tuple(str(entry.record.key) for entry in entries if id(entry) not in inside)
        return Packed(text, tuple(str(part.entry.record.key) for part in self._parts), left_out)

    def _heading_cost(self, entry: Entry) -> int:
        if any(part.entry.section == entry.section for part in self._parts):
            return 0
        return _heading_tokens(entry.section)


@cache
def _heading_tokens(section: int) -> int:
    return count_tokens(f"## {SECTIONS[section].heading}\n\n\n")


def _widen(part: _Part, room_for_all: int, room: int, cut: Cut) -> None:
    cost = _cost(part.whole, room_for_all)
    if cost is not None:
        part.text, part.cost = part.whole, cost
        return
    text = _shortened(part, room, cut)
    if len(text) > len(part.text):
        part.text, part.cost = text, count_tokens(text + "\n")


def _cost(text: str, room: int) -> int | None:
    """The cost of a memory in tokens, or None if it does not fit."""
    if len(text) > room * LONGEST_TOKEN:
        return None
    cost = count_tokens(text + "\n")
    return cost if cost <= room else None


def _written(entry: Entry, shorten: Shorten = lambda text: text, *, brief: bool = False) -> str:
    section = SECTIONS[entry.section]
    written = section.brief if brief and section.brief else section.lines
    lines = [*written(entry.record, lambda text: as_data(shorten(text)))]
    return "\n".join([*lines, f"  Note: {as_data(entry.note)}"] if entry.note else lines)


def _least(text: str) -> int:
    """The minimum number of characters that identify a memory."""
    tokens = count_tokens(text[:_LEAST_CHARACTERS])
    return _LEAST_CHARACTERS if tokens <= _LEAST_TOKENS else -(-_LEAST_CHARACTERS * _LEAST_TOKENS // tokens)


def _to_part(part: int, cut: Cut) -> Shorten:
    return lambda text: cut(text, -(-_least(text) // part))


def _at_most(characters: int, cut: Cut) -> Shorten:
    return lambda text: cut(text, characters)


def _shortened(part: _Part, room: int, cut: Cut) -> str:
    """The memory with its texts truncated to about the characters that fit."""
    if not part.brief:
        return _longest(part, room, cut)
    # Truncate all lines if they keep the minimum length; otherwise show the brief form.
    return _longest(part, room, cut, least=_LEAST_CHARACTERS) or _longest(part, room, cut, brief=True)


def _longest(part: _Part, room: int, cut: Cut, *, least: int = 0, brief: bool = False) -> str:
    low, high = least, len(part.whole)
    best = ""
    while high - low > low // 64:
        # Start with a short text, because counting the tokens of a long one is slow.
        most = min(max(2 * low, _LEAST_CHARACTERS), (low + high + 1) // 2)
        text = _written(part.entry, _at_most(most, cut), brief=brief)
        if _cost(text, room) is not None:
            low, best = most, text
        else:
            high = most - 1
    return best


# ---------------------------------------------------------------------- the format of each kind


def _heuristic(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, Heuristic)
    yield f"- When: {shown(record.condition)}"
    yield f"  Do: {shown(record.strategy)}"
    seen = f", {record.record_of_success}" if record.occurrence_count else ""
    yield f"  (confidence: {record.confidence:.0%}{seen})"


def _warning(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, AntiPattern)
    yield f"- Don't: {shown(record.pattern)}"


def _anti_pattern(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, AntiPattern)
    yield from _warning(record, shown)
    if record.why_bad:
        yield f"  Why: {shown(record.why_bad)}"
    if record.better_alternative:
        yield f"  Instead: {shown(record.better_alternative)}"


def _preference(record: Record, shown: Shorten) -> Iterator[str]:
    assert isinstance(record, UserPreference)
    if record.category == PROFILE_CATEGORY:
        yield f"- About the user: {shown(record.preference)}"
        return
    yield f"- Prefers{f' ({shown(record.category)})' if record.category else ''}: {shown(record.preference)}"


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
    title = f"{shown(record.title)}: " if record.title else ""
    # A space after the bracket, because "]:" would be a Markdown link definition, which is not rendered.
    yield f"- [{moment:%Y-%m-%d}] {title}{shown(record.content)}"


SECTIONS = (
    Section("Relevant Strategies", _heuristic, turn=3),
    Section("Avoid These Patterns", _anti_pattern, turn=0, brief=_warning),
    Section("User Preferences", _preference, turn=1),
    Section("Standing Instructions", _instruction, turn=2),
    Section("Domain Context", _knowledge, turn=4),
    Section("Recent Outcomes", _outcome, turn=6),
    Section("Related Memories", _memory, turn=5),
)
