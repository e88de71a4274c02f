"""Earlier names of constructor arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
Translate = Callable[[dict[str, Any]], dict[str, Any]]


def renamed(names: Mapping[str, str | None]) -> Translate:
    """A translation that gives arguments their present names; those with None are dropped."""

    def translate(given: dict[str, Any]) -> dict[str, Any]:
        told = {names.get(name, name): value for name, value in given.items()}
        return {name: value for name, value in told.items() if name is not None}

    return translate


def earlier(translate: Translate) -> Callable[[C], C]:
    """A class decorator: the keyword arguments of the constructor are translated first."""

    def decorate(cls: C) -> C:
        original = cls.__init__  # type: ignore[misc]

        @wraps(original)
        def initialize(self: Any, *args: Any, **given: Any) -> None:
            original(self, *args, **translate(given))

        cls.__init__ = initialize  # type: ignore[misc]
        return cls

    return decorate
