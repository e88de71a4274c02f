"""The `alma` command: errors become one sentence and an exit code."""

from __future__ import annotations

import gc
import os
import sys

from alma.errors import (
    ALMAError,
    ConfigurationError,
    ModelMismatchError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    ScopeViolationError,
    StorageError,
    ValidationError,
)

USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
# The first match counts.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (ConfigurationError, USAGE),
    (PermissionDeniedError, 7),
    (ScopeViolationError, 7),
    (ValidationError, 3),
    (NotFoundError, 4),
    (StorageError, 5),
    (ProviderError, 6),
    (RefusedError, 8),
    (OSError, 5),
    (ALMAError, 1),
)


def main() -> None:
    """Run the command line and exit."""
    before = sys.stdout
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as with  alma search … | head
        code = _closed_quietly()
    except SystemExit as exc:
        # Typer catches a broken pipe and raises SystemExit.
        code = int(exc.code or 0) if sys.stdout is before else _closed_quietly()
    except KeyboardInterrupt:
        code = _report_error("stopped", INTERRUPTED)
    sys.exit(code)


def _run() -> int:
    if sys.argv[1:2] == ["mcp"] and "--help" not in sys.argv:
        # The handshake of MCP is answered before the command line is loaded.
        return _serve_mcp(sys.argv[2:])
    # Importing creates many objects and no garbage.
    gc.disable()
    # To find plugins, pydantic reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:
        # A hook has a tenth of a second.
        from alma.hooks.command import main as hook

        return hook(sys.argv[2:])
    import typer

    from alma.cli.app import app

    try:
        ended = app(standalone_mode=False, prog_name="alma")
    except typer.TyperException as exc:
        return _misused(exc)
    except typer.Abort:
        return _report_error("stopped, nothing was changed", INTERRUPTED)
    except BrokenPipeError:
        raise
    except (ALMAError, OSError) as exc:
        return _report_error(_sentence(exc), next(code for kind, code in EXIT_CODES if isinstance(exc, kind)))
    except Exception as exc:
        if os.environ.get("ALMA_DEBUG"):
            raise
        return _report_error(f"internal error, {type(exc).__name__}: {exc}; set ALMA_DEBUG=1 to see where", 1)
    if ended == INTERRUPTED:
        return _report_error("stopped", INTERRUPTED)
    return ended if isinstance(ended, int) else 0


def _sentence(exc: Exception) -> str:
    """The error message with the options of the command line."""
    if isinstance(exc, ModelMismatchError):
        return (
            f"the vectors of this store were made by {' and '.join(exc.holds)}, not by {exc.opened_for}: "
            "name the configuration it was made with by --config, or move it to this model with  alma reembed "
            "and the same --config or --store"
        )
    return str(exc)


def _serve_mcp(arguments: list[str]) -> int:
    from importlib import import_module

    import_module("alma.mcp.server").main(arguments)
    return 0


def _misused(exc: Exception) -> int:
    """A usage error; a group without arguments shows its help."""
    context = getattr(exc, "ctx", None)
    said = " ".join(str(getattr(exc, "format_message", exc.__str__)()).split()).replace("Value error, ", "")
    if type(exc).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{context.get_help()}\n" if context is not None else said)
        return USAGE
    hint = f"; see  {context.command_path} --help" if context is not None else ""
    return _report_error(f"{said.rstrip('.')}{hint}", USAGE)


def _report_error(sentence: str, code: int) -> int:
    from alma.cli.output import one_line

    sys.stderr.write(f"alma: {one_line(sentence)}\n")
    return code


def _closed_quietly() -> int:
    """Discard the rest of the output, or Python reports the broken pipe again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
