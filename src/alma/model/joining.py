"""Joining: names and numbers that are written in one piece here and in several there, so that either finds both.

What a store indexes has more words than are written: the parts of a name like `getUserName`, and `backend` where
*back-end* stands. A question has not, or else a text that answers it would seem to lack some of them.
"""

from __future__ import annotations

import re

_SMALL = "a-zß-öø-ÿа-яёα-ω"
_CAPITAL = "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
_LETTER = _SMALL + _CAPITAL
# A name has a hump where a capital follows a small letter or digit, and where an abbreviation ends: HTTPServer.
_HUMP = f"[{_SMALL}0-9][{_CAPITAL}]|[{_CAPITAL}]{{2}}[{_SMALL}]{{2}}"
_NAME = re.compile(f"(?<![{_LETTER}0-9])(?=[{_LETTER}0-9]*?(?:{_HUMP}))[{_LETTER}0-9]{{3,64}}(?![{_LETTER}0-9])")
_PART = re.compile(
    f"[{_CAPITAL}]+(?=[{_CAPITAL}][{_SMALL}]{{2}})|[{_CAPITAL}]?[{_SMALL}0-9]+|[{_CAPITAL}][{_CAPITAL}0-9]*s?"
)
_SHORT_NAME = 20
_SHORTEST_PART = 2
_LONGEST_JOINED = 64
# A letter that another word goes with: e-mail, x-ray.
_LETTERED = re.compile(f"(?<![\\w-])([{_LETTER}])-([{_LETTER}]{{3,}})(?![\\w-])")
# These, what underscores hold together, and two short words with a hyphen: user_name, gpt-4, back-end. Longer ones are
# hardly ever written in one piece, and would only make texts longer.
_COMPOUND = re.compile(
    f"(?<![\\w-])(?:[{_LETTER}][{_LETTER}0-9]*(?:_[{_LETTER}0-9]+){{1,5}}|[{_LETTER}]-[{_LETTER}]{{3,}}"
    f"|(?=[{_LETTER}0-9-]{{3,9}}(?![\\w-]))[{_LETTER}][{_LETTER}0-9]*-[{_LETTER}0-9]+)(?![\\w-])"
)
# 1,000 as it is written in several countries and in code.
_GROUPS = "[,'_\u2019\u066c\u00a0\u202f\u2009]"
_NUMBER = re.compile(rf"(?<![\w.,'])\d{{1,3}}(?:{_GROUPS}\d{{3}})+(?![\d,_'])")
_BETWEEN = re.compile(rf"[-]|{_GROUPS}")


# ASCII as capitals and others of a word, and as digits and what groups them: to see at once whether there is a hump or
# a number in groups.
_BY_CASE = bytes(ord("A" if 65 <= i < 91 else "a" if i < 128 and chr(i).isalnum() else " ") for i in range(256))
_BY_DIGIT = bytes(ord("0" if 48 <= i < 58 else "," if chr(i) in ",'" else " ") for i in range(256))


def may_have_joints(text: str) -> bool:
    """Whether a text may have anything that is written in other pieces elsewhere."""
    return "-" in text or "_" in text or _may_have_humps(text) or _may_have_groups(text)


def in_all_pieces(text: str) -> str:
    """A text to be found: behind each name its parts, behind each compound and number what it is in one piece."""
    if _may_have_humps(text):
        text = _NAME.sub(_with_parts, text)
    if "-" in text or "_" in text:
        text = _COMPOUND.sub(_with_whole, text)
    return _NUMBER.sub(_with_whole, text) if "_" in text or _may_have_groups(text) else text


def in_one_piece(text: str) -> str:
    """A text to be compared or asked: numbers as one, *email* for *e-mail*, and *tshirt shirt* for *t-shirt*."""
    return _NUMBER.sub(_whole, _LETTERED.sub(_as_one, text))


def _may_have_humps(text: str) -> bool:
    if not text.isascii():
        return True
    cases = text.encode("ascii").translate(_BY_CASE)
    return b"aA" in cases or b"AAaa" in cases


def _may_have_groups(text: str) -> bool:
    return not text.isascii() or b"0,0" in text.encode("ascii").translate(_BY_DIGIT)


def _with_parts(name: re.Match[str]) -> str:
    parts = _PART.findall(name[0])
    # In a key or a digest every other letter would be one.
    least = 2 if len(name[0]) <= _SHORT_NAME else 3
    if len(parts) < 2 or len(name[0]) < least * len(parts):
        return name[0]
    return " ".join((name[0], *(part for part in parts if len(part) >= _SHORTEST_PART)))


def _as_one(word: re.Match[str]) -> str:
    # Mail without the letter is another thing; a shirt is not.
    return _whole(word) if word[1] in "eE" else f"{_whole(word)} {word[2]}"


def _with_whole(match: re.Match[str]) -> str:
    whole = _whole(match)
    return f"{match[0]} {whole}" if len(whole) <= _LONGEST_JOINED else match[0]


def _whole(match: re.Match[str]) -> str:
    return _BETWEEN.sub("", match[0])
