"""The options --config, --store and --project, and opening the chosen store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from alma.config import DEFAULT_CONFIG, DEFAULT_STORE, config_file
from alma.errors import ConfigurationError

if TYPE_CHECKING:
    from alma.core import ALMA
    from alma.redaction.redactor import Redactor

STORES = "An SQLite file, file:///folder, a postgresql:// or an azure:// URL."

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="ALMA_CONFIG",
        metavar="FILE",
        help=f"The configuration file; default: {DEFAULT_CONFIG} if it exists.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="ALMA_STORE",
        metavar="STORE",
        help=f"{STORES} Default: the configured store, or {DEFAULT_STORE}.",
    ),
]
Project = Annotated[
    str | None,
    typer.Option("--project", envvar="ALMA_PROJECT", metavar="NAME", help="The project; default: the configured one."),
]


class Place(NamedTuple):
    """A store as a path or URL, and its PostgreSQL schema."""

    store: str
    schema: str


def place_of(config: Path | None, store: str | None, schema: str | None = None) -> Place:
    """The chosen store."""
    if store is not None:
        return Place(store, schema or "public")
    file = config_file(config, store)
    if file is None:
        return Place(DEFAULT_STORE, schema or "public")
    from alma.bootstrap import place_of_file

    described, configured = place_of_file(file)
    return Place(described, schema or configured)


def embedding_of(config: Path | None, store: str | None, provider: str | None = None) -> tuple[str, dict[str, Any]]:
    """The chosen embedding provider and its options."""
    file = config_file(config, store)
    if file is None:
        return provider or "local", {}
    from alma.bootstrap import embedding_of_file

    return embedding_of_file(file, provider)


def redactor_of(config: Path | None, store: str | None) -> Redactor | None:
    """The redactor of the chosen store."""
    file = config_file(config, store)
    if file is None:
        from alma.redaction.redactor import DEFAULT_REDACTOR

        return DEFAULT_REDACTOR
    from alma.bootstrap import redactor_of_file

    return redactor_of_file(file)


def open_memory(config: Path | None, store: str | None, project: str | None, *, must_exist: bool = False) -> ALMA:
    """Open the chosen store; commands that only read do not create one."""
    from alma.bootstrap import parts_chosen, store_exists
    from alma.core import ALMA

    place = place_of(config, store)
    if must_exist and not store_exists(place.store):
        raise ConfigurationError(
            f"there is no store at {without_password(place.store)} yet: the first  alma remember  or  alma learn  "
            "creates it, or name yours with --store or --config"
        )
    return ALMA._of(parts_chosen(config_file(config, store), store, project))


def without_password(store: str) -> str:
    """A URL without its password."""
    head, at, host = store.rpartition("@")
    return f"{head.rpartition(':')[0]}:***@{host}" if at and "://" in head and head.count(":") > 1 else store
