"""What the tests of the workspace do in other processes: `python -m tests.workspace.worker command store number …`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from alma.bootstrap import open_storage
from alma.errors import ValidationError
from alma.memory.sessions import Sessions
from alma.memory.states import AgentStates
from alma.memory.users import Users
from alma.memory.working import WorkingMemory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

Command = Callable[[StorageBackend, int, list[str]], None]


def merge_preferences(store: StorageBackend, number: int, _: list[str]) -> None:
    for i in range(5):
        Users(store).merge_preferences("u1", {f"{number}-{i}": i})


def save_state(store: StorageBackend, number: int, _: list[str]) -> None:
    AgentStates(store).save("helena", {str(number): True}, merge=True)


def set_parent(store: StorageBackend, number: int, _: list[str]) -> None:
    try:
        Sessions(store).set_parent(f"s{number}", f"s{1 - number}", Scope(user_id="ana"))
    except ValidationError:
        sys.stdout.write("circle\n")
    else:
        sys.stdout.write("fine\n")


def add_memories(store: StorageBackend, number: int, _: list[str]) -> None:
    for i in range(5):
        WorkingMemory(store).add("s", f"{number}-{i}", Scope(user_id="ana"))


COMMANDS: dict[str, Command] = {
    "merge-preferences": merge_preferences,
    "save-state": save_state,
    "set-parent": set_parent,
    "add-memories": add_memories,
}


def main(command: str, place: str, number: str, *arguments: str) -> None:
    with open_storage(place, embedding_dim=4) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        COMMANDS[command](store, int(number), list(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
