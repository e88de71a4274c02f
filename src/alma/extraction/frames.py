"""Frames: sentence patterns with slots, listed for each language in `frames.json`, and how they are matched.

    i [@adv]* prefer|favour <x:wish>      The user prefers <x>

A word stands for itself, `a|b` for one of several, `a_b` for two in a row, `@name` for one of the class of that name;
`[…]` is optional, `[…]*` may repeat. `<name:kind>` is a slot for some words, up to what follows; the kind says which
(`_KINDS`), a `?` that it may be empty. The meaning of a frame refers to a slot or a choice by its name (of a choice,
its first word); `!` capitalizes it, `:s` puts it in the third person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from alma.extraction.clauses import SLOTS, Clause, Language, Phrases
from alma.lazy import lazy_regex

_PLACE = lazy_regex(r"<(\w+)(?::(\w+))?(\??)>")
_NAMED = lazy_regex(r"<(\w+)(?::(s))?(!?)>")
_MOST_WORDS = 60
_LONGEST = {
    "name": 3,
    "short": 5,
    "thing": 5,
    "capital": 10,
    "subject": 8,
    "role": 14,
    "kin": 6,
    "body": 6,
    "call": 3,
    "bare": 6,
}


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of several phrases or classes; may be optional or repeated."""

    name: str
    phrases: tuple[Phrases, ...]
    optional: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Slot:
    """A slot for some words."""

    name: str
    kind: str
    optional: bool = False


@dataclass(frozen=True)
class Frame:
    """A sentence pattern, what it means, and the confidence in that."""

    kind: str
    parts: tuple[_Choice | _Slot, ...]
    means: tuple[str, ...]
    confidence: float
    task: str = ""

    @cached_property
    def has_comma(self) -> bool:
        """Whether it has a comma, and so spans more than one clause."""
        return any(part.name == "," for part in self.parts)

    def match(self, said: Clause) -> dict[str, str] | None:
        """The words of each slot, or None where the clause does not match."""
        found: dict[str, tuple[int, int]] = {}
        if not _fits(self.parts, 0, said, 0, found, set()):
            return None
        named = {name: said.between(*span) for name, span in found.items()}
        return {part.name: "" for part in self.parts} | named | {"whole": said.text}

    def text_of(self, template: str, named: Mapping[str, str], language: Language) -> str:
        """A template of the meaning, filled with the words of the slots."""

        def word(match: re.Match[str]) -> str:
            text = named.get(match[1], "")
            text = language.third(text.casefold()) if match[2] else text
            return text[:1].upper() + text[1:] if match[3] else text

        return " ".join(_NAMED.sub(word, template).split())


def _fits(
    parts: Sequence[_Choice | _Slot],
    part: int,
    said: Clause,
    at: int,
    found: dict[str, tuple[int, int]],
    failed: set[tuple[int, int]],
) -> bool:
    """Whether the parts from this one on match the words from here; each pair is tried once."""
    if part == len(parts):
        return at == len(said.words)
    if (part, at) in failed:
        return False
    this = parts[part]
    ends = (
        _slot_ends(this, said, at, part + 1 == len(parts)) if isinstance(this, _Slot) else _choice_ends(this, said, at)
    )
    for end in ends:
        if _fits(parts, part + 1, said, end, found, failed):
            if end > at:
                found[this.name] = (at, end)
            return True
    failed.add((part, at))
    return False


def _choice_ends(choice: _Choice, said: Clause, at: int) -> Iterator[int]:
    for phrases in choice.phrases:
        for end in phrases.ends(said.words, at):
            if choice.repeated:
                yield from _choice_ends(choice, said, end)
            else:
                yield end
    if choice.optional:
        yield at


def _slot_ends(slot: _Slot, said: Clause, at: int, last: bool) -> Iterator[int]:
    if slot.optional and at == len(said.words):
        yield at
    fills = SLOTS.get(slot.kind, SLOTS["any"])
    most = min(len(said.words), at + _LONGEST.get(slot.kind, _MOST_WORDS))
    for end in [len(said.words)] if last else range(at + 1, most + 1):
        if at < end <= most and ((slot.optional and slot.kind == "any") or fills(said, at, end)):
            yield end
    if slot.optional and at < len(said.words):
        yield at


# ---------------------------------------------------------------------- reading the file


@cache
def languages() -> Mapping[str, Language]:
    """The languages of `frames.json`; English first."""
    text = resources.files("alma.extraction").joinpath("frames.json").read_text(encoding="utf-8")
    return {name: _language(name, data) for name, data in json.loads(text).items()}


def _language(name: str, data: Mapping[str, Any]) -> Language:
    phrases = {key: Phrases(value) for key, value in data.items() if isinstance(value, list) and _are_words(value)}
    classes = {key: Phrases(value) for key, value in data["classes"].items()}
    frames = tuple(Frame(kind, _parts(form, classes), tuple(means), sure) for kind, form, means, sure in data["frames"])
    tried = tuple(
        Frame(kind, _parts(form, classes), (strategy,), sure, task)
        for kind, form, strategy, task, sure in data.get("tried", ())
    )
    answers = tuple(
        Frame(kind, _parts(form, classes), (), 0.75)
        for kind, forms in data.get("answers", {}).items()
        for form in forms
    )
    ways = [[part.split("|") for part in form.split()] for _, form, *_ in data["frames"]]
    known = {way for form in ways for part in form for way in part}
    common = frozenset({*data["first"], *data["joins"], *data["determiners"], *data["vague"], *known})
    return Language(name, data, phrases, classes, frozenset(_own_verbs(ways, data)), common, frames, tried, answers)


def _own_verbs(forms: Sequence[Sequence[Sequence[str]]], data: Mapping[str, Any]) -> Iterator[str]:
    for form in forms:
        if form[0][0].strip("[]*") in data["first"] and "'" not in form[0][0]:
            verb = next((part for part in form[1:] if not part[0].startswith("[")), [])
            for way in verb:
                yield from data["classes"][way[1:]] if way.startswith("@") else [way.split("_")[0]]


def _are_words(value: Sequence[Any]) -> bool:
    return all(isinstance(each, str) for each in value)


def _parts(form: str, classes: Mapping[str, Phrases]) -> tuple[_Choice | _Slot, ...]:
    return tuple(_part(word, classes) for word in form.split())


def _part(word: str, classes: Mapping[str, Phrases]) -> _Choice | _Slot:
    place = _PLACE.fullmatch(word)
    if place is not None:
        return _Slot(place[1], place[2] or "any", bool(place[3]))
    repeated, optional = word.endswith("]*"), word.startswith("[")
    ways = word.strip("[]*").split("|") if optional else word.split("|")
    plain = [way.replace("_", " ") for way in ways if not way.startswith("@")]
    given = [classes[way[1:]] for way in ways if way.startswith("@")]
    phrases = (*([Phrases(plain)] if plain else []), *given)
    return _Choice(ways[0].removeprefix("@").replace(" ", "_"), phrases, optional, repeated)
