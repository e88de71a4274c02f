"""References in a configuration: ${NAME} from the environment, ${KEYVAULT:name} from Azure Key Vault."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from alma.errors import ConfigurationError, MissingDependencyError
from alma.lazy import lazy_regex

_REFERENCE = lazy_regex(r"\$\$|\$\{([^}]*)(\}?)")
_VAULT = "KEYVAULT:"
_SECRET = lazy_regex(r"[A-Za-z0-9-]+")
_VARIABLE = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*")

Vault = Callable[[str], str]


class Resolved(str):
    """A value from a reference; environment variables are always text, including numbers."""

    __slots__ = ()


def resolve_references(value: Any, vault: Vault, key: str = "", environment: Mapping[str, str] = os.environ) -> Any:
    """The value with all references replaced, at any depth; `$$` stands for a dollar sign."""
    if isinstance(value, str):
        text, replaced = _REFERENCE.subn(lambda found: _meant(found, vault, key, environment), value)
        return Resolved(text) if replaced else value
    if isinstance(value, dict):
        return {
            name: resolve_references(each, vault, f"{key}.{name}" if key else str(name), environment)
            for name, each in _named(value, vault, key, environment)
        }
    if isinstance(value, list):
        return [resolve_references(each, vault, f"{key}[{i}]", environment) for i, each in enumerate(value)]
    return value


def _named(
    section: Mapping[Any, Any], vault: Vault, key: str, environment: Mapping[str, str]
) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a section; duplicate keys after replacement are an error."""
    known: dict[Any, Any] = {}
    for written, each in section.items():
        name = resolve_references(written, vault, key or str(written), environment)
        if name in known:
            where = f"{key}: " if key else ""
            raise ConfigurationError(f"{where}{known[name]!r} and {written!r} are the same key; remove one")
        known[name] = written
        yield name, each


def _meant(found: re.Match[str], vault: Vault, key: str, environment: Mapping[str, str]) -> str:
    name = found.group(1)
    if name is None:
        return "$"
    if not found.group(2):
        raise ConfigurationError(f"{key}: the reference ${{ is not closed; write ${{NAME}}, or $$ for a $")
    if name.startswith(_VAULT):
        return _from_vault(vault, _secret_name(name, key), key)
    if not _VARIABLE.fullmatch(name):
        raise ConfigurationError(f"{key}: ${{{name}}} is not a reference; write ${{NAME}} or ${{KEYVAULT:name}}")
    if name not in environment:
        raise ConfigurationError(
            f"{key}: the environment variable {name} is not set; set it, or write the value itself"
        )
    return environment[name]


def _from_vault(vault: Vault, name: str, key: str) -> str:
    try:
        return vault(name)
    except MissingDependencyError:
        raise
    except ConfigurationError as exc:
        raise ConfigurationError(f"{key}: {exc}") from exc


def _secret_name(reference: str, key: str) -> str:
    name = reference.removeprefix(_VAULT).strip()
    if not _SECRET.fullmatch(name):
        raise ConfigurationError(f"{key}: ${{{reference}}} is not a secret name; use letters, digits and -")
    return name


def azure_vault(url: str | None, **client_options: Any) -> Vault:
    """A function that reads secrets from the Key Vault at this address; the client is created on first use.

    `client_options` are passed to the official client, for example another `credential`.
    """
    clients: list[Any] = []

    def secret(name: str) -> str:
        if not clients:
            clients.append(_client(url or os.environ.get("AZURE_KEY_VAULT_URL"), name, client_options))
        return _secret(clients[0], name)

    return secret


def _client(url: str | None, name: str, options: Mapping[str, Any]) -> Any:
    if not url:
        raise ConfigurationError(
            f"${{KEYVAULT:{name}}} needs the address of the vault: set azure.key_vault_url or AZURE_KEY_VAULT_URL"
        )
    if not url.startswith("https://"):
        raise ConfigurationError(f"the address of a key vault must begin with https://, unlike {url!r}")
    try:
        from azure.identity import DefaultAzureCredential
        from azure.keyvault.secrets import SecretClient
    except ImportError as exc:
        raise MissingDependencyError("azure-keyvault-secrets", "azure") from exc
    chosen = dict(options)
    credential = chosen.pop("credential", None) or DefaultAzureCredential()
    return SecretClient(vault_url=url, credential=credential, **chosen)


def _secret(client: Any, name: str) -> str:
    from azure.core.exceptions import AzureError

    try:
        value = client.get_secret(name).value
    except (AzureError, ValueError) as exc:
        raise ConfigurationError(f"the secret {name!r} could not be read from {client.vault_url}: {exc}") from exc
    if value is None:
        raise ConfigurationError(f"the secret {name!r} in {client.vault_url} has no value")
    return str(value)
