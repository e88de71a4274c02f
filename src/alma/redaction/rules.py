"""The rules that describe secrets, which are data (`rules.toml`), and the detection of words of high entropy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Any

from alma.lazy import lazy_regex
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

    The secret is the group `secret` of the pattern, or the whole match; `accept` makes the final decision. Where the
    group is not part of the match, the whole match is skipped as harmless.
    """

    kind: str
    hint: str | tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = lambda _: True
    # Long texts are read in windows, except for a pattern that is linear in time and matches more than a window.
    whole_text: bool = False

    @property
    def hints(self) -> tuple[str, ...]:
        """The keywords in lower case."""
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
        """The secrets of a text whose keywords are in `folded`, which is the text in lower case or a part of it."""
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
        """Keys of known vendors; `long_words` are the long words of the text in lower case."""
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


# Whole words only, not parts of paths and addresses.
_WORD = lazy_regex(
    r"(?:(?<![^\s\"'`“‘(\[{<,;=])|(?<=[A-Za-z]:))(?P<word>[A-Za-z0-9+/_-]{32,}+)={0,2}(?=$|[\s\"'`”’)\]}>,;!?]|[.:](?:\s|$))"
)
# How files, public keys and content addresses begin in base64.
_BEGINNINGS = (
    "AAAA AAEC iVBOR R0lGO /9j/ UklGR MII UEsD H4sI JVBER Qm bafy PD94 PHN2 "
    "SUQz //uQ //tQ T2dnUw ZkxhQ d09G AAEAA T1RUTw SUkq TU0A GkXf KLUv QlpoO /Td6 N3q8 U1FMaXRl AGFzbQ 0M8R4 f0VMR"
)
_CONTENT = tuple(_BEGINNINGS.split())
_PREFIXED = lazy_regex(r"(?:[a-z]{2,12}|[A-Z]{2,12})[_-]")
_IN_A_PATH = lazy_regex(r"(?:^|/)[A-Za-z]?[a-z]{2,}(?:/|$)")
_IN_AN_ADDRESS = lazy_regex(r"[/?&@]\S*$")
_FEWEST_LETTERS, _FEWEST_DIGITS = 4, 2
# In ordinary words, most characters are of the same class as the one before.
_FEWEST_CHANGES = 0.4
_FAR, _WORDS_BESIDE = 60, 3
_NAMES = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_THINGS = """
    id ids identifier uuid guid hash hashes digest checksum sum sha md integrity etag fingerprint fingerprints commit
    revision address addr wallet bitcoin btc solana ethereum block tx txn transaction contract mint public pub pubkey
    cert certificate base encoded decode decodes image img picture nonce cid ipfs doc document sheet spreadsheet video
    playlist file files folder trace span cursor signature multihash object blob prüfsumme kennung adresse empreinte
    identifiant
"""
_OTHER_THINGS = frozenset(_THINGS.split())


def names_an_id(name: str) -> bool:
    """Whether a name, or the words around a value, say that it is an id, a checksum or an address."""
    return any(word.lower() in _OTHER_THINGS for word in _NAMES.findall(name))


def high_entropy_spans(text: str) -> Iterator[Span]:
    """High-entropy words whose line does not say that they are something else."""
    for match in matches(_WORD, text):
        word = match["word"]
        if not has_high_entropy(word) or _IN_AN_ADDRESS.search(text, max(0, match.start() - _FAR), match.start()):
            continue
        if not names_an_id(_around(text, match.start(), match.end())):
            yield Span(*match.span(), "unnamed_secret")


def has_high_entropy(word: str) -> bool:
    """Whether upper case, lower case and digits alternate as in random text."""
    if word.startswith(_CONTENT) or _PREFIXED.match(word) or _IN_A_PATH.search(word):
        return False
    sorts = ["1" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in word if sign.isalnum()]
    if min(sorts.count("A"), sorts.count("a")) < _FEWEST_LETTERS or sorts.count("1") < _FEWEST_DIGITS:
        return False
    changes = sum(one != other for one, other in pairwise(sorts))
    return changes >= _FEWEST_CHANGES * (len(sorts) - 1)


def _around(text: str, start: int, end: int) -> str:
    """The words next to it on its line."""
    before = text[max(0, start - _FAR) : start].rpartition("\n")[2].split()
    behind = text[end : end + _FAR].partition("\n")[0].split()
    return " ".join((*before[-_WORDS_BESIDE:], *behind[:_WORDS_BESIDE]))
