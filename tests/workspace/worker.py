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
from alma.progress import ProgressTracker
from alma.session import SessionManager
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


def claim_all(store: StorageBackend, number: int, _: list[str]) -> None:
    tracker = ProgressTracker("shop", store)
    while (item := tracker.claim_next(f"agent{number}")) is not None:
        sys.stdout.write(f"{item.id}\n")


def add_dependency(store: StorageBackend, number: int, _: list[str]) -> None:
    tracker = ProgressTracker("shop", store)
    try:
        tracker.add_dependency(f"i{number}", blocked_by=f"i{1 - number}")
    except ValidationError:
        sys.stdout.write("circle\n")
    else:
        sys.stdout.write("fine\n")


def hand_over(store: StorageBackend, number: int, arguments: list[str]) -> None:
    (agent,) = arguments
    manager = SessionManager("shop", store)
    context = manager.start_session(agent, goal=f"goal {number}")
    before = context.previous_handoff
    sys.stdout.write(f"{None if before is None else before.last_action}\n")
    manager.create_handoff(agent, context.session_id, f"action {number}", "success", ["go on"])


COMMANDS: dict[str, Command] = {
    "merge-preferences": merge_preferences,
    "save-state": save_state,
    "set-parent": set_parent,
    "add-memories": add_memories,
    "claim-all": claim_all,
    "add-dependency": add_dependency,
    "hand-over": hand_over,
}


def main(command: str, place: str, number: str, *arguments: str) -> None:
    with open_storage(place, embedding_dim=4) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        COMMANDS[command](store, int(number), list(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
