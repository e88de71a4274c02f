"""The embedding contract as tests: subclass the suite and add an `embedder` fixture.

class TestMyProvider(EmbeddingContract):
    @pytest.fixture
    def embedder(self):
        return MyProvider()
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.model.vector import Vector

SHORT = "validate the form field by field"
TEXTS = (SHORT, "deploy on Fridays only with a rollback plan", "日本語のテスト", "naïve café", "a", "!?", SHORT.upper())
# Override `long_text` for a model with a longer window.
LONG = " ".join(f"In chapter {i} the tester finds another reason to wait for the server." for i in range(250))


class EmbeddingContract:
    """The contract of embedding providers."""

    long_text = LONG

    def test_a_vector_has_the_dimension_and_length_one(self, embedder: EmbeddingProvider) -> None:
        for vector in (*embedder.encode_batch(TEXTS), embedder.encode(self.long_text)):
            assert isinstance(vector, Vector)
            assert len(vector) == embedder.dimension
            assert _length(vector) == pytest.approx(1, abs=1e-5)

    def test_a_vector_serves_as_a_list_of_floats(self, embedder: EmbeddingProvider) -> None:
        numbers = list(embedder.encode(SHORT))
        assert all(type(number) is float for number in numbers)
        assert embedder.encode(SHORT) == numbers

    def test_the_model_has_a_name(self, embedder: EmbeddingProvider) -> None:
        assert embedder.model.strip() == embedder.model != ""

    def test_the_same_text_has_the_same_vector_alone_and_in_a_batch(self, embedder: EmbeddingProvider) -> None:
        together = embedder.encode_batch([*TEXTS, self.long_text, *TEXTS])
        alone = [embedder.encode(text) for text in TEXTS]
        for vectors in (together[: len(TEXTS)], together[-len(TEXTS) :]):
            for one, other in zip(vectors, alone, strict=True):
                assert _cosine(one, other) == pytest.approx(1, abs=1e-5)

    def test_different_texts_have_different_vectors_in_the_given_order(self, embedder: EmbeddingProvider) -> None:
        forwards = embedder.encode_batch(TEXTS[:4])
        assert len(set(forwards)) == 4
        assert embedder.encode_batch(TEXTS[3::-1]) == forwards[::-1]

    def test_of_no_texts_there_are_no_vectors(self, embedder: EmbeddingProvider) -> None:
        assert embedder.encode_batch([]) == []
        assert embedder.encode_passages([]) == []

    def test_a_text_that_fits_is_its_only_passage(self, embedder: EmbeddingProvider) -> None:
        assert embedder.encode_passages([SHORT]) == [[embedder.encode(SHORT)]]

    def test_a_long_text_is_split_and_none_of_it_is_lost(self, embedder: EmbeddingProvider) -> None:
        [[only], passages] = embedder.encode_passages([SHORT, self.long_text])
        assert only == embedder.encode(SHORT)
        assert len(passages) > 1
        assert all(_length(passage) == pytest.approx(1, abs=1e-5) for passage in passages)
        [other] = embedder.encode_passages([f"{self.long_text} At the very end stands the word marmalade."])
        assert _cosine(other[-1], passages[-1]) < 1 - 1e-6

    def test_the_vector_of_a_long_text_is_the_mean_of_its_passages(self, embedder: EmbeddingProvider) -> None:
        [passages] = embedder.encode_passages([self.long_text])
        mean = [sum(column) for column in zip(*passages, strict=True)]
        # Passages have about the same length, so their plain mean is near the weighted one.
        assert _cosine(embedder.encode(self.long_text), mean) == pytest.approx(1, abs=1e-3)

    @pytest.mark.parametrize("text", ["", "  \n\t", None, 7, b"bytes", "\ud800", "a\x00b"])
    def test_values_other_than_text_are_refused(self, embedder: EmbeddingProvider, text: Any) -> None:
        for call in (embedder.encode, lambda each: embedder.encode_batch([SHORT, each])):
            with pytest.raises(ValidationError, match=r"embedding\.text must"):
                call(text)

    def test_a_single_text_is_refused_as_a_batch(self, embedder: EmbeddingProvider) -> None:
        with pytest.raises(ValidationError, match="must be a list of texts"):
            embedder.encode_batch(SHORT)

    def test_threads_may_share_a_provider(self, embedder: EmbeddingProvider) -> None:
        expected = embedder.encode_batch(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: embedder.encode_batch(TEXTS), range(8)))
        for answer in answers:
            for one, other in zip(answer, expected, strict=True):
                assert _cosine(one, other) == pytest.approx(1, abs=1e-5)


def _length(vector: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in vector))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / (_length(one) * _length(other))
