"""The rules that describe secrets, which are data (`rules.toml`), and the engine that tries them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from alma.redaction.values import CHECKS, MARK
from alma.text.scanning import found_in, matches

MIN_KEY_LENGTH = 16
"""No vendor's key is shorter."""

_START, _END = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a text a secret is, and of which kind it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of secret; `hint` is a keyword, or several, that a text must contain for the pattern to be tried.

    The secret is the group `secret` of the pattern, or the whole match; `accept` has the last word on it. A pattern may
    also match, without that group, what only begins like a secret: that is passed over as a whole.
    """

    kind: str
    hint: str | tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = lambda _: True
    # Long texts are read in windows, except for a pattern that is linear in time and matches more than a window.
    whole_text: bool = False

    @property
    def hints(self) -> tuple[str, ...]:
        """The keywords, in small letters."""
        return (self.hint,) if isinstance(self.hint, str) else self.hint

    def spans(self, text: str) -> Iterator[Span]:
        """Where secrets of this kind are in a text."""
        group: str | int = "secret" if "secret" in self.pattern.groupindex else 0
        found = self.pattern.finditer(text) if self.whole_text else matches(self.pattern, text)
        for match in found:
            if match[group] and not match[group].startswith(MARK) and self.accept(match[group]):
                yield Span(match.start(group), match.end(group), self.kind)


class RuleSet:
    """Rules that are tried where one of their keywords is found."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_keyword = tuple((hint, rule) for rule in self.rules for hint in rule.hints)

    def spans(self, text: str, folded: str) -> list[Span]:
        """The secrets of a text whose keywords are in `folded`, which is the text in small letters or a part of it."""
        spans: list[Span] = []
        tried: Rule | None = None
        for keyword, rule in self._by_keyword:
            if keyword in folded and rule is not tried:
                spans.extend(rule.spans(text))
                tried = rule
        return spans


@dataclass(frozen=True, slots=True)
class ShippedRules:
    """The rules of `rules.toml`."""

    prefixed: RuleSet
    words: RuleSet
    texts: RuleSet
    prefix: re.Pattern[str]

    def key_spans(self, text: str, long_words: str) -> list[Span]:
        """Keys of known vendors; `long_words` are the long words of the text, in small letters."""
        spans = self.words.spans(text, long_words)
        return spans + self.prefixed.spans(text, long_words) if found_in(self.prefix, long_words) else spans


@cache
def shipped_rules() -> ShippedRules:
    """The rules that come with the package, compiled once."""
    data = tomllib.loads(files("alma.redaction").joinpath("rules.toml").read_text(encoding="utf-8"))
    prefixes = sorted(entry["prefix"].lower() for entry in data["prefixed"])
    return ShippedRules(
        RuleSet(map(_prefixed, data["prefixed"])),
        RuleSet(map(_rule, data["words"])),
        RuleSet(map(_rule, data["texts"])),
        re.compile(rf"(?<![a-z0-9])(?:{_by_first_letter(prefixes)})"),
    )


def _prefixed(entry: dict[str, Any]) -> Rule:
    prefix = entry["prefix"]
    return Rule(entry["kind"], prefix.lower(), re.compile(f"{_START}{re.escape(prefix)}{entry['pattern']}{_END}"))


def _rule(entry: dict[str, Any]) -> Rule:
    checks = tuple(CHECKS[name] for name in entry.get("checks", ()))
    return Rule(
        entry["kind"],
        tuple(entry["keywords"]),
        re.compile(entry["pattern"]),
        lambda value: all(check(value) for check in checks),
        entry.get("whole_text", False),
    )


def _by_first_letter(prefixes: Iterable[str]) -> str:
    """Prefixes as a pattern that compares the first letter before the others, as it is tried at every word."""
    groups = groupby(prefixes, key=lambda prefix: prefix[0])
    further = ((first, "|".join(re.escape(each[1:]) for each in group)) for first, group in groups)
    return "|".join(f"{re.escape(first)}(?:{others})" for first, others in further)
