"""Order among memories that say the same: a newer fact before the one it overrules, a repetition once."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations

from alma.model.text import terms
from alma.retrieval.change import tells_change
from alma.retrieval.naming import has_digits, has_figure, names_in, tells_of_a_kind
from alma.retrieval.news import owners_in
from alma.retrieval.statements import BELOW_ZERO, Nearness, Statement
from alma.retrieval.states import tells_state

# Two memories speak of the same thing when they match the question by the same words and share this much of their own.
_SAME_SUBJECT, _SAME_WORDS = 0.95, 0.4
# Cosines. What tells of a change, and is as near as that, speaks of the same thing in other words; what is nearer still
# says the same of it, or something else instead.
_SAME_MATTER, _NEARLY_THE_SAME = 0.575, 0.8
# What says by itself that the older one is over need not be nearer than that.
_SAME_WORLD = 0.3
# What tells another figure of the same name is nearer.
_SAME_FIGURE = 0.65
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

    `behind(having, lacking)`: of the projector in room Berlin, and of the one in room Oslo that is newer; of Omar, and
    of Omar's wife.
    """
    for having in sorted(statements, key=lambda statement: len(statement.matched)):
        for lacking in statements:
            if having.score < lacking.score + AHEAD and _has_less(lacking, having):
                behind(having, lacking)


def _has_less(one: Statement, other: Statement) -> bool:
    if one.matched == other.matched:
        return one.id != other.id and _of_what_is_theirs(other, one)
    return one.matched < other.matched


def newest_first(
    statements: Sequence[Statement],
    weight_of: Mapping[str, float],
    overruled: Callable[[Statement, Statement], None],
    over: Callable[[Statement, Statement], None] | None = None,
    *,
    in_other_words: bool = True,
) -> None:
    """Tell of every statement that a newer one about the same thing stands behind; `overruled(older, newer)`.

    `over(older, newer)` where the newer one says by itself that the older one is over.
    What is told `in_other_words` overrules how things are, and not what happened.
    """
    over = over or overruled
    dated = sorted((s for s in statements if s.moment is not None), key=lambda s: (s.moment, s.id))
    near = Nearness(dated)
    for said in _by_owner(dated):
        for older, newer in combinations(said, 2):
            behind = newer.score <= older.score and newer.moment != older.moment
            if not behind:
                continue
            if in_other_words and tells_it_is_over(older, newer, near):
                over(older, newer)
            elif _tells_of_the_same(older, newer, weight_of, near, in_other_words=in_other_words):
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


def _tells_of_the_same(
    older: Statement, newer: Statement, weight_of: Mapping[str, float], near: Nearness, *, in_other_words: bool = True
) -> bool:
    if not same_thing(older, newer, weight_of) and not (in_other_words and _in_other_words(older, newer, near)):
        return False
    return not _of_what_is_theirs(older, newer)


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


def _in_other_words(older: Statement, newer: Statement, near: Nearness) -> bool:
    """Whether a newer one tells that it is no longer so: who lived there has moved, what left at ten leaves at one."""
    if newer.is_remark or older.is_remark or not older.subject:
        return False
    if newer.named != older.named:
        return False
    if not newer.subject >= older.subject or near(older, newer) < _SAME_MATTER:
        return False
    if newer.subject == older.subject and near(older, newer) >= _NEARLY_THE_SAME:
        return True
    # Whoever moved her party did not move.
    told = newer.news
    of_something_else = told.changed and newer.matched.isdisjoint(told.changed | told.into)
    return not of_something_else and told.owners <= older.words and tells_change(newer.text)


def _of_what_is_theirs(older: Statement, newer: Statement) -> bool:
    """ "Eva's brother has moved" says nothing of where Eva lives."""
    # Few tell whose something is, which is seen at once.
    if "'s " not in newer.text and "’s " not in newer.text:
        return False
    return any(belonging.isdisjoint(older.words | newer.matched) for belonging in newer.news.belongings)


def tells_it_is_over(older: Statement, newer: Statement, near: Nearness) -> bool:
    """Whether a newer one says that what the older one tells has ended, or that it is something else by now."""
    if not newer.news or newer.is_remark or older.is_remark or not newer.named <= older.named:
        return False
    if _lives_otherwise(older, newer):
        return True
    if _of_what_is_theirs(older, newer):
        return False
    if _ended(older, newer) or _is_another(older, newer, newer.news.changed):
        return near(older, newer) >= _SAME_WORLD
    if newer.news.changed and near(older, newer) >= _SAME_FIGURE and _costs_otherwise(older, newer):
        return True
    return _is_another(older, newer, newer.news.since) and near(older, newer) >= _SAME_MATTER


def _ended(older: Statement, newer: Statement) -> bool:
    """ "We replaced Jenkins": over is what somebody gave up, and what answered the question but is no longer there."""
    told = newer.news
    return _gave_up(older, newer) or (
        told.which <= older.words and not told.ended.isdisjoint(older.words - older.matched)
    )


def _gave_up(older: Statement, newer: Statement) -> bool:
    """Whether somebody gave up what answered the question, or all that it asks about; not somebody else."""
    told = newer.news
    if not told.actors <= older.words or (not told.doers <= older.words and not older.called <= newer.words):
        return False
    given_up = told.given_up - {term for term in told.few if tells_of_a_kind(older.text, term)}
    return not given_up.isdisjoint(older.words - older.matched) or (bool(given_up) and given_up <= older.words)


def takes_back(older: Statement, newer: Statement) -> bool:
    """ "No longer dark mode": whether all that a newer wish gives up is what an older one is about."""
    return bool(newer.news.given_up) and newer.news.given_up <= older.words


def _is_another(older: Statement, newer: Statement, told: frozenset[str]) -> bool:
    """ "The deadline was extended to 15 March": what was asked about, with another number where there was one."""
    # Whoever moved, did not move her sister.
    changed = (told & older.subject) - owners_in(older.text)
    if not changed or newer.named != older.named or not newer.news.owners <= older.words:
        return False
    if has_figure(older.text) and not has_figure(newer.text):
        return False
    # "The upload limit" is another one than the limit that was asked about.
    return newer.subject >= older.subject or not changed.isdisjoint(newer.news.alone)


def _costs_otherwise(older: Statement, newer: Statement) -> bool:
    """ "PureGym raised the fee to £27.99": another figure of what both name and nobody asked for."""
    if not has_digits(older.text) or not has_digits(newer.text):
        return False
    shared = (older.words & newer.words) - older.matched - newer.matched
    return not shared.isdisjoint(names_in(older.text) | names_in(newer.text))


def _lives_otherwise(older: Statement, newer: Statement) -> bool:
    """ "We moved to York": where one lives, or works, is asked and told in other words."""
    states = newer.news.states & newer.states
    return bool(states) and tells_state(older.words, states)


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
