"""User-defined embedding providers: the required methods, and validation of their answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from alma.bootstrap import open_storage
from alma.embeddings.base import EmbeddingProvider, as_provider
from alma.embeddings.cached import CachedEmbedder
from alma.errors import ConfigurationError, EmbeddingError, ValidationError
from alma.model.learning import DomainKnowledge
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.sync.reembed import reembed


def numbers(text: str) -> list[float]:
    """Twice as long as a unit vector."""
    return [2.0, 0.0, 0.0] if "deploy" in text else [0.0, 2.0, 0.0]


class _Named(EmbeddingProvider):
    @property
    def model(self) -> str:
        return "mine"

    @property
    def dimension(self) -> int:
        return 3


class ByBatch(_Named):
    def encode_batch(self, texts: Iterable[str]) -> list[Any]:
        return [numbers(text) for text in texts]


class OneByOne(_Named):
    def encode(self, text: str) -> Any:
        return numbers(text)


class Both(ByBatch):
    def encode(self, text: str) -> Any:
        return numbers(text)


class OfNoClass:
    model, dimension = "mine", 3

    def encode(self, text: str) -> list[float]:
        return numbers(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[float]]:
        return [numbers(text) for text in texts]


class Neither(_Named):
    pass


OWN = (ByBatch, OneByOne, Both, OfNoClass)


@pytest.mark.parametrize("own", OWN)
def test_memories_are_found_with_a_model_of_ones_own(own: type[Any], tmp_path: Path) -> None:
    with open_storage(tmp_path / "alma.db", 3) as store:
        engine = RetrievalEngine(store, own())
        facts = [
            DomainKnowledge(agent="helena", project_id="shop", domain="ops", fact=fact)
            for fact in ("we deploy at night", "cats sleep")
        ]
        MemoryWriter(store, own()).save_many(facts)
        found = engine.retrieve("how to deploy", "helena", "shop")
        assert [each.fact for each in found.domain_knowledge] == ["we deploy at night"]
        assert found.explanations[facts[0].id].similarity == pytest.approx(1)
        assert not found.degraded
        assert store.embedding_model == "mine"
        engine.close()


@pytest.mark.parametrize("own", OWN)
def test_what_a_model_of_ones_own_gives_is_stored_with_length_one(own: type[Any]) -> None:
    [encoded] = CachedEmbedder(own()).encode_texts(["we deploy"])
    assert math.hypot(*encoded.vector) == pytest.approx(1)
    assert encoded.passages == ()


def test_a_store_is_moved_to_a_model_of_ones_own(tmp_path: Path) -> None:
    with open_storage(tmp_path / "alma.db", 3, embedding_model="mine") as store:
        store.save(DomainKnowledge(agent="helena", project_id="shop", domain="ops", fact="we deploy at night"))
        assert reembed(store, OfNoClass()) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1.0, 0.0]], "returned a vector of 2 dimensions, not 3"),
        ([[0.0, 0.0, 0.0]], "returned a zero vector"),
        ([[math.nan, 0.0, 0.0]], "returned something that is not a vector"),
        ([None], "returned something that is not a vector"),
        ([], "returned 0 vectors for 1 texts"),
    ],
)
def test_an_invalid_vector_is_an_error(given: list[Any], said: str) -> None:
    class Wrong(OfNoClass):
        def encode_batch(self, texts: Sequence[str]) -> list[Any]:
            return given

    with pytest.raises(EmbeddingError, match=f"mine {said}"):
        as_provider(Wrong()).encode_texts(["we deploy"])


@pytest.mark.parametrize("given", [None, object(), {"model": "mine"}])
def test_what_lacks_a_name_of_the_port_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="lacks encode, encode_batch, dimension, model"):
        as_provider(given)


def test_a_class_in_the_place_of_an_object_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is a class: give an object of it"):
        as_provider(OfNoClass)


def test_a_provider_that_encodes_nothing_says_what_it_lacks() -> None:
    with pytest.raises(NotImplementedError, match="Neither must implement encode_batch, encode or _embed"):
        Neither().encode("we deploy")


def test_no_texts_at_all_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be a list of texts"):
        as_provider(OfNoClass()).encode_batch(None)  # type: ignore[arg-type]
