"""Other numbers for the retrieval of one test."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import Any

import pytest

import alma.retrieval
from alma.retrieval.tuning import TUNING


def tuned(monkeypatch: pytest.MonkeyPatch, **numbers: Any) -> None:
    """Let every module of retrieval use these numbers in place of the tuned ones."""
    tuning = replace(TUNING, **numbers)
    for each in pkgutil.iter_modules(alma.retrieval.__path__, "alma.retrieval."):
        module = importlib.import_module(each.name)
        if hasattr(module, "TUNING"):
            monkeypatch.setattr(module, "TUNING", tuning)
