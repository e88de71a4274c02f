"""Lazy commands: the list of commands is a table, and a command's module is loaded when the command is run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of

from alma.errors import ConfigurationError

_LONGEST_SUMMARY = 200
_EXAMPLES = "Examples:"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of the table: its name, what it is for, and where it is made.

    `made_by` names a Typer application, or a function that takes the command's name and gives one, as `module:name`
    inside this package.
    """

    section: str
    name: str
    summary: str
    made_by: str

    def load(self) -> Any:
        """The command itself."""
        module, _, attribute = self.made_by.partition(":")
        made = getattr(import_module(f"alma.cli.{module}"), attribute)
        command = command_of(made if isinstance(made, typer.Typer) else made(self.name))
        command.name = self.name
        command.short_help = self.summary
        return command


class Listing(TyperGroup):
    """A group that lists its commands with all that is said of them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Every command that is not hidden."""
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST_SUMMARY)) for name, command in shown])


class LazyGroup(TyperGroup):
    """A group that shows its table, and loads the one command that is run."""

    entries: ClassVar[dict[str, Entry]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """What the help and the completion say of a command, without loading it."""
        entry = self.entries.get(cmd_name)
        return None if entry is None else TyperCommand(entry.name, short_help=entry.summary, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the first argument names, loaded."""
        name = args[0]
        entry = self.entries.get(name.replace("_", "-"))
        if entry is not None:
            return entry.name, entry.load(), args[1:]
        if ctx.resilient_parsing:
            return None, None, args
        raise unknown(name, self.entries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The table, section by section."""
        width = max(map(len, self.entries))
        for section in dict.fromkeys(entry.section for entry in self.entries.values()):
            with formatter.section(section):
                rows = [(e.name.ljust(width), e.summary) for e in self.entries.values() if e.section == section]
                formatter.write_dl(rows)


def unknown(name: str, known: Iterable[str]) -> ConfigurationError:
    """What to say of a command that does not exist."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"
    return ConfigurationError(f"there is no command {name!r}; {hint}")


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, each on a line of its own."""
    return f"\b\n{_EXAMPLES}\n" + "\n".join(f"  {line}" for line in lines)


def examples_of(command: Any) -> list[str]:
    """The commands that a help text shows."""
    _, _, shown = (command.epilog or "").partition(f"{_EXAMPLES}\n")
    return [line.strip() for line in shown.splitlines()]


def application(summary: str, group: type[TyperGroup] = Listing) -> typer.Typer:
    """A command with sub-commands."""
    return typer.Typer(cls=group, help=summary, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def single(function: Any, *shown: str, **options: Any) -> typer.Typer:
    """A command that is one function, with examples for its help."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command(epilog=examples(*shown), **options)(function)
    return made
