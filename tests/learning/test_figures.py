"""Tasks that are written alike but for their numbers are as near as the numbers are."""

from __future__ import annotations

import numpy as np

from alma.learning.text_similarity import NumberIndex

TEXTS = ["run/load-40.cfg", "Run/load-41.cfg", "run/load-9000.cfg", "run/save-40.cfg", "summarise the report"]


def _read() -> NumberIndex:
    numbers_in_texts = NumberIndex()
    numbers_in_texts.add(TEXTS)
    return numbers_in_texts


def test_near_numbers_are_nearer_than_far_ones() -> None:
    near = _read().similarity("run/load-42.cfg", np.arange(3))
    assert near[1] > near[0] > 0.9
    assert near[2] < 0.1


def test_numbers_in_different_places_are_not_compared() -> None:
    assert _read().similarity("run/load-40.cfg", np.array([3, 4])).tolist() == [0.0, 0.0]
    assert _read().similarity("something else 40", np.arange(5)).tolist() == [0.0] * 5


def test_a_text_is_as_near_to_itself_as_can_be() -> None:
    assert _read().similarity("summarise the report", np.array([4])).tolist() == [1.0]
    assert np.diag(_read().among(np.array([4, 2, 0]))).tolist() == [1.0, 1.0, 1.0]


def test_texts_are_as_near_to_each_other_as_each_is_to_the_rest() -> None:
    chosen = np.array([3, 2, 0, 1])
    among = _read().among(chosen)
    for row, number in enumerate(chosen):
        np.testing.assert_allclose(among[row], _read().similarity(TEXTS[number], chosen))


def test_a_number_of_any_length_is_read() -> None:
    numbers_in_texts = NumberIndex()
    numbers_in_texts.add(["seed " + "9" * 1000])
    assert numbers_in_texts.similarity("seed " + "9" * 1000, np.array([0])).tolist() == [1.0]
