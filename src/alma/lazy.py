"""Lazy imports: a package loads a name on first use, so importing the package is cheap and needs no driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package that imports each name from the module given for it."""

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return load
