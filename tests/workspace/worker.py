"""What the tests of the workspace do in other processes: `python -m tests.workspace.worker command store number …`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from alma.bootstrap import open_storage
from alma.memory.states import AgentStates
from alma.memory.users import Users
from alma.storage.base import StorageBackend

Command = Callable[[StorageBackend, int, list[str]], None]


def merge_preferences(store: StorageBackend, number: int, _: list[str]) -> None:
    for i in range(5):
        Users(store).merge_preferences("u1", {f"{number}-{i}": i})


def save_state(store: StorageBackend, number: int, _: list[str]) -> None:
    AgentStates(store).save("helena", {str(number): True}, merge=True)


COMMANDS: dict[str, Command] = {"merge-preferences": merge_preferences, "save-state": save_state}


def main(command: str, place: str, number: str, *arguments: str) -> None:
    with open_storage(place, embedding_dim=4) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        COMMANDS[command](store, int(number), list(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
