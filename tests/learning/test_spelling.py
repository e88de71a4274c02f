"""What can be written in several ways is written in one before it is compared."""

from __future__ import annotations

import pytest

from alma.learning.spelling import counted, spelled
from alma.model.spelling import american


@pytest.mark.parametrize(
    ("british", "written"),
    [
        ("normalise", "normalize"),
        ("Neighbours", "Neighbors"),
        ("modelling", "modeling"),
        ("the catalogue", "the catalog"),
        ("four hours of exercise, promised otherwise", "four hours of exercise, promised otherwise"),
        ("our precise tour", "our precise tour"),
        ("haemoglobin and anaesthetics of paediatrics", "hemoglobin and anesthetics of pediatrics"),
        ("two kilometres of kerb", "two kilometers of curb"),
        ("paralysed and catalysing", "paralyzed and catalyzing"),
        ("aesthetic families supply space", "aesthetic families supply space"),
    ],
)
def test_british_words_are_written_as_americans_write_them(british: str, written: str) -> None:
    assert american(british) == written


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("three times", "3 times"),
        ("twenty-five rows", "25 rows"),
        ("two hundred rows", "200 rows"),
        ("retry twice", "retry 2 times"),
        ("1,000 rows", "1000 rows"),
        ("wait 30s", "wait 30 seconds"),
        ("5 percent", "5%"),
        ("at least 3", ">= 3"),
        ("no more than ten", "<= 10"),
        ("the load is above 80", "the load > 80"),
        ("this one, one by one", "this one, one by one"),
        ("zero-shot", "zero-shot"),
    ],
)
def test_numbers_are_written_in_digits(said: str, written: str) -> None:
    assert counted(said) == written


def test_emphasis_and_bullets_say_nothing() -> None:
    assert spelled("- **use** `caching` for a*b") == "use caching for a*b"
