"""The module names of alma-memory 0.4 that have no file here, and the finder that imports them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    # importlib.abc takes longer to import than the rest of the package.
    Loader = object

MODULES = MappingProxyType(
    {
        "alma.confidence.engine": "alma.confidence",
        "alma.confidence.types": "alma.confidence",
        "alma.domains.schemas": "alma.domains",
        "alma.domains.types": "alma.domains",
        "alma.exceptions": "alma.errors",
        "alma.initializer": "alma.compat.initializer",
        "alma.initializer.initializer": "alma.compat.initializer",
        "alma.initializer.types": "alma.compat.initializer",
        "alma.integration.claude_agents": "alma.compat.claude_agents",
        "alma.integration.helena": "alma.compat.helena",
        "alma.integration.victor": "alma.compat.victor",
        "alma.learning.forgetting": "alma.compat.forgetting",
        "alma.learning.heuristic_extractor": "alma.compat.heuristic_extractor",
        "alma.progress.types": "alma.progress",
        "alma.retrieval.cache": "alma.compat.cache",
        "alma.retrieval.embeddings": "alma.embeddings",
        "alma.session.types": "alma.session",
    }
)
"""The module that answers to each earlier name."""


class _Same(Loader):
    """Gives the module that exists already, so that both names are one module."""

    def __init__(self, home: str) -> None:
        self._module = import_module(home)
        self._spec = self._module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system wrote the earlier name into it.
        module.__spec__ = self._spec


class _Finder:
    """Finds the earlier names; it is asked last, so every file goes first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        home = MODULES.get(fullname)
        if home is None:
            return None
        loader = _Same(home)
        return ModuleSpec(fullname, loader, is_package=fullname == "alma.initializer")


def install() -> None:
    """Make the earlier names importable; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
