"""Order among memories that say the same: a newer fact before the one it overrules, a repetition once."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import combinations

from alma.model.text import STOP_WORDS, terms
from alma.model.vector import Vector
from alma.retrieval.change import asked_verbs, tells_change
from alma.storage.nearest import cosines_among

# Two memories speak of the same thing when they match the question by the same words and share this much of their own.
_SAME_SUBJECT, _SAME_WORDS = 0.95, 0.4
# Cosines. What tells of a change, and is as near as that, speaks of the same thing in other words; what is nearer still
# says the same of it, or something else instead.
_SAME_MATTER, _NEARLY_THE_SAME = 0.575, 0.8
_REPETITION = 0.97
AHEAD = 1e-4
"""By how much what has a name stands before what has not, so that no newer one passes it in the place of an older."""
_LONGEST_STATEMENT = 2_000
_COMPARED = 40
# What a question names in a way that its terms do not keep: letters for a name (IT, US, plan B), parts that belong
# together (web-10, 10.0.0.7, room 4) and numbers below zero.
_LETTERS = re.compile(r"(?<=\w )(?!I\b)[A-Z]{1,4}\b")
# From the start of a word: from anywhere inside, a word of thousands of letters would be gone through as many times.
_JOINED = re.compile(r"(?<!\w)\w+(?:[-./_:@#]\w+)+")
_NUMBERED = re.compile(r"(?<!\w)([^\W\d_]+) \d+(?![\w.:/-]\w|\w)")
_BELOW_ZERO = re.compile(r"(?<![\w.])-\d+")
_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Statement:
    """A memory's text as far as it is compared with others."""

    id: str
    owner: str
    text: str
    moment: datetime | None
    score: float
    words: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    # What it has of the question besides the verb, which says what is asked of a thing.
    subject: frozenset[str] = frozenset()
    vector: Vector | None = None
    # A turn of a conversation: two that share a subject are no versions of one fact.
    is_remark: bool = False
    # What it tells besides its text: that something succeeded is not that it failed.
    result: str = ""
    # Who is shown to say it: what two agents have learned in the same words reads the same.
    voice: str = ""

    @property
    def gist(self) -> tuple[str, str, str] | None:
        """What every copy of it has in common; nothing where it is too long to be left out for another."""
        return (self.voice, self.result, self.text) if len(self.text) <= _LONGEST_STATEMENT else None


def cut(statements: Sequence[Statement], asked: frozenset[str], question: str = "") -> list[Statement]:
    """The best statements that are short enough to be compared, with their words and what they name of the question."""
    chosen = [statement for statement in statements[:_COMPARED] if len(statement.text) <= _LONGEST_STATEMENT]
    names, verbs = _names(question), asked_verbs(question)
    for statement in chosen:
        statement.words = statement.words or frozenset(terms(statement.text))
        statement.matched = statement.words & asked
        statement.subject = statement.matched - verbs
        if names:
            statement.named = frozenset(name for name in names if _names_it(statement.text, name))
    return chosen


def _names(question: str) -> frozenset[str]:
    named = {name for form in (_LETTERS, _JOINED, _BELOW_ZERO) for name in form.findall(question)}
    # "In 2024" names nothing.
    numbered = {each[0] for each in _NUMBERED.finditer(question) if each[1].lower() not in STOP_WORDS}
    return frozenset(named | numbered)


def _names_it(text: str, name: str) -> bool:
    """Whether a text has a name of the question; how its parts are joined does not matter, nor does their case."""
    if name.startswith("-"):
        return name in _BELOW_ZERO.findall(text)
    if name.isalpha():
        # One letter at the beginning is an article.
        return re.search(rf"(?<=\w ){name}\b" if len(name) == 1 else rf"\b{name}\b", text) is not None
    return f" {_NO_LETTER.sub(' ', name).casefold()} " in f" {_NO_LETTER.sub(' ', text).casefold()} "


def named_first(
    statements: Sequence[Statement], weight_of: Mapping[str, float], behind: Callable[[Statement, Statement], None]
) -> None:
    """Tell of every statement with all that the question names that one stands before which is alike and has less.

    `behind(having, lacking)`: of room 4 and of a room with 4 chairs, the former is meant.
    """
    for having in statements:
        # Nothing has less than nothing.
        for lacking in statements if having.named else ():
            stands_behind = lacking.named < having.named and having.score < lacking.score + AHEAD
            if stands_behind and _alike_to(having, lacking, weight_of):
                behind(having, lacking)


def newest_first(
    statements: Sequence[Statement],
    weight_of: Mapping[str, float],
    overruled: Callable[[Statement, Statement], None],
    *,
    in_other_words: bool = True,
) -> None:
    """Tell of every statement that a newer one about the same thing stands behind; `overruled(older, newer)`.

    What is told `in_other_words` overrules how things are, and not what happened.
    """
    dated = sorted((s for s in statements if s.moment is not None), key=lambda s: (s.moment, s.id))
    near = Nearness(dated)
    for said in _by_owner(dated):
        for older, newer in combinations(said, 2):
            behind = newer.score <= older.score and newer.moment != older.moment
            if not behind:
                continue
            if same_thing(older, newer, weight_of) or (in_other_words and _in_other_words(older, newer, near)):
                overruled(older, newer)


def as_of(
    statements: Sequence[Statement],
    weight_of: Mapping[str, float],
    before: Callable[[Statement, Statement], None],
    end: datetime | None,
) -> None:
    """Tell of every statement that something stands before which was told of the same thing only after that time.

    `before(older, newer)`: who was on call in February is not who is since April. Without an end, what was so before
    the newest is asked for.
    """
    dated = sorted((s for s in statements if s.moment is not None and not s.is_remark), key=lambda s: (s.moment, s.id))
    near = Nearness(dated)
    for said in _by_owner(dated):
        pairs = [pair for pair in combinations(said, 2) if _tells_of_the_same(*pair, weight_of, near)]
        overruled = {older.id for older, _ in pairs}
        for older, newer in pairs:
            too_late = newer.id not in overruled if end is None else _lies_between(older, end, newer)
            if too_late and older.score <= newer.score and older.moment != newer.moment:
                before(older, newer)


def _lies_between(older: Statement, end: datetime, newer: Statement) -> bool:
    return older.moment is not None and newer.moment is not None and older.moment < end <= newer.moment


def _tells_of_the_same(older: Statement, newer: Statement, weight_of: Mapping[str, float], near: Nearness) -> bool:
    return same_thing(older, newer, weight_of) or _in_other_words(older, newer, near)


def in_sequence(
    statements: Sequence[Statement],
    weight_of: Mapping[str, float],
    before: Callable[[Statement, Statement], None],
    *,
    first: bool,
) -> None:
    """Tell of every statement that stands behind a like one although it is nearer to the end that is asked for.

    `before(wanted, other)`: the last outage is the newest of those that speak of one, the `first` the oldest.
    """
    dated = [s for s in statements if s.moment is not None and not s.is_remark]
    dated.sort(key=lambda s: (s.moment, s.id), reverse=first)
    near = Nearness(dated)
    for said in _by_owner(dated):
        for other, wanted in combinations(said, 2):
            behind = wanted.score <= other.score and wanted.moment != other.moment
            if behind and _answers_as_well(wanted, other, weight_of, near):
                before(wanted, other)


def _answers_as_well(one: Statement, other: Statement, weight_of: Mapping[str, float], near: Nearness) -> bool:
    """Whether both have the same of the question, or nothing, and speak of the same matter."""
    if one.named != other.named:
        return False
    if one.matched or other.matched:
        return _match_the_same(one, other, weight_of)
    return near(one, other) >= _SAME_MATTER


def _by_owner(statements: Iterable[Statement]) -> Iterable[Sequence[Statement]]:
    """The statements of each owner: what others say is never the same."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        found[statement.owner].append(statement)
    return found.values()


class Nearness:
    """How near statements are by meaning; for all at once, when it is first asked."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._with_vectors = [each for each in statements if each.vector is not None]
        self._place: dict[str, int] | None = None
        self._rows: list[list[float]] = []

    def __call__(self, one: Statement, other: Statement) -> float:
        if self._place is None:
            self._place = self._reckoned()
        if one.id not in self._place or other.id not in self._place:
            return 0.0
        return self._rows[self._place[one.id]][self._place[other.id]]

    def _reckoned(self) -> dict[str, int]:
        vectors = [each.vector for each in self._with_vectors if each.vector is not None]
        if len(set(map(len, vectors))) > 1:
            # Half-way to another model they cannot be compared.
            return {}
        self._rows = cosines_among(vectors)
        return {each.id: place for place, each in enumerate(self._with_vectors)}


def _in_other_words(older: Statement, newer: Statement, near: Nearness) -> bool:
    """Whether a newer one tells that it is no longer so: who lived there has moved, what left at ten leaves at one."""
    if newer.is_remark or older.is_remark or not older.subject:
        return False
    if newer.named != older.named:
        return False
    if not newer.subject >= older.subject or near(older, newer) < _SAME_MATTER:
        return False
    if newer.matched == older.matched and near(older, newer) >= _NEARLY_THE_SAME:
        return True
    return tells_change(newer.text)


def same_thing(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    """Whether both say something about the same thing, as far as the question is concerned."""
    return one.named == other.named and _alike_to(one, other, weight_of)


def _alike_to(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    """Whether both share their words, and those with the question."""
    # Few share enough of their words, and that is quickly seen.
    if one.owner != other.owner or not one.words or not other.words or _overlap(one, other) < _SAME_WORDS:
        return False
    return _match_the_same(one, other, weight_of)


def _match_the_same(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    """Whether both have as good as the same words of the question."""
    either = sum(weight_of.get(word, 1.0) for word in one.matched | other.matched)
    both = sum(weight_of.get(word, 1.0) for word in one.matched & other.matched)
    return either > 0 and both >= _SAME_SUBJECT * either


def repeats(one: Statement, other: Statement) -> bool:
    """Whether one says nothing that the other does not: the same words in the same order, and the same signs."""
    if one.voice != other.voice or one.result != other.result or not one.words:
        return False
    shorter, longer = sorted((len(one.words), len(other.words)))
    # They overlap by no more than the shorter one has, and few overlap as much.
    if shorter / longer < _REPETITION or _overlap(one, other) < _REPETITION:
        return False
    return _signs(one.text) == _signs(other.text) and _alike(terms(one.text), terms(other.text))


def _alike(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the words come in the same order: Anna owes Ben something else than Ben owes Anna."""
    return some == others or SequenceMatcher(None, some, others, autojunk=False).ratio() >= _REPETITION


def _signs(text: str) -> list[str]:
    """What a text says without words: signs of comparison, arrows, pictures, and numbers below zero."""
    return [*(sign for sign in text if unicodedata.category(sign) in ("Sm", "So")), *_BELOW_ZERO.findall(text)]


def _overlap(one: Statement, other: Statement) -> float:
    shared = len(one.words & other.words)
    return shared / (len(one.words) + len(other.words) - shared)
