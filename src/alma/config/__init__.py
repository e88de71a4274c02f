"""Configuration: read and validated in one place."""

from __future__ import annotations

from pathlib import Path

from alma.lazy import loader

DEFAULT_CONFIG = Path(".alma/config.yaml")
DEFAULT_STORE = ".alma/alma.db"


def config_file(given: str | Path | None, store: str | None) -> Path | None:
    """The configuration file: the given one, or the default one if it exists and no store is given."""
    if given is not None or store is not None:
        return None if given is None else Path(given)
    return DEFAULT_CONFIG if DEFAULT_CONFIG.is_file() else None


__getattr__ = loader(__name__, {"ConfigLoader": "alma.compat.config"})
