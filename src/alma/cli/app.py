"""The `alma` command: the table of what it can do; nothing else is loaded before it is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from alma import __version__
from alma.cli.lazy import Entry, LazyGroup, examples

START = "Start here"
TASK = "Before and after a task"
MEMORIES = "Memories"
WORK = "Work"
STORE = "The store"
SERVE = "Serve"

_OPERATION = "generated:everyday"
_GROUP = "generated:group"
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
    Entry(MEMORIES, "restore", "Bring back forgotten memories by id, or a store from a backup file.", "restore:app"),
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
    Entry(STORE, "audit", "Look into the audit log of a store, and check it.", "audit:app"),
    Entry(STORE, "health", "Say whether the memory answers, and what it runs on.", _OPERATION),
    Entry(SERVE, "serve", "Run the REST service.", "serving:serving"),
    Entry(SERVE, "mcp", "Run the MCP server.", "serving:mcp"),
    Entry(SERVE, "keys", "Create, list and revoke the API keys of the REST service.", "keys:app"),
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
