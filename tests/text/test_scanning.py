"""Scanners of incoming text: the time they take grows with the text, whatever it is made of."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.extraction.facts import Turn
from alma.extraction.rules import RuleBasedExtractor
from alma.graph.extraction import by_rules
from alma.ingest.echo_guard import shingles
from alma.ingest.screening import DefaultScreen, injection_in
from alma.judge import StrictJudge
from alma.learning.strategies import shared_words, strategy_key
from alma.memory.relation_detection import cues, identifiers, possible_ids
from alma.model.prompt import as_data
from alma.redaction.redactor import redact_text
from alma.retrieval.query_text import asks_advice
from alma.text.canonical import canonical_words, ordered_words
from alma.text.disguise import visible
from alma.text.scanning import WINDOW, Squeezed, found_in, matches, replaced, squeezed, windows
from alma.text.timeexpr import find, resolve
from alma.text.tokens import query_terms, terms
from tests.support.hostile import UNITS, mixed, noise, repeated

pytestmark = pytest.mark.slow

# Linear scanners take up to thirty on an idle machine, quadratic ones hundreds at the large size.
MAX_MICROSECONDS_PER_CHARACTER = 90
SMALL, LARGE, HUGE = 2_500, 20_000, 1 << 20
SLOWEST = 4
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)

SCANNERS: dict[str, Callable[[str], object]] = {
    "redaction": lambda text: redact_text(text),
    "screening": lambda text: injection_in([text], DefaultScreen(StrictJudge())),
    "duplicates": canonical_words,
    "duplicates in order": ordered_words,
    "echo": lambda text: list(shingles([text])),
    "extraction": lambda text: RuleBasedExtractor(StrictJudge()).extract([Turn("user", text), Turn("assistant", text)]),
    "graph": by_rules,
    "identifiers": identifiers,
    "cues of relations": cues,
    "ids": possible_ids,
    "words": terms,
    "words of a query": query_terms,
    "strategies": lambda text: (strategy_key(text), shared_words(text, f"{text} b")),
    "asking": asks_advice,
    "time expressions": lambda text: (resolve(text, NOW), find(text, NOW)),
    "prompts": as_data,
    "invisible characters": visible,
    "squeezing": squeezed,
}
QUICK = ("redaction", "duplicates", "prompts", "invisible characters", "squeezing", "words")


def _microseconds(scan: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    scan(text)
    return (time.thread_time() - began) * 1e6 / len(text)


def _slow(scan: Callable[[str], object], units: Iterable[str], size: int) -> list[str]:
    return [
        f"{unit!r}: {taken:.0f} µs for a character"
        for unit in units
        if (taken := _microseconds(scan, repeated(unit, size))) > MAX_MICROSECONDS_PER_CHARACTER
    ]


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_reads_hostile_texts_in_linear_time(name: str) -> None:
    scan = SCANNERS[name]
    scan("What is loaded once is loaded before.")
    taken = {unit: _microseconds(scan, repeated(unit, SMALL)) for unit in UNITS}
    assert _slow(scan, sorted(taken, key=taken.__getitem__)[-SLOWEST:], LARGE) == []
    begun = ("password is ", "ignore ", "```", "https://", "token: '", "-----BEGIN PRIVATE KEY-----\n")
    texts = [before + repeated(unit, SMALL) for before in begun for unit in (" ", "a", "'", "\n", "a.", "-", "A=")]
    texts += [make(LARGE, 0) for make in (mixed, noise)]
    assert max(_microseconds(scan, text) for text in texts) < MAX_MICROSECONDS_PER_CHARACTER


@pytest.mark.parametrize("name", QUICK)
def test_a_scanner_reads_a_mebibyte(name: str) -> None:
    assert _slow(SCANNERS[name], ["`"], HUGE) == []


@pytest.mark.parametrize("name", SCANNERS)
@given(unit=st.text(min_size=1, max_size=6))
@settings(max_examples=4, deadline=None)
def test_a_scanner_reads_anything_repeated_in_linear_time(name: str, unit: str) -> None:
    assert _slow(SCANNERS[name], [unit], SMALL) == []


PATTERNS = [re.compile(each, re.MULTILINE) for each in (r"\w{2,30}", r"(?<!\w)a+(?!\w)", r"^x[^\n]*$", "-+")]


@given(st.lists(st.sampled_from(["a", "a" * 9_000, "x" * 30_000, " ", "\n", "-" * 5_000, "b-", "x"]), max_size=60))
@settings(max_examples=20, deadline=None)
def test_windows_find_what_the_pattern_finds_in_the_whole_text(parts: list[str]) -> None:
    text = "".join(parts)
    for pattern in PATTERNS:
        assert [match.span() for match in matches(pattern, text)] == [match.span() for match in pattern.finditer(text)]
        assert found_in(pattern, text) == (pattern.search(text) is not None)
        assert replaced(pattern, ".", text) == pattern.sub(".", text)


def test_windows_overlap_and_leave_nothing_out() -> None:
    text = "word " * 10_000
    parts = list(windows(text, overlap=0))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= WINDOW
    assert sum(map(len, windows("a" * 50_000))) > 50_000


def test_a_squeezed_text_knows_where_its_places_were() -> None:
    text = f"ab{' ' * 5_000}cd {'x' * 1_000} ef"
    short = Squeezed(text)
    assert len(short.text) < 1_200
    assert max(map(len, short.text.split())) <= 256
    for word in ("ab", "cd", "ef"):
        assert short.at(short.text.index(word)) == text.index(word)
