"""Names that are loaded when they are first used, so that importing a package costs nothing and needs no driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, home_of: Mapping[str, str]) -> Callable[[str], Any]:
    """What a package's `__getattr__` does: finds a name in the module that it is at home in."""

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    return load
