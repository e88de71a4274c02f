"""Described: what the keys of a configuration say about a store, for the documented `from_config` of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from alma.errors import ConfigurationError, shown

if TYPE_CHECKING:
    from alma.config.settings import Settings

USUAL_DIMENSIONS = 384


def described(config: Mapping[str, Any]) -> Settings:
    """The settings that these keys give, as strictly read as a file: with references resolved, and no unknown key."""
    # Only the loader knows what keys there are, and what stands behind a reference.
    from alma.config.loader import settings_from

    if not isinstance(config, Mapping):
        raise ConfigurationError(f"the configuration of a store must be a dict of its keys, not {shown(config)}")
    return settings_from({"project_id": "default", **config})
