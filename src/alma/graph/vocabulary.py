"""The words and patterns of the extraction rules, read from `english.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

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

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


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
