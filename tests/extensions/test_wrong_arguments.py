"""What is given in the place of something else is told in one sentence, by each extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alma.bootstrap import create_cache, open_storage
from alma.bootstrap.providers import create_graph_store
from alma.core import ALMA
from alma.domains import DomainMemoryFactory
from alma.errors import ALMAError, ConfigurationError
from alma.events import WebhookConfig
from alma.extraction import AutoLearner
from alma.harness import Context, create_harness

ADDRESS = "http://127.0.0.1:9/"
ANYTHING: Any = object()
NOTHING: Any = None
WORD: Any = "word"


@pytest.fixture
def alma() -> Iterator[ALMA]:
    with ALMA.quickstart("memory://", embedding_provider="mock") as opened:
        yield opened


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda alma: create_harness("coding", "helena", alma).build_prompt(NOTHING),
            "harness.context must be a Context",
        ),
        (lambda alma: create_harness("coding", "helena", alma).pre_run(WORD), "harness.context must be a Context"),
        (
            lambda alma: create_harness("coding", "helena", alma).build_prompt(Context(task="t"), WORD),
            "harness.memories must be a MemorySlice",
        ),
        (
            lambda alma: create_harness("coding", "helena", alma).post_run(Context(task="t"), WORD),
            "harness.result must be a RunResult",
        ),
        (lambda _: AutoLearner(ANYTHING), "auto_learner.alma must be a memory"),
        (lambda _: WebhookConfig(ADDRESS, memory_types=ANYTHING), "memory_types must be a list of kinds"),
        (lambda _: WebhookConfig(ADDRESS, memory_types="heuristic"), "memory_types must be a list of kinds"),
        (lambda _: WebhookConfig(ADDRESS, memory_types=[ANYTHING, NOTHING]), "kind must be one of"),
        (lambda _: WebhookConfig(ADDRESS, headers=ANYTHING), "headers must be a dictionary"),
        (lambda _: create_cache(ANYTHING), "unknown cache "),
        (lambda _: create_cache([]), "unknown cache "),  # type: ignore[arg-type]
        (
            lambda _: DomainMemoryFactory().create_alma("research", "p", "memory://", ANYTHING),
            "embedding_provider must be the name of a provider or an object with",
        ),
        (lambda _: open_storage("\ud800.db"), "it contains half of a character"),
    ],
)
def test_something_else_is_told_in_one_sentence(alma: ALMA, call: Callable[[ALMA], object], sentence: str) -> None:
    with pytest.raises(ALMAError) as caught:
        call(alma)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_schema_has_a_name_that_is_not_a_text() -> None:
    factory = DomainMemoryFactory()
    assert factory.get_schema([]) is None  # type: ignore[arg-type]
    assert factory.unregister_schema({}) is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda long, _: create_graph_store(long),
        lambda long, _: create_cache(long),
        lambda long, alma: create_harness(long, "helena", alma),
        lambda long, alma: create_harness("coding", long, alma),
        lambda long, _: DomainMemoryFactory().create_alma(long, "p", "memory://"),
        lambda long, _: WebhookConfig(ADDRESS, timeout_seconds=long),
    ],
)
def test_a_very_long_name_is_not_quoted_whole(alma: ALMA, call: Callable[[Any, ALMA], object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        call("x" * 100_000, alma)
    assert len(str(caught.value)) < 500
