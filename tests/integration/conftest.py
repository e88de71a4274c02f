"""A memory for what plugs into the frameworks; its vectors are made of the words, which is fast."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alma import ALMA

OpenMemory = Callable[[], ALMA]
RunExample = Callable[[str], str]
EXAMPLES = Path(__file__).parents[2] / "examples"


def memory_at(place: str | Path, project_id: str = "shop") -> ALMA:
    """The memory at this address."""
    return ALMA.quickstart(place, project_id, embedding_provider="mock")


@pytest.fixture
def alma(sqlite_path: Path) -> Iterator[ALMA]:
    with memory_at(sqlite_path) as memory:
        yield memory


@pytest.fixture
def on_each_database(place: str) -> Iterator[ALMA]:
    """A memory on each database."""
    with memory_at(place) as memory:
        yield memory


@pytest.fixture
def new_memory(tmp_path: Path, sqlite_template: Path) -> Iterator[OpenMemory]:
    """Opens empty memories and closes them at the end."""
    with ExitStack() as stack:
        made = 0

        def open_memory() -> ALMA:
            nonlocal made
            made += 1
            file = tmp_path / f"alma-{made}.db"
            file.write_bytes(sqlite_template.read_bytes())
            return stack.enter_context(memory_at(file))

        yield open_memory


@pytest.fixture
def run_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunExample:
    """Runs an example in a new folder; the same folder, and so the same memory, each time."""
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> str:
        capsys.readouterr()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run
