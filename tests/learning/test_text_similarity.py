"""Resemblance reaches as far as the nearest texts usually are: where all are far from each other, kinds still show."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from alma.learning.text_similarity import TextIndex

SUMS = ["apples", "pears", "coins", "shops", "costs", "buys", "sells", "spends", "dollars", "each", "total", "boxes"]
LAWS = ["court", "judge", "appeal", "statute", "contract", "tort", "clause", "party", "damages", "verdict", "motion"]


def questions(words: list[str], count: int, seed: int) -> list[str]:
    """Questions of one kind, each of which has words of its own, too."""
    drawn = random.Random(seed)
    own = ["".join(drawn.choices("bcdfghklmnprstvz", k=9)) for _ in range(4 * count)]
    return [" ".join([*drawn.sample(words, 4), *own[4 * i : 4 * i + 4]]) for i in range(count)]


def similarity_of_own(texts: list[str], asked: str) -> Any:
    index = TextIndex()
    index.add(texts)
    return index.similarity(asked)


def test_where_the_nearest_are_far_a_kind_resembles_itself() -> None:
    sums, laws = questions(SUMS, 150, 1), questions(LAWS, 150, 2)
    asked = questions(SUMS, 1, 3)[0]
    few, many = similarity_of_own(sums[:50] + laws[:50], asked), similarity_of_own(sums + laws, asked)
    assert few[:50].mean() < 0.05
    assert many[:150].mean() > 4 * few[:50].mean()
    assert many[:150].mean() - many[150:].mean() > 2 * (few[:50].mean() - few[50:].mean()) > 0


def test_where_each_has_near_relatives_these_count_most() -> None:
    kinds = ("load/io", "load/db", "save/io", "save/db")
    names = [f"{kind}-{number}.cfg" for kind in kinds for number in range(60)]
    similarity = similarity_of_own(names, "load/io-7.cfg")
    near = np.array([name.startswith("load/io") for name in names])
    assert similarity[near].mean() > 4 * similarity[~near].mean()


def test_equal_texts_are_as_alike_as_can_be_whatever_the_reach() -> None:
    texts = questions(SUMS, 250, 4)
    index = TextIndex()
    index.add(texts)
    assert np.allclose(np.diag(index.among(np.arange(250))), 1, atol=1e-3)
