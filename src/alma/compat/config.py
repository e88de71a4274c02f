"""`ConfigLoader` of alma-memory 0.4: a configuration file as a dictionary. `load_settings` validates it as well."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar

import yaml

from alma.config.loader import ROOT_KEY, parse_yaml
from alma.config.secrets import azure_vault, resolve_references

_log = logging.getLogger("alma.config")


class ConfigLoader:
    """Reads and writes configuration files; a reference to a missing variable is an error."""

    DEFAULTS: ClassVar[dict[str, Any]] = {"project_id": "default", "storage": "file", "embedding_provider": "local"}

    @classmethod
    def load(cls, config_path: str | Path) -> dict[str, Any]:
        """The keys of the file with all references replaced; for a file that does not exist, the defaults."""
        file = Path(config_path)
        if not file.exists():
            _log.warning("there is no configuration file, so the defaults are used", extra={"path": str(file)})
            return {**cls.DEFAULTS, "agents": {}}
        content = parse_yaml(file) or {}
        given = content.get(ROOT_KEY, content)
        replaced: dict[str, Any] = resolve_references(given, azure_vault(None))
        return replaced

    @classmethod
    def save(cls, config: dict[str, Any], config_path: str | Path) -> None:
        """Write the keys under `alma:`; missing directories are created."""
        file = Path(config_path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump({ROOT_KEY: config}, sort_keys=False), encoding="utf-8")
