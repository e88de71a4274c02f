"""Writes docs/reference/cli.md from the commands themselves; a test checks that it is up to date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alma.cli import BROKEN_PIPE, EXIT_CODES, INTERRUPTED
from alma.cli.app import ENTRIES, every_command, examples_of
from alma.cli.commands import command_path, offered

TARGET = Path(__file__).parent / "reference" / "cli.md"
_EVERYWHERE = ("--config", "--store", "--json", "--help")
_MEANINGS = {
    2: "the command or the configuration is wrong, or a package is missing",
    3: "a value is not valid",
    4: "what was named does not exist",
    5: "the store or a file could not be read or written",
    6: "a model, an index or another service outside the store failed",
    7: "not allowed: an agent's scope, or a user that must be named",
    8: "refused by ingest",
}


def reference() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Command line"
    yield ""
    yield "Every command of `alma` (or `python -m alma`), made from the commands by"
    yield "`python docs/generate_cli_reference.py`. How they are used: [command line](../how-to/command-line.md)."
    yield ""
    yield "Every command that works on a store takes `--config FILE` (`ALMA_CONFIG`; `.alma/config.yaml` where it is"
    yield "there) and `--store STORE` (`ALMA_STORE`; an SQLite file, `file:///folder` or a `postgresql://` URL), and"
    yield "`--json` for programs. Without either, `.alma/alma.db` is the store. `ALMA_PROJECT`, `ALMA_AGENT` and"
    yield "`ALMA_USER` stand for `--project`, a required `--agent`, and `--user`."
    yield from _codes()
    commands = dict(every_command())
    for section in dict.fromkeys(entry.section for entry in ENTRIES):
        yield f"\n## {section}"
        for entry in ENTRIES:
            if entry.section == section:
                inside = [path for path in commands if path.split()[1] == entry.name]
                for path in inside:
                    yield from _command(path, commands[path])
    yield from _operations()


def _codes() -> Iterator[str]:
    yield "\n## Exit codes\n"
    yield "| Code | Meaning | Errors |"
    yield "|---|---|---|"
    yield "| 0 | done | |"
    yield "| 1 | a check failed (`doctor`, `audit verify`), or any other error | |"
    for code in sorted({code for _, code in EXIT_CODES} - {1}):
        errors = ", ".join(f"`{kind.__name__}`" for kind, each in EXIT_CODES if each == code)
        yield f"| {code} | {_MEANINGS[code]} | {errors} |"
    yield f"| {INTERRUPTED} | stopped with Ctrl-C | |"
    yield f"| {BROKEN_PIPE} | the reader of the output closed it, as `head` does | |"
    yield "\nAn error is one sentence on stderr; a traceback is shown only with `ALMA_DEBUG=1`."


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"\n### {path}\n"
    yield _escaped(inspect.cleandoc(command.help or command.short_help))
    if hasattr(command, "commands"):
        return
    context = command.make_context(path.removeprefix("alma "), [], resilient_parsing=True)
    records = [each for param in command.get_params(context) if (each := param.get_help_record(context)) is not None]
    rows = [(name, said) for name, said in records if not name.startswith(_EVERYWHERE)]
    if rows:
        yield "\n| | |"
        yield "|---|---|"
        yield from (f"| `{_cell(name)}` | {_cell(_escaped(said))} |" for name, said in rows)
    yield "\n```sh"
    yield from examples_of(command)
    yield "```"


def _operations() -> Iterator[str]:
    yield "\n## Operations\n"
    yield "What the MCP server and the REST service call an operation is this command:\n"
    yield "| Operation | Command | Right |"
    yield "|---|---|---|"
    for operation in offered():
        yield f"| `{operation.name}` | `alma {command_path(operation)}` | {operation.right} |"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace(" <str>", "")).replace("|", "\\|").strip()


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
