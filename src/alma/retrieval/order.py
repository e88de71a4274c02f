"""Order among memories that say the same: a newer fact before the one it overrules, a repetition once."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations, takewhile

from alma.retrieval.statements import BELOW_ZERO, Nearness, Statement
from alma.text.tokens import terms

# Two memories speak of the same thing when they match the question by the same words and share this much of their own.
_SAME_SUBJECT, _SAME_WORDS = 0.95, 0.4
# The cosine of what speaks of the same matter in other words.
_SAME_MATTER = 0.575
# So many words say what a statement is about before it tells the value.
_FEWEST_BEFORE = 2
_JOINTS = re.compile(r"(?<=\w)[./:\\@](?=\w)")
AHEAD = 1e-4
"""By how much what has a name stands before what has not, so that no newer one passes it in the place of an older."""


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


def asked_first(statements: Sequence[Statement], behind: Callable[[Statement, Statement], None]) -> None:
    """Tell of every statement that one stands before which has less of the question, and nothing else of it.

    `behind(having, lacking)`: of the projector in room Berlin, and of the one in room Oslo that is newer.
    """
    for having in sorted(statements, key=lambda statement: len(statement.matched)):
        for lacking in statements:
            if having.score < lacking.score + AHEAD and _has_less(lacking, having):
                behind(having, lacking)


def _has_less(one: Statement, other: Statement) -> bool:
    return one.matched < other.matched


def newest_first(
    statements: Sequence[Statement], weight_of: Mapping[str, float], overruled: Callable[[Statement, Statement], None]
) -> None:
    """Tell of every statement that a newer one stands behind which says the same of the same thing but for its value.

    `overruled(older, newer)`. It compares no more than words: what nobody compared when it was written, as thousands of
    facts that are imported at once, is told in one form mostly.
    """
    dated = sorted((s for s in statements if s.moment is not None), key=lambda s: (s.moment, s.id))
    for said in _by_owner(dated):
        for older, newer in combinations(said, 2):
            behind = newer.score <= older.score and newer.moment != older.moment
            if behind and _has_another_value(older, newer, weight_of):
                overruled(older, newer)


def _has_another_value(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    """Whether two statements answer the same of the question, begin alike and differ in one place behind that."""
    return one.named == other.named and _match_the_same(one, other, weight_of) and in_one_form(one.text, other.text)


def _tells_of_the_same(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    return same_thing(one, other, weight_of) or _has_another_value(one, other, weight_of)


def in_one_form(one: str, other: str) -> bool:
    """Whether two texts are the same but for one place, which neither begins with, and which is not most of them."""
    ours, theirs = one.casefold().split(), other.casefold().split()
    shorter, longer = sorted((len(ours), len(theirs)))
    before = _shared(zip(ours, theirs, strict=False))
    behind = min(_shared(zip(reversed(ours), reversed(theirs), strict=False)), shorter - before)
    return ours != theirs and before >= _FEWEST_BEFORE and before + behind >= _SAME_WORDS * longer


def _shared(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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
    for said in _by_owner(dated):
        pairs = [pair for pair in combinations(said, 2) if _tells_of_the_same(*pair, weight_of)]
        overruled = {older.id for older, _ in pairs}
        for older, newer in pairs if end is None else ():
            # What was before it comes before what was before that.
            if newer.id in overruled and newer.score <= older.score and older.moment != newer.moment:
                before(newer, older)
        # The last that was told until then comes first: each takes the best place that is left.
        for older, newer in sorted(pairs, key=lambda pair: (pair[0].moment, pair[0].id), reverse=True):
            too_late = newer.id not in overruled if end is None else _lies_between(older, end, newer)
            if too_late and older.score <= newer.score and older.moment != newer.moment:
                before(older, newer)


def _lies_between(older: Statement, end: datetime, newer: Statement) -> bool:
    return older.moment is not None and newer.moment is not None and older.moment < end <= newer.moment


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
    """Whether one says what the other does: the same words in the same order, and the same signs.

    One word of a hundred may be a number, a name or a *not*.
    """
    if one.voice != other.voice or one.result != other.result or not one.words or one.words != other.words:
        return False
    return _signs(one.text) == _signs(other.text) and terms(one.text) == terms(other.text)


def _signs(text: str) -> list[str]:
    """What a text says without words: signs of comparison and currencies, arrows, pictures, numbers below zero, and how
    the parts of a name are joined (*app/conf*, *app.conf*)."""
    signs = (sign for sign in text if unicodedata.category(sign) in ("Sc", "Sm", "So"))
    return [*signs, *BELOW_ZERO.findall(text), *_JOINTS.findall(text)]


def _overlap(one: Statement, other: Statement) -> float:
    shared = len(one.words & other.words)
    return shared / (len(one.words) + len(other.words) - shared)
