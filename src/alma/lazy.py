"""Names, modules and patterns that load on first use: importing a package is cheap and needs no driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast


def loader(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package that imports each name from the module given for it."""

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return load


def lazy_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled on first use; a command line compiles few of the hundreds there are."""
    return cast("re.Pattern[str]", _OnFirstUse(lambda: re.compile(source, flags), pattern=source))


def lazy_module(name: str) -> Any:
    """The module, imported on first use."""
    return _OnFirstUse(lambda: import_module(name))


class _OnFirstUse:
    """Stands for an object that is made on first use; its attributes are kept."""

    def __init__(self, make: Callable[[], Any], **known: Any) -> None:
        self._make = make
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._make(), name)
        setattr(self, name, value)
        return value
