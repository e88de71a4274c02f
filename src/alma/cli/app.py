"""The `alma` command: the table of what it can do; nothing else is loaded before it is run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of

from alma import __version__
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


START = "Start here"
TASK = "Before and after a task"
MEMORIES = "Memories"
WORK = "Work"
STORE = "The store"
SERVE = "Serve"

_OPERATION = "commands:everyday"
_GROUP = "commands:group"
ENTRIES = (
    Entry(START, "init", "Write a commented configuration, and show how an MCP client connects.", "init:app"),
    Entry(START, "doctor", "Check configuration, store, model, index and servers, and say what to do.", "doctor:app"),
    Entry(START, "bench", "Measure saving, learning and retrieving on this machine.", "bench:app"),
    Entry(TASK, "retrieve", "Hand over the few memories worth knowing before a task.", _OPERATION),
    Entry(TASK, "recommend", "Say which strategy to use for a task, with the evidence.", _OPERATION),
    Entry(TASK, "learn", "Remember how a task went, and what that teaches.", _OPERATION),
    Entry(TASK, "learning", "Everything else about lessons: facts, preferences, archive, health.", _GROUP),
    Entry(MEMORIES, "remember", "Remember something: a note, a decision, a solution.", _OPERATION),
    Entry(MEMORIES, "search", "Find the memories that answer a question, each with its reasons.", _OPERATION),
    Entry(MEMORIES, "context", "Gather what matters now for an activity, files and a branch.", _OPERATION),
    Entry(MEMORIES, "memories", "Everything else about memories: list, update, delete, summarize …", _GROUP),
    Entry(MEMORIES, "stats", "Count the memories of each kind.", _OPERATION),
    Entry(MEMORIES, "forget", "Forget old outcomes and lessons hardly trusted; they can be restored.", _OPERATION),
    Entry(MEMORIES, "restore", "Restore forgotten memories by id, or a store from a backup file.", "transfer:restore"),
    Entry(MEMORIES, "purge", "Delete for good what was forgotten longer ago than this.", _OPERATION),
    Entry(WORK, "sessions", "Sessions, their working memory, handoffs and agent states.", _GROUP),
    Entry(WORK, "projects", "The projects of this store.", _GROUP),
    Entry(WORK, "users", "The people this store knows.", _GROUP),
    Entry(WORK, "work", "Work items: what is to be done, what is blocked, what comes next.", _GROUP),
    Entry(WORK, "relations", "How memories are related, and the ways between them.", _GROUP),
    Entry(WORK, "graph", "The graph of people and things that texts mention.", _GROUP),
    Entry(WORK, "patterns", "What recurs in a project and in others like it, and what is missing.", _GROUP),
    Entry(WORK, "history", "Every version of every memory, and what was known at any time.", _GROUP),
    Entry(WORK, "settings", "The documented settings, for all and per user.", _GROUP),
    Entry(STORE, "migrate", "Tell or change the schema version of a store.", "store:migrate"),
    Entry(STORE, "import", "Bring in what another system, or another store's export, remembers.", "transfer:importing"),
    Entry(STORE, "export", "Write everything, or what belongs to somebody, as JSON lines.", "transfer:exporting"),
    Entry(STORE, "backup", "Write one consistent state of a store into a file.", "transfer:backing_up"),
    Entry(STORE, "merge", "Bring everything that one store holds into another.", "transfer:merging"),
    Entry(STORE, "reembed", "Move the store to another embedding model, while it is in use.", "store:reembedding"),
    Entry(STORE, "partition", "Split tables of a PostgreSQL store by time.", "store:partitioning"),
    Entry(STORE, "audit", "Look into the audit log of a store, and check it.", "store:audit"),
    Entry(STORE, "health", "Say whether the memory answers, and what it runs on.", _OPERATION),
    Entry(SERVE, "serve", "Run the REST service.", "serving:serving"),
    Entry(SERVE, "mcp", "Run the MCP server.", "serving:mcp"),
    Entry(SERVE, "keys", "Create, list and revoke the API keys of the REST service.", "serving:keys"),
)
LazyGroup.entries = {entry.name: entry for entry in ENTRIES}

app = typer.Typer(
    name="alma",
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"max_content_width": 120},
    epilog=examples(
        "alma init",
        'alma learn "Test the login form" --agent helena --outcome success --strategy "wait until idle"',
        'alma retrieve "Test the sign-up form" --agent helena',
        "alma COMMAND --help    says more, with examples",
    ),
)


def every_command() -> Iterator[tuple[str, Any]]:
    """Every command that is listed, with the words that lead to it; groups come before what they hold."""
    for entry in ENTRIES:
        yield from _with_those_inside(f"alma {entry.name}", entry.load())


def _with_those_inside(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if command.hidden:
        return
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_those_inside(f"{path} {name}", inner)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"alma-memory {__version__}")
        raise typer.Exit


@app.callback()
def alma(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Memory for AI agents.

    The store is chosen the same way everywhere: --store (or ALMA_STORE), else what --config (.alma/config.yaml where
    it is there) describes, else .alma/alma.db. Add --json to any command for programs.
    """
