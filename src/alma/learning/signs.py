"""Signs: what a text says by other means than words, and the names in which one sign makes another thing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMPARED = {"==": "=", "===": "=", "≤": "<=", "≥": ">=", "≠": "!=", "!==": "!=", "<>": "!=", "≈": "~", "~=": "~"}
# Arrows say from where to where, which is a matter of order.
_ARROWS = re.compile(r"<?[-=]{1,64}+>|<[-=]{2,64}+|[→←↔⇒⇐]")
_COMPARISONS = re.compile(r"===?|!==?|<>|[<>]=?|[≤≥≠≈]|~=|=")
# A sign of arithmetic or logic stands between two spaces or digits, or before what it belongs to.
_OPERATORS = re.compile(
    r"&&|\|\||(?<=\w)[*^&|](?=\w)|(?<=\s)[+*/^&|×÷](?=\s)|(?<=\d)[+*/^×÷](?=\d)|(?<![\w+])\+(?=\w)|(?<=\w)\+(?=\w)|"
    r"(?<![\w)\]-])-(?=\w)|(?<=\b\w )-(?= \w\b)|(?<=\d )-(?= \d)|[±~](?=\d)|%|[$€£¥₹₩₽¢#](?=\d)|[↑↓∧∨∩∪]|\?\s*$"
)
# C++, C# and A*, which are not C and A; .NET.
_LETTER_NAMES = re.compile(r"(?<![\w*+])[A-Za-z]{1,2}(?:\+\+|\+|#|\*)(?![\w*+#])|(?<![\w.])\.[A-Za-z]+\b")
# A switch of a command, without which it does something else: --force.
_SWITCHES = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_NUMBERS = re.compile(r"(?<![\w.])[-+]?\d+(?:[.:]\d+)*|\d+(?:[.:]\d+)*")
# I is who did it, and A at the beginning of a sentence an article.
_ARTICLE = re.compile(r"(?:^|(?<=[.!?] ))A (?=[a-z])")
_SINGLE_LETTERS = re.compile(r"(?<![\w'’])[A-HJ-Z](?![\w'’])")
_PICTURES = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]")
# A model, a release or an edition: one of these words behind a name makes another of it.
_EDITIONS = (
    "turbo mini nano micro pro plus max ultra lite instruct chat base preview vision flash haiku sonnet opus native "
    "enterprise community lts beta alpha rc dev nightly coder"
)
_SIZES = "small medium large xl"
_VERSIONED = re.compile(
    rf"(?<![\w.-])[a-z]\w*(?:[-.]\w+)*-({'|'.join(f'{_EDITIONS} {_SIZES}'.split())})\b|"
    rf"(?<![\w.-])[a-z]+[- .]?\d[\w.]*[- ]({'|'.join(_EDITIONS.split())})\b",
    re.IGNORECASE,
)
# Most texts have none of all this.
_ANY = re.compile(
    r"[^\sA-Za-z,;'’\"()!:.-]|(?<![\w'’])[A-Z](?![\w'’])|(?<![\w)])[-.]\w|- |!=|--|"
    rf"-(?i:{'|'.join(f'{_EDITIONS} {_SIZES}'.split())})\b"
)
_JOINED = re.compile(r"(?<![\w.-])[a-z]\w*(?:[-.]\w+)*")


@dataclass(frozen=True, slots=True)
class Signs:
    """What a text says by signs."""

    telling: frozenset[str]
    versions: frozenset[tuple[str, ...]]
    comparisons: frozenset[str]
    pictures: frozenset[str]

    def differ(self, other: Signs, *, exactly: bool = False) -> bool:
        """Whether two texts say something else by their signs; what only adorns may be missing in one of them.

        `exactly` takes nothing for an ornament.
        """
        if self.telling != other.telling or _extended(self.versions, other.versions):
            return True
        if exactly:
            return (self.comparisons, self.pictures) != (other.comparisons, other.pictures)
        if self.pictures and other.pictures and self.pictures != other.pictures:
            return True
        mine, theirs = self.comparisons, other.comparisons
        if mine and theirs:
            return mine != theirs
        # Set x=5 is set x to 5, and up to 3 times 3 times at most.
        return not (mine | theirs) <= _MAY_BE_MISSING


_NO_SIGNS = Signs(frozenset(), frozenset(), frozenset(), frozenset())
_MAY_BE_MISSING = frozenset(("=", "<="))


def signs_of(text: str) -> Signs:
    """The signs, numbers and single letters of a text."""
    if _ANY.search(text) is None:
        return _NO_SIGNS
    plain = _ARROWS.sub(" ", text)
    telling = {*_NUMBERS.findall(plain), *_SINGLE_LETTERS.findall(_ARTICLE.sub("", plain))}
    names = {name.lower() for name in (*_LETTER_NAMES.findall(plain), *_SWITCHES.findall(plain))}
    without = _LETTER_NAMES.sub(" ", plain)
    telling |= names | set(_OPERATORS.findall(without)) | _editions(plain)
    comparisons = frozenset(_COMPARED.get(sign, sign) for sign in _COMPARISONS.findall(without))
    return Signs(frozenset(telling), _versions(plain), comparisons, frozenset(_PICTURES.findall(plain)))


def _editions(text: str) -> set[str]:
    """What makes a release or an edition another, however it is joined to its name: gpt-4 turbo is gpt-4-turbo."""
    return {(hyphened or spaced).lower() for hyphened, spaced in _VERSIONED.findall(text)}


def _versions(text: str) -> frozenset[tuple[str, ...]]:
    """The names with a number in them, in their parts."""
    found = (name for name in _JOINED.findall(text.lower()) if not name.isalpha())
    return frozenset(tuple(name.split("-")) for name in found if any(map(str.isdigit, name)))


def _extended(mine: frozenset[tuple[str, ...]], theirs: frozenset[tuple[str, ...]]) -> bool:
    """Whether a name of one of them is that of the other and more: gpt-4o and gpt-4o-audio."""
    return any(
        one[: len(other)] == other or other[: len(one)] == one for one in mine - theirs for other in theirs - mine
    )
