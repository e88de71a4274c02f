"""Phrases: what stands with what in a sentence, so that who does what to whom is not read the other way around."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple

Words = Callable[[str], list[str]]

# What begins a phrase, and which words say as much.
_CHOICE, _LATER, _TO, _FROM, _AFTER, _DURING, _MAIN = "over", "before", "to", "from", "after", "during", ""
_MARKERS: dict[str, str | None] = {
    "before": _LATER, "prior to": _LATER, "then": _LATER, "followed by": _LATER, "after": _AFTER,
    "over": _CHOICE, "instead of": _CHOICE, "rather than": _CHOICE, "than": _CHOICE,
    "to": _TO, "into": _TO, "onto": _TO, "->": _TO, "=>": _TO, "→": _TO, "from": _FROM, "out of": _FROM,
    "when": "when", "if": "when", "unless": "when", "whenever": "when", "while": _DURING, "as soon as": "when",
    "once": "when",
    "for": "for", "of": "of", "with": "with", "without": "with", "by": "by", "on": "on", "in": "in", "at": "at",
    "as": "as", "via": "via", "through": "via", "until": "until", "because": "because", "against": "against",
    "under": "under", "above": "above", "below": "below", "about": "about", "per": "per", "that": "that",
    "which": "that", "who": "that", "between": "between", "during": _DURING, "upon": "on", "not": "not", "never": "not",
    "don't": "not", "dont": "not", "avoid": "not", "except": "except",
    "use": _MAIN, "prefer": _MAIN, "but": _MAIN, "and": None, "or": None, "&": None, "|": None,
}  # fmt: skip
_TIMES = (_LATER, _AFTER, _DURING, "when")
_WORDLY = sorted((marker for marker in _MARKERS if marker[0].isalpha()), key=len, reverse=True)
_BEGINS = re.compile(
    rf"(?<![\w'’-])(?:{'|'.join(_WORDLY)})(?![\w'’-])|[-=]{{1,64}}+>|→|[,;:&|](?=\s|$)|,|\.(?=\s|$)",
    re.IGNORECASE,
)
_OPPOSITE = {
    frozenset((_FROM, _TO)),
    frozenset((_LATER, _AFTER)),
    frozenset((_LATER, "on")),
    frozenset((_LATER, "at")),
    frozenset(("when", "until")),
    frozenset(("above", "below")),
    frozenset(("under", _CHOICE)),
}
_SYMMETRIC = re.compile(r"\b(?:compar|combin|mix|match|differ|togeth|equal)\w*", re.IGNORECASE)
_DIRECTED = re.compile(r"\b(?:into|onto|before|after|then)\b", re.IGNORECASE)
# In longer texts it takes too long to see who stands with whom.
_MOST_WORDS = 40


class Phrase(NamedTuple):
    """Words that stand together, the word that begins them, and of what they are told where that has to be known."""

    marker: str
    words: tuple[str, ...]
    told_of: tuple[str, ...] = ()


class Part(NamedTuple):
    """A phrase as it was cut out of a text, and the "and" or "or" that links it to the one before, if any does."""

    marker: str
    words: tuple[str, ...]
    link: str = ""


def phrases(text: str, words: Words) -> tuple[Phrase, ...]:
    """A text as its phrases, in the order of time: B after A is A before B."""
    parts = [part for part in cut(text, words) if part.words]
    begun = {i for i in range(1, len(parts)) if _begins_anew(parts[i - 1 : i + 2])}
    found = [(_MAIN if i in begun else part.marker, part.words) for i, part in enumerate(parts)]
    found = _in_order(text, found)
    return tuple(_told(found, in_clauses=bool(begun)))


def _begins_anew(parts: list[Part]) -> bool:
    """Whether the second of these parts begins as the first one did: train on A, and *test* on B."""
    if len(parts) < 3:
        return False
    before, part, after = parts
    return bool(part.link) and not after.link and before.marker == part.marker == after.marker != _MAIN


def _told(found: list[tuple[str, tuple[str, ...]]], *, in_clauses: bool) -> Iterable[Phrase]:
    """The phrases, each with what it is told of: of several that are alike, and of numbers, that makes a difference."""
    before: tuple[str, ...] = ()
    for marker, said in found:
        if said:
            is_told = (in_clauses and marker != _MAIN) or all(map(str.isdigit, said))
            yield Phrase(marker, said, before if is_told else ())
            before = said


def _in_order(text: str, found: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    found = _with_sides(text, _divided(found))
    markers = {marker for marker, _ in found}
    if _TO in markers:
        # Copy A to B is copy from A to B.
        found = [(_MAIN if marker == _FROM else marker, said) for marker, said in found]
    if _AFTER in markers and any(said for marker, said in found if marker == _MAIN):
        turned = {_MAIN: _LATER, _AFTER: _MAIN}
        found = [(turned.get(marker, marker), said) for marker, said in found]
    return found


def _divided(found: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """What begins with "after" or "before" and has no comma: its first word tells of what, the others what is done."""
    said = [(marker, words) for marker, words in found if words]
    if not said or said[0][0] not in (_LATER, _AFTER) or any(marker == _MAIN for marker, _ in said):
        return found
    (marker, (first, *others)), *rest = said
    return [(_MAIN, tuple(others)), (marker, (first,)), *rest] if others else found


def _with_sides(text: str, found: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """What is preferred to something is preferred over it."""
    if "prefer" not in text.lower():
        return found
    return [(_CHOICE if marker == _TO else marker, said) for marker, said in found]


def cut(text: str, words: Words) -> Iterable[Part]:
    """The parts of a text, one behind the other."""
    marker, start, link = _MAIN, 0, ""
    for begin in _BEGINS.finditer(text):
        said = tuple(words(text[start : begin.start()]))
        yield Part(marker, said, link)
        sign = begin.group().lower()
        follows = _MARKERS.get(sign, _TO if sign.endswith(">") else _MAIN)
        link = sign if follows is None else ""
        # What is linked by "and" is said of both; not on Mondays is neither not nor on, then by name not by name.
        if follows is not None:
            goes_on = follows and not said and marker in ("not", _LATER, _CHOICE)
            # Fail over before a retry: what ends there was a verb of two words, and no choice.
            goes_on = goes_on and not (marker == _CHOICE and follows in _TIMES)
            marker = f"{marker} {follows}" if goes_on else follows
        start = begin.end()
    yield Part(marker, tuple(words(text[start:])), link)


def exchanged(one: tuple[Phrase, ...], other: tuple[Phrase, ...], *, strictly: bool = False) -> bool:
    """Whether two texts of the same words have some of them in each other's place.

    `strictly` takes words of different phrases that stand the other way around for exchanged as well.
    """
    if max(_length(one), _length(other)) > _MOST_WORDS:
        return strictly and _as_one(one) != _as_one(other)
    mine, theirs = _company(one), _company(other)
    shared = sorted(mine.keys() & theirs.keys())
    if any(_swapped(mine, theirs, x, y) for x, y in combinations(shared, 2)):
        return True
    if any(_told_of_another(mine, theirs, number) for number in shared if number.isdigit()):
        return True
    if strictly:
        one, other = _as_one(one), _as_one(other)
    before, now = _triples(one), _triples(other)
    only_now = now - before
    return any((z, y, x) in only_now for x, y, z in before - now)


def opposite_ways(one: tuple[Phrase, ...], other: tuple[Phrase, ...]) -> bool:
    """Whether something is done the other way in one text: from what the other goes to, before what it does during."""
    mine, theirs = _markers(one), _markers(other)
    return _at_another_time(one, other) or any(
        len(mine[word]) == len(theirs[word]) == 1 and frozenset((*mine[word], *theirs[word])) in _OPPOSITE
        for word in mine.keys() & theirs.keys()
    )


def _at_another_time(one: tuple[Phrase, ...], other: tuple[Phrase, ...]) -> bool:
    """Whether one says to do during something what the other says to do before or after it."""
    mine, theirs = ({phrase.marker for phrase in each} & {_LATER, _DURING} for each in (one, other))
    return bool(mine) and bool(theirs) and mine.isdisjoint(theirs)


def is_symmetric(text: str) -> bool:
    """Whether a text says something in which two sides may change places, such as that they are compared."""
    return _SYMMETRIC.search(text) is not None and _DIRECTED.search(text) is None


def _length(found: tuple[Phrase, ...]) -> int:
    return sum(len(phrase.words) for phrase in found)


def _company(found: tuple[Phrase, ...]) -> dict[str, set[str]]:
    """With what each word stands: the other words of its phrases, and what begins these."""
    company: dict[str, set[str]] = defaultdict(set)
    for phrase in found:
        for word in phrase.words:
            company[word].update(phrase.words, phrase.told_of, (f"{phrase.marker} …",))
            company[word].discard(word)
    return company


def _swapped(mine: dict[str, set[str]], theirs: dict[str, set[str]], x: str, y: str) -> bool:
    """Whether each of two words has taken the other's company and left its own."""
    taken = (mine[x] & theirs[y]) - mine[y] - theirs[x]
    return bool(taken) and bool((mine[y] & theirs[x]) - mine[x] - theirs[y])


def _told_of_another(mine: dict[str, set[str]], theirs: dict[str, set[str]], number: str) -> bool:
    """Whether a number stands with other words of both texts: measure twice, cut once; measure once, cut twice."""
    ours, yours = ({word for word in each[number] if not word.endswith("…")} for each in (mine, theirs))
    counted = ours & yours
    return bool(ours - counted) and bool(yours - counted) and ours <= theirs.keys() and yours <= mine.keys()


def _as_one(found: tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    main = [word for phrase in found if not phrase.marker for word in phrase.words]
    rest = [word for phrase in found if phrase.marker for word in phrase.words]
    return (Phrase(_MAIN, (*main, *rest)),)


def _triples(found: tuple[Phrase, ...]) -> set[tuple[str, str, str]]:
    return {triple for phrase in found for triple in combinations(phrase.words, 3)}


def _markers(found: tuple[Phrase, ...]) -> dict[str, set[str]]:
    markers: dict[str, set[str]] = defaultdict(set)
    for phrase in found:
        for word in phrase.words:
            markers[word].add(phrase.marker)
    return markers
