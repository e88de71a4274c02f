"""Scanners of incoming text: the time they take grows with the text, whatever it is made of."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.extraction.facts import Turn
from alma.extraction.rules import RuleBasedExtractor
from alma.graph.extraction import by_rules
from alma.ingest.gist import said_in_order, tokens
from alma.ingest.screening import DefaultScreen, injection_in
from alma.ingest.shingles import shingles
from alma.judge import StrictJudge
from alma.learning.strategies import shared_words, strategy_key
from alma.memory.relation_detection import cues, identifiers, possible_ids
from alma.model.prompt import as_data
from alma.redaction.redactor import redact_text
from alma.retrieval.query_intent import asks_advice
from alma.text.invisible import visible
from alma.text.scanning import WINDOW, Squeezed, found_in, matches, replaced, squeezed, windows
from alma.text.timeexpr import find, resolve
from alma.text.tokens import query_terms, terms
from tests.support.hostile import UNITS, mixed, noise, repeated

# Linear scanners take one to ten on an idle machine, quadratic ones hundreds at this size.
MOST_MICROSECONDS_PER_CHARACTER = 60
SIZE = 10_000
LARGE = 1 << 20
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)

SCANNERS: dict[str, Callable[[str], object]] = {
    "redaction": lambda text: redact_text(text),
    "screening": lambda text: injection_in([text], DefaultScreen(StrictJudge())),
    "duplicates": tokens,
    "duplicates in order": said_in_order,
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


def _slow(scan: Callable[[str], object], texts: Iterator[str]) -> list[str]:
    scan("What is loaded once is loaded before.")
    return [
        f"{text[:20]!r}: {taken:.0f} µs for a character"
        for text in texts
        if (taken := _microseconds(scan, text)) > MOST_MICROSECONDS_PER_CHARACTER
    ]


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_reads_repeated_units_in_linear_time(name: str) -> None:
    assert _slow(SCANNERS[name], (repeated(unit, SIZE) for unit in UNITS)) == []


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_reads_units_behind_the_beginning_of_something_in_linear_time(name: str) -> None:
    begun = ("password is ", "ignore ", "The ", "```", "https://", "token: '", "-----BEGIN PRIVATE KEY-----\n")
    pumped = (" ", "a", "'", "\n", "a.", "-", "A=")
    texts = (before + repeated(unit, SIZE) for before in begun for unit in pumped)
    assert _slow(SCANNERS[name], texts) == []


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_reads_mixed_units_and_noise_in_linear_time(name: str) -> None:
    texts = (make(50_000, seed) for seed in range(2) for make in (mixed, noise))
    assert _slow(SCANNERS[name], texts) == []


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("unit", ["`", "eyJ-", " "])
def test_a_scanner_reads_a_mebibyte(name: str, unit: str) -> None:
    assert _slow(SCANNERS[name], iter([repeated(unit, LARGE)])) == []


@pytest.mark.parametrize("name", SCANNERS)
@given(unit=st.text(min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_a_scanner_reads_whatever_is_repeated_in_linear_time(name: str, unit: str) -> None:
    assert _slow(SCANNERS[name], iter([repeated(unit, 4_000)])) == []


PATTERNS = [re.compile(each, re.MULTILINE) for each in (r"\w{2,30}", r"(?<!\w)a+(?!\w)", r"^x[^\n]*$", "-+")]


@given(st.lists(st.sampled_from(["a", "a" * 9_000, "x" * 30_000, " ", "\n", "-" * 5_000, "b-", "x"]), max_size=60))
@settings(max_examples=60, deadline=None)
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
