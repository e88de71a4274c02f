"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 25


def examples(count: int) -> settings:
    """So many examples in a usual run, and proportionally more with the profile `nightly`."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL))
