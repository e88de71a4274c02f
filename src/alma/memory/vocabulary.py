"""The word lists and phrases of the rules in this package, read from the files in `data/`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

_SYNTAX = {"(": "(?:", ")": ")", "|": "|", "*": r"\w*", " ": r"[\s-]+", "'": "['’]"}


@cache
def table(name: str) -> dict[str, Any]:
    """The content of a data file."""
    text = resources.files("alma.memory").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


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
