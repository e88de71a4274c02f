"""Extent: of how much a text says something: of all or one, of both or either, of nothing else, or in some cases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from alma.learning.phrases import Phrase, Words, cut

# How much of something is meant, by the words that say as much; where none stands, any may be meant.
_AMOUNTS = {
    "all": "all every each both",
    "most": "most",
    "some": "some several",
    "few": "few",
    "one": "one either",
}
_AMOUNT_OF = {word: amount for amount, words in _AMOUNTS.items() for word in words.split()}
# A few are some. One by one, one more and this one are no amounts, and either way is any.
_AMOUNT = re.compile(
    rf"\b(?:a few|(?<!\ba )(?<!-)(?<!\bthis )(?<!\bthat )(?<!\bthe )(?<!\bat least )(?<!\beach )(?<!\bevery )"
    rf"(?:{'|'.join(_AMOUNT_OF)})(?![-\w'’])(?! (?:by|at|after|more|another|time|way)\b))",
    re.IGNORECASE,
)
# Any request is every one of them, but if any fails, and where any of them is waited for, one is enough.
_ANY_IS_ENOUGH = re.compile(
    r"\b(?:(?:if|when|whenever|once|until|till|unless|in case|as (?:soon|long) as|wait\w* (?:for|on)|await\w*|"
    r"requir\w+|needs?|needing|expect\w*|suffic\w+)\b[^.,;:]*? any|any (?:one|of))\b",
    re.IGNORECASE,
)
# Only after something is after it; the only copy is a copy.
_ONLY = re.compile(
    r"(?<!\bthe )(?<!\bnot )(?<!-)\b(?:only|solely|exclusively)\b(?! (?:after|once|when|whenever|if|until|then)\b)",
    re.IGNORECASE,
)
_TELLING = frozenset((*_AMOUNT_OF, "any", "only", "solely", "exclusively"))
_LINKS = {"and": "and", "&": "and", "or": "or", "|": "or"}
# Where, with what and from where something is done; why and for what it is done may be put in many ways.
_PLACES = frozenset(("in", "on", "at", "as", "by", "with", "from", "via", "under", "against", "per", "between"))
_CASES = frozenset(("when", "that"))


class Link(NamedTuple):
    """Two parts of a text that are both meant, or either of them."""

    word: str
    before: frozenset[str]
    after: frozenset[str]

    def turns(self, other: Link) -> bool:
        """Whether the same parts are linked by another word."""
        if self.word == other.word:
            return False
        in_turn = self.before & other.before and self.after & other.after
        return bool(in_turn or (self.before & other.after and self.after & other.before))


class Extent(NamedTuple):
    """Of how much a text says something, as far as small words tell."""

    amounts: frozenset[str] = frozenset()
    is_limited: bool = False

    def differs(self, other: Extent) -> bool:
        """Whether two texts mean another amount, or one of them that and nothing else."""
        if self.is_limited is not other.is_limited:
            return True
        return bool(self.amounts - other.amounts) and bool(other.amounts - self.amounts)


_NO_EXTENT = Extent()


def extent_of(text: str, words: Iterable[str]) -> Extent:
    """The extent of a text, whose words these are in lower case."""
    # Most texts have none of these words.
    if _TELLING.isdisjoint(words):
        return _NO_EXTENT
    amounts = frozenset(_AMOUNT_OF.get(found.lower(), "some") for found in _AMOUNT.findall(text))
    if _ANY_IS_ENOUGH.search(text):
        amounts |= {"one"}
    return Extent(amounts, _ONLY.search(text) is not None)


def links(text: str, words: Words) -> tuple[Link, ...]:
    """What is linked to what in a text."""
    return tuple(
        Link(_LINKS[after.link], frozenset(before.words), frozenset(after.words))
        for before, after in pairwise(cut(text, words))
        if after.link
    )


def linked_otherwise(one: tuple[Link, ...], other: tuple[Link, ...]) -> bool:
    """Whether one means both of what is either in the other."""
    return any(mine.turns(theirs) for mine in one for theirs in other)


def elsewhere(one: tuple[Phrase, ...], other: tuple[Phrase, ...]) -> bool:
    """Whether the texts differ in where or with what it is done, and in nothing else: in UTC, in local time."""
    mine, theirs = ({(phrase.marker, phrase.words) for phrase in each} for each in (one, other))
    only_mine, only_theirs = mine - theirs, theirs - mine
    if not len(only_mine) == len(only_theirs) == 1:
        return False
    (marker, here), (other_marker, there) = *only_mine, *only_theirs
    if marker != other_marker or marker not in _PLACES:
        return False
    # A hash map is a hashmap.
    return set(here).isdisjoint(there) and "".join(here) != "".join(there)


def in_a_case_only(one: tuple[Phrase, ...], other: tuple[Phrase, ...]) -> bool:
    """Whether one says the same as the other, but only of some cases: retry requests, retry requests that time out."""
    mine, theirs = (
        frozenset(word for phrase in each for word in phrase.words) - _AMOUNT_OF.keys() for each in (one, other)
    )
    return _adds_a_case(one, mine, theirs) or _adds_a_case(other, theirs, mine)


def _adds_a_case(longer: tuple[Phrase, ...], words: frozenset[str], others: frozenset[str]) -> bool:
    if not others < words:
        return False
    return any(phrase.marker in _CASES and others.isdisjoint(phrase.words) for phrase in longer)
