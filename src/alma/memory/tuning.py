"""The tuned numbers of general memories, and the word lists and patterns that are read from `data/`.

The numbers were set by hand and are held by the tests named with them; none is trained. Limits of size and batch are
constants of the modules that use them, and the thresholds of the judge are in `alma.memory.fact_comparison`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class AssignmentTuning:
    """How words change the assigned importance; `tests/memory/test_assignment.py`."""

    word_weight: float = 0.1
    max_word_weight: float = 0.2
    short_text: int = 20


@dataclass(frozen=True, slots=True)
class DetectionTuning:
    """Weights of the evidence for relationships, and limits of detection; `tests/relations/test_detection.py`."""

    by_id: float = 0.95
    by_title: float = 0.9
    by_name: float = 0.85
    by_words: float = 0.7
    title_mentioned: float = 0.6
    distinctive_name: float = 0.4
    common_name: float = 0.2
    same_session_and_file: float = 0.5
    similar_meaning: float = 0.72
    similar_meaning_discount: float = 0.3
    restated: float = 0.5
    min_strength: float = 0.35
    min_covered_words: float = 0.6
    max_loose: int = 10
    max_hits: int = 30
    min_title_length: int = 5
    max_object_length: int = 160


@dataclass(frozen=True, slots=True)
class MiningTuning:
    """When two statements are the same pattern; `tests/relations/test_patterns.py`."""

    min_similarity: float = 0.5
    min_shared_words: int = 3


@dataclass(frozen=True, slots=True)
class GapTuning:
    """When a memory concerns the current work; `tests/relations/test_gaps.py`."""

    min_shared_words: float = 0.5


@dataclass(frozen=True, slots=True)
class WorkingSetTuning:
    """The value of a memory in the working set; `tests/workspace/test_working_memory.py`."""

    half_life_hours: float = 6.0
    importance_weight: float = 0.5


def _thresholds() -> Mapping[str, float]:
    return MappingProxyType({"all-MiniLM-L6-v2": 0.25})


@dataclass(frozen=True, slots=True)
class SearchTuning:
    """The default of `semantic_search_threshold` for each embedding model that was measured; of others it is 0.

    The decision on the threshold has the measurement; `tests/memory/test_search.py`.
    """

    thresholds: Mapping[str, float] = field(default_factory=_thresholds)


def _type_weights() -> Mapping[str, float]:
    weights = {"decision": 0.15, "solution": 0.1, "error": 0.1, "insight": 0.1, "task": 0.05, "user_preference": 0.05}
    return MappingProxyType(weights)


@dataclass(frozen=True, slots=True)
class SummaryTuning:
    """The score of a sentence, and when two sentences are near-duplicates; `tests/memory/test_summary.py`."""

    centrality: float = 0.6
    position: float = 0.15
    importance: float = 0.25
    type_weights: Mapping[str, float] = field(default_factory=_type_weights)
    min_score_share: float = 0.4
    similar: float = 0.6
    contained: float = 0.85


ASSIGNMENT = AssignmentTuning()
DETECTION = DetectionTuning()
MINING = MiningTuning()
GAPS = GapTuning()
WORKING_SET = WorkingSetTuning()
SEARCH = SearchTuning()
SUMMARY = SummaryTuning()


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

    `(a|b)` lists alternatives, `*` matches any word ending, and a space also matches a hyphen.
    """
    alternatives = ("".join(_SYNTAX.get(sign) or re.escape(sign) for sign in phrase) for phrase in wanted)
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)", re.IGNORECASE)


def _text_of(file: str) -> str:
    return resources.files("alma.memory").joinpath("data", file).read_text(encoding="utf-8")
