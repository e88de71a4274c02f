"""The word lists, phrases and patterns of the rules in this package, read from the files in `data/`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

_SYNTAX = {"(": "(?:", ")": ")", "|": "|", "*": r"\w*", " ": r"[\s-]+", "'": "['’]"}


@cache
def table(name: str) -> dict[str, Any]:
    """The content of a JSON file."""
    loaded: dict[str, Any] = json.loads(_text_of(f"{name}.json"))
    return loaded


@cache
def patterns(section: str) -> dict[str, re.Pattern[str]]:
    """The regular expressions of one section of `patterns.toml`."""
    return {name: re.compile(text) for name, text in tomllib.loads(_text_of("patterns.toml"))[section].items()}


@cache
def phrases(name: str) -> re.Pattern[str]:
    """The pattern that finds any phrase of one list of `phrases.json`."""
    return phrase_pattern(table("phrases")[name])


def phrase_pattern(wanted: Iterable[str]) -> re.Pattern[str]:
    """The pattern that finds any of the phrases as whole words, ignoring case; earlier phrases win.

    `(a|b)` lists alternatives, `*` stands for any word ending, and a space also matches a hyphen.
    """
    alternatives = ("".join(_SYNTAX.get(sign) or re.escape(sign) for sign in phrase) for phrase in wanted)
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)", re.IGNORECASE)


def _text_of(file: str) -> str:
    return resources.files("alma.memory").joinpath("data", file).read_text(encoding="utf-8")
