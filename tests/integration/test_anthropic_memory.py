"""The memory tool of Anthropic, beside the SDK's tool for a folder of files."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import given
from hypothesis import strategies as st

from alma import ALMA
from alma.integration.anthropic_memory import ALMAMemoryTool, AsyncALMAMemoryTool
from alma.memory.history import History
from alma.model.memory import Memory
from alma.model.scope import Scope
from tests.integration.conftest import RunExample, memory_at

_NAMES = ["a", "b", "a.txt", "b.md", ".hidden", "ä"]
_PATHS = st.one_of(
    st.lists(st.sampled_from(_NAMES), max_size=4).map(lambda names: "/".join(("/memories", *names))),
    st.sampled_from(
        [
            "/memories/",
            "/memories/a/",
            "/memories//a//b",
            "/memories/a/../b",
            "/memories/./a",
            "/memories/..",
            "/memories/../..",
            "/memories/../memories/a",
            "/memories/../etc",
            "/memoriesa",
            "/other",
            "a",
            "",
        ]
    ),
)
_TEXTS = st.one_of(
    st.text("ab\n\r", max_size=8),
    st.sampled_from(["", "one\ntwo\nthree\nfour\nfive\nsix\n", "aXa", "ü" * 700, "x" * 2048]),
)
_COMMANDS: Any = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": _PATHS}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": _PATHS,
            "view_range": st.lists(st.integers(-2, 7), min_size=1, max_size=3) | st.none(),
        }
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": _PATHS, "file_text": _TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": _PATHS, "file_text": _TEXTS}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": _PATHS,
            "old_str": st.sampled_from(["a", "b", "one", "five", "aa", "", "\n", "aXa"]),
            "new_str": _TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": _PATHS, "insert_line": st.integers(-1, 8), "insert_text": _TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": _PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": _PATHS, "new_path": _PATHS}),
)


def answer(tool: Any, command: Any) -> str:
    """What a tool answers, or its error; errors of a file system are not answers of the tool."""
    try:
        return with_equal_directories(str(tool.call(command)))
    except ToolError as error:
        return f"error: {error}"
    except OSError:
        return "error:"


def with_equal_directories(text: str) -> str:
    """A listing without the sizes of directories, which differ between file systems."""
    first, *rest = text.split("\n")
    if not first.startswith("Here're"):
        return text
    listed = [
        f"-\t{line.partition(chr(9))[2]}" if n == 0 or line.endswith("/") else line for n, line in enumerate(rest)
    ]
    return "\n".join((first, *listed))


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / str(number) for number in itertools.count())


@given(st.lists(_COMMANDS, max_size=14))
def test_it_answers_as_the_tool_for_a_folder(alma: ALMA, folders: Iterator[Path], commands: list[Any]) -> None:
    ours = ALMAMemoryTool(alma.for_project(uuid.uuid4().hex))
    theirs = BetaLocalFilesystemMemoryTool(str(next(folders)))
    for command in [*commands, *({"command": "view", "path": f"/memories{below}"} for below in ("", "/a", "/a/b"))]:
        wanted, said = answer(theirs, command), answer(ours, command)
        assert said == wanted or (said.startswith(wanted) and wanted == "error:"), command


@pytest.mark.parametrize("new", ["/memories/a", "/memories/a/b", "/memories/a/b/c"])
@pytest.mark.parametrize("made", ["", "/memories/a", "/memories/a/x"])
def test_moves_into_itself_answer_alike(alma: ALMA, tmp_path: Path, new: str, made: str) -> None:
    tools: list[Any] = [ALMAMemoryTool(alma), BetaLocalFilesystemMemoryTool(str(tmp_path))]
    moved = {"command": "rename", "old_path": "/memories/a", "new_path": new}
    created = [{"command": "create", "path": made, "file_text": "text"}] if made else []
    for command in (*created, moved, {"command": "view", "path": "/memories"}):
        said, wanted = (answer(tool, command) for tool in tools)
        assert said == wanted or (said.startswith(wanted) and wanted == "error:"), command


def call(tool: Any, command: str, path: str, **more: Any) -> str:
    return str(tool.call({"command": command, "path": path, **more}))


def test_files_and_directories_work_on_each_database(on_each_database: ALMA, tmp_path: Path) -> None:
    tools: list[Any] = [ALMAMemoryTool(on_each_database), BetaLocalFilesystemMemoryTool(str(tmp_path))]
    answers: list[list[str]] = []
    for tool in tools:
        call(tool, "create", "/memories/notes/deep/one.md", file_text="one\ntwo\n")
        call(tool, "insert", "/memories/notes/deep/one.md", insert_line=1, insert_text="and a half")
        call(tool, "str_replace", "/memories/notes/deep/one.md", old_str="two", new_str="2")
        tool.call({"command": "rename", "old_path": "/memories/notes/deep", "new_path": "/memories/kept"})
        shown = [call(tool, "view", "/memories"), call(tool, "view", "/memories/kept/one.md")]
        call(tool, "delete", "/memories/kept")
        answers.append([with_equal_directories(each) for each in (*shown, call(tool, "view", "/memories"))])
        assert tool.clear_all_memory() == "All memory cleared"
    assert answers[0] == answers[1]


def test_the_asynchronous_tool_answers_alike(alma: ALMA) -> None:
    tool = AsyncALMAMemoryTool(alma)

    async def use() -> list[str]:
        path = "/memories/a.txt"
        steps: list[Any] = [
            {"command": "create", "path": path, "file_text": "one"},
            {"command": "insert", "path": path, "insert_line": 1, "insert_text": "two"},
            {"command": "str_replace", "path": path, "old_str": "one", "new_str": "1"},
            {"command": "rename", "old_path": path, "new_path": "/memories/b.txt"},
            {"command": "view", "path": "/memories/b.txt"},
            {"command": "delete", "path": "/memories/b.txt"},
        ]
        return [str(await tool.call(step)) for step in steps] + [str(await tool.clear_all_memory())]

    answers = asyncio.run(use())
    assert answers[4].endswith("\n     1\t1\n     2\ttwo\n     3\t")
    assert answers[-2:] == ["Successfully deleted /memories/b.txt", "All memory cleared"]


def test_files_are_found_masked_and_every_edit_is_a_version(alma: ALMA) -> None:
    tool = ALMAMemoryTool(alma, agent="claude")
    path = "/memories/ana.md"
    call(tool, "create", path, file_text="Ana lives in Lisbon\npassword: hunter2horse!\n")
    call(tool, "str_replace", path, old_str="Lisbon", new_str="Porto")
    assert "[redacted:password]" in call(tool, "view", path)
    (found,) = alma.journal.search("Where does Ana live?", alma.scope()).memories
    assert (found.title, found.source_tool, found.source_agent) == (path, "anthropic", "claude")
    versions = History(alma.storage).versions(Memory, found.id, alma.scope())
    assert len(versions) == 2
    assert "hunter2horse" not in str((versions, alma.storage.find(Memory, Scope.everywhere())))
    call(tool, "delete", path)
    alma.journal.undelete(found.id, alma.scope())
    assert "Porto" in call(tool, "view", path)


def test_two_processes_edit_one_file_without_loss(sqlite_path: Path) -> None:
    with memory_at(sqlite_path) as one, memory_at(sqlite_path) as other:
        tools = [AsyncALMAMemoryTool(one), AsyncALMAMemoryTool(other)]
        path = "/memories/list.txt"

        async def add() -> str:
            await tools[0].call({"command": "create", "path": path, "file_text": "start\n"})
            steps = [
                {"command": "insert", "path": path, "insert_line": 1, "insert_text": f"line {n}"} for n in range(8)
            ]
            await asyncio.gather(*(tools[n % 2].call(step) for n, step in enumerate(steps)))
            return str(await tools[0].call({"command": "view", "path": path}))

        shown = asyncio.run(add())
    assert all(f"line {n}" in shown for n in range(8))


@pytest.mark.parametrize("path", ["/memories/a\x00b", "/memories/" + "x" * 256])
def test_names_that_no_folder_can_have_are_refused(alma: ALMA, path: str) -> None:
    with pytest.raises(ToolError, match="NUL character or with more than 255 bytes"):
        call(ALMAMemoryTool(alma), "create", path, file_text="text")


def test_text_that_is_not_unicode_is_refused(alma: ALMA) -> None:
    with pytest.raises(ToolError, match="not valid Unicode"):
        call(ALMAMemoryTool(alma), "create", "/memories/a", file_text="\ud800")


def test_the_example_reads_what_the_run_before_wrote(run_example: RunExample) -> None:
    assert "File created successfully" in run_example("anthropic_memory_tool.py")
    assert "     1\tAna is allergic to peanuts." in run_example("anthropic_memory_tool.py")
