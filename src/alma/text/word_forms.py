"""Written forms of words: compounds, names, numbers and abbreviations, so that one form finds the other.

Indexed texts have additional terms: the parts of a name like `getUserName`, and `backend` for *back-end*. Queries do
not, because a matching text would seem to lack some of them; `wholes_in` lists further terms to search for.
"""

from __future__ import annotations

import re
from itertools import islice
from string import ascii_lowercase, ascii_uppercase, digits

from alma.lazy import lazy_regex

_SMALL = "a-zß-öø-ÿа-яёα-ω"
_CAPITAL = "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
_LETTER = _SMALL + _CAPITAL
# A camel-case boundary: a capital after a lower-case letter or digit, or the end of an abbreviation (HTTPServer).
_HUMP = f"[{_SMALL}0-9][{_CAPITAL}]|[{_CAPITAL}]{{2}}[{_SMALL}]{{2}}"
_NAME = lazy_regex(f"(?<![{_LETTER}0-9])(?=[{_LETTER}0-9]*?(?:{_HUMP}))[{_LETTER}0-9]{{3,64}}(?![{_LETTER}0-9])")
_PART = lazy_regex(
    f"[{_CAPITAL}]+(?=[{_CAPITAL}][{_SMALL}]{{2}})|[{_CAPITAL}]?[{_SMALL}0-9]+|[{_CAPITAL}][{_CAPITAL}0-9]*s?"
)
_SHORT_NAME = 20
_SHORTEST_PART = 2
_LONGEST_JOINED = 64
# A letter joined to a word: e-mail, x-ray.
_LETTERED = lazy_regex(f"(?<![\\w-])([{_LETTER}])-([{_LETTER}]{{3,}})(?![\\w-])")
# The same, words joined by underscores, and two short words with a hyphen: user_name, gpt-4, back-end.
_COMPOUND = lazy_regex(
    f"(?<![\\w-])(?:[{_LETTER}][{_LETTER}0-9]*(?:_[{_LETTER}0-9]+){{1,5}}|[{_LETTER}]-[{_LETTER}]{{3,}}"
    f"|(?=[{_LETTER}0-9-]{{3,9}}(?![\\w-]))[{_LETTER}][{_LETTER}0-9]*-[{_LETTER}0-9]+)(?![\\w-])"
)
# In a query, hyphenated words of any length.
_TWO_PIECES = lazy_regex(f"(?<![\\w-])([{_LETTER}]{{2,}})[-\u2010\u2011]([{_LETTER}]{{2,}})(?![\\w-])")
_MOST_WHOLES = 8
# Grouped digits as written in several countries and in code: 1,000.
_GROUPS = "[,'_\u2019\u066c\u00a0\u202f\u2009]"
_NUMBER = lazy_regex(rf"(?<![\w.,'])\d{{1,3}}(?:{_GROUPS}\d{{3}})+(?![\d,_'])")
_BETWEEN = lazy_regex(rf"[-]|{_GROUPS}")


# One character for each class, for a quick check.
_LIKE = {**dict.fromkeys(ascii_uppercase, "A"), **dict.fromkeys(ascii_lowercase, "a"), **dict.fromkeys(digits, "0")}
_LIKE |= {",": ",", "'": ","}
_KINDS = "".join(_LIKE.get(chr(code), " ") for code in range(256)).encode()
_GROUPED = b"0,0"


def may_have_joints(text: str) -> bool:
    """Whether a text may have compounds, names or grouped numbers."""
    if "-" in text or "_" in text:
        return True
    kinds = _kinds(text)
    return _GROUPED in kinds or _has_humps(kinds)


def in_all_pieces(text: str) -> str:
    """A text to index: names are followed by their parts, compounds and numbers by their joined form."""
    kinds = _kinds(text)
    if _has_humps(kinds):
        text = _NAME.sub(_with_parts, text)
    if "-" in text or "_" in text:
        text = _COMPOUND.sub(_with_whole, text)
    return _NUMBER.sub(_with_whole, text) if "_" in text or _GROUPED in kinds else text


def in_one_piece(text: str) -> str:
    """A query: numbers joined, *email* for *e-mail*, and *tshirt shirt* for *t-shirt*."""
    return _NUMBER.sub(_whole, _LETTERED.sub(_as_one, text))


def wholes_in(question: str) -> list[tuple[str, str]]:
    """The compounds of a query joined, each with its parts: *backend* for *back-end*."""
    found = islice(_TWO_PIECES.finditer(question), _MOST_WHOLES)
    return [(match[1] + match[2], f"{match[1]} {match[2]}") for match in found]


def _kinds(text: str) -> bytes:
    return text.encode("ascii").translate(_KINDS) if text.isascii() else b"aA" + _GROUPED


def _has_humps(kinds: bytes) -> bool:
    return b"aA" in kinds or b"0A" in kinds or b"AAaa" in kinds


def _with_parts(name: re.Match[str]) -> str:
    parts = _PART.findall(name[0])
    # Not in keys and digests, which have many case changes.
    least = 2 if len(name[0]) <= _SHORT_NAME else 3
    if len(parts) < 2 or len(name[0]) < least * len(parts):
        return name[0]
    return " ".join((name[0], *(part for part in parts if len(part) >= _SHORTEST_PART)))


def _as_one(word: re.Match[str]) -> str:
    # "E-mail" is not "mail", but a t-shirt is a shirt.
    return _whole(word) if word[1] in "eE" else f"{_whole(word)} {word[2]}"


def _with_whole(match: re.Match[str]) -> str:
    whole = _whole(match)
    return f"{match[0]} {whole}" if len(whole) <= _LONGEST_JOINED else match[0]


def _whole(match: re.Match[str]) -> str:
    return _BETWEEN.sub("", match[0])


ABBREVIATIONS = {
    "acct": "account",
    "admin": "administrator",
    "app": "application",
    "appt": "appointment",
    "auth": "authentication",
    "config": "configuration",
    "db": "database",
    "deps": "dependencies",
    "dept": "department",
    "docs": "documentation",
    "env": "environment",
    "infra": "infrastructure",
    "js": "javascript",
    "k8s": "kubernetes",
    "mgmt": "management",
    "perf": "performance",
    "prod": "production",
    "repo": "repository",
    "stats": "statistics",
}
_AROUND = ".,;:!?()[]{}\"'`"


def spelled_out(text: str) -> str:
    """The text with abbreviations in full, as embedding models know few of them."""
    words = text.split()
    full = [ABBREVIATIONS.get(word.strip(_AROUND).casefold()) for word in words]
    if not any(full):
        return text
    pairs = zip(words, full, strict=True)
    return " ".join(word if long is None else word.replace(word.strip(_AROUND), long) for word, long in pairs)
