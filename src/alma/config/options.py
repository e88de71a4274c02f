"""Options of embedding providers: which key of a configuration says which, and what their errors are in its words."""

from __future__ import annotations

import re
from typing import Any

from alma.config.settings import Settings
from alma.errors import ConfigurationError

_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "azure": {
        "endpoint": ("azure.openai_endpoint", "azure.endpoint"),
        "api_key": ("azure.openai_key", "azure.key"),
        "deployment": ("azure.openai_deployment",),
        "model": ("azure.openai_model",),
        "api_version": ("azure.openai_api_version",),
        "dimensions": ("embedding_dim",),
    },
    "openai": {
        "api_key": ("openai.api_key",),
        "model": ("openai.model",),
        "base_url": ("openai.base_url",),
        "dimensions": ("embedding_dim",),
    },
    "local": {
        "folder": ("local.folder",),
        "model_name": ("local.model_name",),
        "window": ("local.window",),
        "threads": ("local.threads",),
    },
    "mock": {"dimension": ("embedding_dim",)},
}


def embedding_options(settings: Settings, provider: str) -> dict[str, Any]:
    """What a configuration says about a provider; how long vectors are, it says of the one it chose."""
    chosen = {
        option: next(filter(None, (_value(settings, key) for key in keys)), None)
        for option, keys in _KEYS.get(provider, {}).items()
    }
    if provider != settings.embedding_provider:
        chosen = {option: value for option, value in chosen.items() if not option.startswith("dimension")}
    return {option: value for option, value in chosen.items() if value}


def in_its_words(problem: ConfigurationError, provider: str) -> ConfigurationError:
    """What a provider says about its options, with the keys of the configuration that give them."""
    keys = _KEYS.get(provider, {})
    options = re.compile(rf"(?<![\w.])({'|'.join(keys)})(?:=…|(?= (?:is|must)\b))")
    said = options.sub(lambda option: keys[option[1]][0], str(problem))
    return ConfigurationError(f"embedding_provider is {provider}: {said}")


def _value(settings: Settings, key: str) -> Any:
    value: Any = settings
    for step in key.split("."):
        value = getattr(value, step)
    return value
