"""The `alma` command: errors become one sentence and an exit code."""

from __future__ import annotations

import sys

from alma.errors import (
    ALMAError,
    ConfigurationError,
    NotFoundError,
    ProviderError,
    StorageError,
    ValidationError,
)

_EXIT_CODES: tuple[tuple[type[ALMAError], int], ...] = (
    (ConfigurationError, 2),
    (ValidationError, 3),
    (NotFoundError, 4),
    (StorageError, 5),
    (ProviderError, 6),
    (ALMAError, 1),
)


def main() -> None:
    """Run the command line and exit."""
    from alma.cli.app import app

    try:
        app()
    except ALMAError as exc:
        sys.stderr.write(f"alma: {exc}\n")
        sys.exit(next(code for kind, code in _EXIT_CODES if isinstance(exc, kind)))
