"""A project with memories, hooks as a host runs them, and a resident process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA
from alma.hooks.places import Place, place_of

CONFIGURATION = """\
alma:
  project_id: shop
  storage: sqlite
  embedding_provider: mock
"""
SECONDS = 60.0
Json = dict[str, Any]


class Project:
    """A folder with a configured memory, as a host opens it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / ".alma" / "config.yaml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(CONFIGURATION)
        self.processor_seconds = 0.0
        self.errors = ""

    @property
    def place(self) -> Place:
        found = place_of(None, None, None, {"cwd": str(self.folder)})
        assert found is not None
        return found

    @contextmanager
    def memory(self) -> Iterator[ALMA]:
        with ALMA.from_config(self.config) as memory:
            yield memory

    def hook(self, event: str, *options: str, stdin: str | None = None, **payload: Any) -> Json:
        """What a hook answers; the exit code is 0."""
        given = json.dumps({"hook_event_name": event, "cwd": str(self.folder), **payload}) if stdin is None else stdin
        env = {**os.environ, "ALMA_USER": "ana", "ALMA_HOOK_SECONDS": "30", "ALMA_HOOK_RESIDENT": "0"}
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "alma", "hook", event, *options],
            input=given,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=env,
            timeout=SECONDS,
            check=False,
        )
        after = os.times()
        self.processor_seconds = after.children_user + after.children_system - before[2] - before[3]
        self.errors = done.stderr
        assert done.returncode == 0, done.stderr
        answer: Json = json.loads(done.stdout)
        return answer

    def context(self, event: str, *options: str, **payload: Any) -> str:
        """The context in the answer; empty if there is none."""
        answer = self.hook(event, *options, **payload)
        output = answer.get("hookSpecificOutput", {"hookEventName": event})
        assert output["hookEventName"] == event
        return str(output.get("additionalContext", ""))

    @property
    def log(self) -> str:
        file = self.place.folder / "hooks.log"
        return file.read_text() if file.exists() else ""


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; a busy machine takes its time."""
    ends = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose agent has learned from six tasks."""
    made = Project(tmp_path_factory.mktemp("project"))
    with made.memory() as memory:
        for _ in range(3):
            memory.learn("claude-code", "Test the login form", "success", "test empty fields before valid ones")
        for _ in range(3):
            memory.learn("claude-code", "Run the tests", "failure", "npm test", error_message="Error: use pnpm test")
        memory.add_user_preference("ana", "style", "short answers, no emojis")
        memory.add_user_preference("bob", "style", "long answers with emojis")
        memory.journal.create("Run make lint before a commit.", project_id="shop", memory_type="instruction")
        memory.journal.create("The staging database bluebird listens on port 5433.", project_id="shop")
    return made


@pytest.fixture(scope="module")
def resident(project: Project) -> Iterator[Project]:
    """The project with its resident process."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "alma.hooks.resident", "--idle-seconds", "300"),
            *("--folder", str(project.place.folder), *project.place.arguments),
        ]
    )
    wait_for(project.place.socket.exists)
    yield project
    process.terminate()
    process.wait(SECONDS)
    project.place.socket.unlink(missing_ok=True)
