"""The table of commands; a command's module is imported when the command runs."""

from __future__ import annotations

import difflib
import gc
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
    """A command: its name, summary and module.

    `made_by` is `module:name` inside this package, a Typer application or a function that makes one from the name of
    the command and, in a group, the word after it.
    """

    section: str
    name: str
    summary: str
    made_by: str

    def load(self, word: str = "") -> Any:
        """The imported command; a group that has a command of this word may leave out the others."""
        module, _, attribute = self.made_by.partition(":")
        made = getattr(import_module(f"alma.cli.{module}"), attribute)
        gc.freeze()
        gc.enable()
        command = command_of(made if isinstance(made, typer.Typer) else made(self.name, word))
        command.name = self.name
        command.short_help = self.summary
        return command


class Listing(TyperGroup):
    """A group that lists its commands with complete summaries."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Every command that is not hidden."""
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST_SUMMARY)) for name, command in shown])


class LazyGroup(TyperGroup):
    """The root group: shows the table, and imports only the command that runs."""

    entries: ClassVar[dict[str, Entry]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """A placeholder with the summary, for help and shell completion."""
        entry = self.entries.get(cmd_name)
        return None if entry is None else TyperCommand(entry.name, short_help=entry.summary, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command named by the first argument, imported."""
        name = args[0]
        entry = self.entries.get(name.replace("_", "-"))
        if entry is not None:
            return entry.name, entry.load(*args[1:2]), args[1:]
        if ctx.resilient_parsing:
            return None, None, args
        raise unknown(name, self.entries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The table by section."""
        width = max(map(len, self.entries))
        for section in dict.fromkeys(entry.section for entry in self.entries.values()):
            with formatter.section(section):
                rows = [(e.name.ljust(width), e.summary) for e in self.entries.values() if e.section == section]
                formatter.write_dl(rows)


def unknown(name: str, known: Iterable[str]) -> ConfigurationError:
    """The error for an unknown command."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"
    return ConfigurationError(f"unknown command {name!r}; {hint}")


def examples(*lines: str) -> str:
    """The epilog of a help text: examples, one per line."""
    return f"\b\n{_EXAMPLES}\n" + "\n".join(f"  {line}" for line in lines)


def examples_of(command: Any) -> list[str]:
    """The examples in a help text."""
    _, _, shown = (command.epilog or "").partition(f"{_EXAMPLES}\n")
    return [line.strip() for line in shown.splitlines()]


def application(summary: str, group: type[TyperGroup] = Listing) -> typer.Typer:
    """A command with sub-commands."""
    return typer.Typer(cls=group, help=summary, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def single(function: Any, *shown: str, **options: Any) -> typer.Typer:
    """A command that is one function, with examples."""
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
    Entry(
        START, "demo", "Serve the dashboard on a month of three agents' work, in a throw-away store.", "serving:demo"
    ),
    Entry(START, "doctor", "Check configuration, store, model, index and servers, and suggest fixes.", "doctor:app"),
    Entry(START, "bench", "Measure saving, learning and retrieving on this machine.", "bench:app"),
    Entry(TASK, "retrieve", "Retrieve the few memories worth knowing before a task.", _OPERATION),
    Entry(TASK, "recommend", "Recommend a strategy for a task, with the evidence.", _OPERATION),
    Entry(TASK, "learn", "Record the outcome of a task.", _OPERATION),
    Entry(TASK, "benefit", "Whether memories help: the report of measured benefit, and what harms.", _GROUP),
    Entry(TASK, "learning", "More about lessons: facts, preferences, archive, health.", _GROUP),
    Entry(TASK, "skills", "Lessons as Agent Skills and AGENTS.md: export, import, diff.", "skills:app"),
    Entry(MEMORIES, "remember", "Create a memory: a note, a decision, a solution.", _OPERATION),
    Entry(MEMORIES, "search", "Search memories by meaning and by words.", _OPERATION),
    Entry(MEMORIES, "context", "Collect the memories that matter for an activity, files and a branch.", _OPERATION),
    Entry(MEMORIES, "memories", "More about memories: list, update, delete, summarize …", _GROUP),
    Entry(MEMORIES, "stats", "Count the memories of each kind.", _OPERATION),
    Entry(MEMORIES, "forget", "Archive old outcomes and lessons with low confidence.", _OPERATION),
    Entry(MEMORIES, "restore", "Restore forgotten memories by id, or a store from a backup file.", "transfer:restore"),
    Entry(MEMORIES, "purge", "Permanently delete what was archived longer ago than this.", _OPERATION),
    Entry(WORK, "sessions", "Sessions, working memory, handoffs and agent states.", _GROUP),
    Entry(WORK, "projects", "The projects of this store.", _GROUP),
    Entry(WORK, "users", "The users of this store.", _GROUP),
    Entry(WORK, "work", "Work items: open, blocked, next.", _GROUP),
    Entry(WORK, "relations", "Relations between memories, and paths between them.", _GROUP),
    Entry(WORK, "graph", "The graph of entities extracted from texts.", _GROUP),
    Entry(WORK, "patterns", "Recurring patterns, insights across projects, and knowledge gaps.", _GROUP),
    Entry(
        MEMORIES,
        "review",
        "What needs a decision: quarantine, contradictions, near-duplicates, doubtful facts.",
        _GROUP,
    ),
    Entry(WORK, "history", "Versions of memories, and what was known at any time.", _GROUP),
    Entry(WORK, "settings", "Settings, for all users and per user.", _GROUP),
    Entry(STORE, "migrate", "Show or update the schema version of a store.", "store:migrate"),
    Entry(STORE, "import", "Import from another system, or from another store's export.", "transfer:importing"),
    Entry(STORE, "export", "Export all or a part of a store as JSON lines.", "transfer:exporting"),
    Entry(STORE, "backup", "Write a consistent backup of a store to a file.", "transfer:backing_up"),
    Entry(STORE, "merge", "Merge one store into another.", "transfer:merging"),
    Entry(STORE, "backups", "Write and list backups beside the store.", _GROUP),
    Entry(STORE, "webhooks", "Webhooks whose events wait in the store.", _GROUP),
    Entry(STORE, "reembed", "Move the store to another embedding model, while it is in use.", "store:reembedding"),
    Entry(STORE, "sync", "Keep Qdrant, Neo4j and Redis equal to the store: status, run, verify, repair.", "sync:sync"),
    Entry(STORE, "partition", "Split tables of a PostgreSQL store, by time or by hash.", "store:partitioning"),
    Entry(STORE, "store", "The HNSW indexes of a PostgreSQL store's vectors.", "vector_index:app"),
    Entry(STORE, "maintain", "Run the maintenance of a store now: expiry, decay, cleanup, retention.", _OPERATION),
    Entry(STORE, "maintenance", "When maintenance ran, and sessions in cold storage.", _GROUP),
    Entry(STORE, "audit", "List and verify the audit log of a store.", "store:audit"),
    Entry(STORE, "health", "Check that the store is available.", _OPERATION),
    Entry(SERVE, "serve", "Run the REST service.", "serving:serving"),
    Entry(SERVE, "mcp", "Run the MCP server.", "serving:mcp"),
    Entry(SERVE, "whoami", "Show what the caller may do.", _OPERATION),
    Entry(SERVE, "hook", "Answer an event of a coding assistant, read from standard input.", "serving:hook"),
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
        "alma COMMAND --help    shows options and examples",
    ),
)


def every_command() -> Iterator[tuple[str, Any]]:
    """Every listed command with its path; groups come before their commands."""
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
        typer.echo(f"alma-agent-memory {__version__}")
        raise typer.Exit


@app.callback()
def alma(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Memory for AI agents.

    All commands choose the store in the same way: --store (or ALMA_STORE), else the store of --config
    (.alma/config.yaml if it exists), else .alma/alma.db. Every command has --json for programs.
    """
