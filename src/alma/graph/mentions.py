"""The vocabulary of `english.toml`, and the entities that its rules find in a text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from alma.lazy import lazy_regex
from alma.text.tokens import STOP_WORDS

PERSON = "person"
ORGANIZATION = "organization"
TECHNOLOGY = "technology"
FILE = "file"
URL = "url"
EMAIL = "email"
DATE = "date"
PULL_REQUEST = "pull_request"
ISSUE = "issue"
IDENTIFIER = "identifier"
CONCEPT = "concept"

ENTITY_TYPES = (
    PERSON,
    ORGANIZATION,
    TECHNOLOGY,
    FILE,
    URL,
    EMAIL,
    DATE,
    PULL_REQUEST,
    ISSUE,
    IDENTIFIER,
    CONCEPT,
)

_PLACEHOLDER = lazy_regex(r"\{([a-z_]+)\}")


def _loaded() -> dict[str, Any]:
    return tomllib.loads(resources.files("alma.graph").joinpath("english.toml").read_text(encoding="utf-8"))


TABLES = _loaded()
WORDS = {name: frozenset(text.split()) for name, text in TABLES["words"].items()}


def _forms(verb: str) -> tuple[str, ...]:
    """Base form, third person and past of a regular verb."""
    head, _, preposition = verb.partition(" ")
    ends_in_y = head.endswith("y") and head[-2] not in "aeiou"
    if head == "submit":
        past = "submitted"
    elif ends_in_y:
        past = f"{head[:-1]}ied"
    else:
        past = head + ("d" if head.endswith("e") else "ed")
    third = f"{head[:-1]}ies" if ends_in_y else head + ("es" if head.endswith(("x", "s", "sh", "ch")) else "s")
    return tuple(f"{form} {preposition}".strip() for form in (head, third, past))


VERBS: dict[str, str] = {
    **{form: relation for verb, relation in TABLES["verbs"]["regular"].items() for form in _forms(verb)},
    **TABLES["verbs"]["irregular"],
}
BASE_FORMS = frozenset([*TABLES["verbs"]["regular"], "lead", "build", "know", "run on"])
"""Forms with a plural subject: after one name they are nouns or imperatives."""


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern of `english.toml`."""
    return compiled(TABLES["patterns"][name])


def compiled(text: str) -> re.Pattern[str]:
    """Compile a pattern after inserting the alternatives and patterns that it refers to."""
    return re.compile(_expanded(text))


def _expanded(text: str) -> str:
    return _PLACEHOLDER.sub(lambda match: _referenced(match[1]), text)


def _referenced(name: str) -> str:
    if name == "known_verbs":
        return "|".join(sorted(map(re.escape, VERBS), key=len, reverse=True))
    if name in TABLES["alternatives"]:
        return "|".join(TABLES["alternatives"][name])
    return "|".join(sorted(WORDS[name])) if name in WORDS else _expanded(TABLES["patterns"][name])


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity at a place of the text."""

    start: int
    end: int
    name: str
    entity_type: str
    confidence: float


_Rule = Callable[[str], Iterator[Mention]]
# Replaces the text of entities that were found already.
_COVERED = "\ue000"


def mentions(text: str) -> list[Mention]:
    """The entities that the rules find, in order; where two rules overlap, the earlier rule wins."""
    found: list[Mention] = []
    taken = bytearray(len(text))
    for rule in _rules():
        # A person can follow an entity directly: the CEO of Acme Corp Alice Smith.
        for mention in rule(_covered(text, taken) if rule is _people else text):
            if mention.name and not any(taken[mention.start : mention.end]):
                taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
                found.append(mention)
    return sorted(found, key=lambda mention: mention.start)


def _covered(text: str, taken: bytearray) -> str:
    return "".join(_COVERED if known else c for c, known in zip(text, taken, strict=True))


@cache
def _rules() -> tuple[_Rule, ...]:
    functions: dict[str, _Rule] = {
        "numbered": _numbered,
        "unnumbered": _unnumbered,
        "companies": _companies,
        "employers": _employers,
        "deals": _deals,
        "origins": _origins,
        "people": _people,
    }
    rows = TABLES["entities"]
    return tuple(functions[each["function"]] if "function" in each else _by(**each) for each in rows)


def _by(pattern: str, type: str, confidence: float) -> _Rule:  # noqa: A002 - the names of the table
    """A rule for a pattern, whose first group, if it has one, is the name."""
    expression = compiled(pattern)

    def rule(text: str) -> Iterator[Mention]:
        for match in expression.finditer(text):
            group = 1 if expression.groups else 0
            name = match[group]
            if name:
                trimmed = name.rstrip(".,;:!?’'")
                yield Mention(match.start(group), match.start(group) + len(trimmed), trimmed, type, confidence)

    return rule


def _numbered(text: str) -> Iterator[Mention]:
    """Pull requests and issues with a number: PR #42, issue 7, ABC-123, #9."""
    forms = (
        ("numbered_request", PULL_REQUEST, "PR #"),
        ("numbered_ticket", ISSUE, "issue #"),
        ("numbered", ISSUE, "#"),
    )
    for name, entity_type, prefix in forms:
        for match in pattern(name).finditer(text):
            yield Mention(match.start(), match.end(), f"{prefix}{match[2]}", entity_type, 0.95)


def _unnumbered(text: str) -> Iterator[Mention]:
    """The PR, this ticket: definite, but without a number."""
    for name, entity_type, shown in (
        ("definite_request", PULL_REQUEST, "PR"),
        ("definite_ticket", ISSUE, ""),
    ):
        for match in pattern(name).finditer(text):
            yield Mention(match.start(), match.end(), shown or match[0].lower(), entity_type, 0.6)


def _companies(text: str) -> Iterator[Mention]:
    """Names with a company's ending, without titles and sentence openings in front."""
    for match in pattern("company").finditer(text):
        start, name = match.start(), match[0].rstrip(".")
        for connected in reversed([*pattern("company_part").finditer(name)]):
            if connected[1].lower() not in WORDS["institutions"]:
                start, name = start + connected.end(), name[connected.end() :]
                break
        while (first := re.match(r"(\S+)\s+(?=\S)", name)) and _is_no_name(first[1]):
            start, name = start + first.end(), name[first.end() :]
        if " " in name:
            yield Mention(start, start + len(name), name, ORGANIZATION, 0.95)


def _employers(text: str) -> Iterator[Mention]:
    """CEO of X, VP of Sales at X."""
    for match in pattern("employer").finditer(text):
        yield from _organization(match, "name", 0.8)


def _deals(text: str) -> Iterator[Mention]:
    """Organizations that buy, join or pay for each other; people can buy things that are not organizations."""
    for row in TABLES["deals"]:
        for match in compiled(row["pattern"]).finditer(text):
            is_person = match["one"].split()[0].lower() in WORDS["first_names"]
            for name in ("one", "other"):
                if name in match.groupdict() and not is_person:
                    yield from _organization(match, name, 0.75)


def _origins(text: str) -> Iterator[Mention]:
    """Bob Jones from X, Eve of X: an employer or a place."""
    for match in pattern("origin").finditer(text):
        if match["who"].lower() in WORDS["first_names"]:
            is_place = match["name"].split()[0].lower() in WORDS["places"] | WORDS["departments"]
            yield from _organization(match, "name", 0.5 if is_place else 0.7, CONCEPT if is_place else ORGANIZATION)


def _organization(match: re.Match[str], group: str, confidence: float, sort: str = ORGANIZATION) -> Iterator[Mention]:
    """The organization in a group of a match, up to where the name of a person begins."""
    words = [(match.start(group) + word.start(), word[0]) for word in re.finditer(r"\S+", match[group])]
    while words and _is_no_name(words[0][1]):
        words.pop(0)
    people = (i for i, (_, word) in enumerate(words) if word.lower() in WORDS["first_names"])
    words = words[: next(people, len(words))]
    if words and words[0][1].lower() not in (WORDS["departments"] if sort is ORGANIZATION else ()):
        start, end = words[0][0], words[-1][0] + len(words[-1][1])
        name = re.sub(r"['’]s?$", "", match.string[start:end].rstrip(".,;:!?"))
        yield Mention(start, start + len(name), name, sort, confidence)


def _people(text: str) -> Iterator[Mention]:
    english = _reads_english(text)
    for match in pattern("person").finditer(text):
        words = list(_words_of(match))
        while words and _is_no_name(words[0][1]):
            words.pop(0)
        while words and _is_no_name(words[-1][1]):
            words.pop()
        if words and not _is_department(text, words):
            yield from _person(text, words, english)


def _is_no_name(word: str) -> bool:
    """Whether a capitalised word is not a name; I've and I'll count as I."""
    return re.split("['’]", word.lower())[0] in WORDS["not_names"]


def _is_department(text: str, words: list[tuple[int, str]]) -> bool:
    """Whether the words name a department after a title: VP of Sales at …"""
    start = words[0][0]
    named = words[-1][1].lower() in WORDS["departments"]
    return named and pattern("headed").search(text[max(0, start - 80) : start]) is not None


def _person(text: str, words: list[tuple[int, str]], english: bool) -> Iterator[Mention]:
    start, end = words[0][0], words[-1][0] + len(words[-1][1])
    name = text[start:end]
    bare = re.sub(r"['’]s?$", "", name)
    end -= len(name) - len(bare)
    known = bare.split()[0].lower() in WORDS["first_names"]
    if not known and _COVERED in (text[max(0, start - 2) : start] + text[end : end + 2]).replace(" ", "")[:2]:
        return  # A part of a longer entity.
    if known:
        yield Mention(start, end, bare, PERSON, 0.9)
    elif (
        _is_subject(text, start, end, len(words))
        or pattern("addressed").search(text[max(0, start - 30) : start])
        or pattern("with_title").match(text[end : end + 80])
    ):
        yield Mention(start, end, bare, PERSON, 0.65)
    elif (
        english
        and (
            not pattern("sentence_start").search(text[max(0, start - 6) : start])
            or pattern("hyphenated_name").match(bare)
        )
        and len(bare) > 1
    ):
        yield Mention(start, end, bare, CONCEPT, 0.4)


def _is_subject(text: str, start: int, end: int, words: int) -> bool:
    """Whether a verb of people follows and no preposition stands in front."""
    if pattern("after_preposition").search(text[max(0, start - 12) : start]):
        return False
    return pattern("acts_alone" if words == 1 else "acts_with_full_name").match(text[end : end + 60]) is not None


def _reads_english(text: str) -> bool:
    """Whether a text is English; in other languages capitals say less."""
    words = re.findall(r"[^\W\d_]+", text[:2_000].lower())
    return sum(word in STOP_WORDS for word in words) * 10 >= len(words)


def _words_of(match: re.Match[str]) -> Iterable[tuple[int, str]]:
    return ((match.start() + word.start(), word[0]) for word in re.finditer(r"\S+", match[0]))
