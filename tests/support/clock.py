"""A clock for tests."""

from __future__ import annotations


class Clock:
    """Goes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds
