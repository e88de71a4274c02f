"""What the tests of the workspace do in other processes, which read their orders line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from alma.bootstrap import open_storage
from alma.errors import ValidationError
from alma.memory.sessions import Sessions
from alma.memory.settings import Users
from alma.memory.states import AgentStates
from alma.memory.working import WorkingMemory
from alma.model.scope import Scope
from alma.progress import ProgressTracker
from alma.session import SessionManager
from alma.storage.base import StorageBackend

Command = Callable[[StorageBackend, int, list[str]], str]


def merge_preferences(store: StorageBackend, number: int, _: list[str]) -> str:
    for i in range(5):
        Users(store).merge_preferences("u1", {f"{number}-{i}": i})
    return "done"


def save_state(store: StorageBackend, number: int, _: list[str]) -> str:
    AgentStates(store).save("helena", {str(number): True}, merge=True)
    return "done"


def set_parent(store: StorageBackend, number: int, arguments: list[str]) -> str:
    above = (number + 1) % int(arguments[0])
    return attempted(lambda: Sessions(store).set_parent(f"s{number}", f"s{above}", Scope(user_id="ana")))


def add_memories(store: StorageBackend, number: int, _: list[str]) -> str:
    for i in range(5):
        WorkingMemory(store).add("s", f"{number}-{i}", Scope(user_id="ana"))
    return "done"


def claim_all(store: StorageBackend, number: int, _: list[str]) -> str:
    tracker = ProgressTracker("shop", store)
    claimed = iter(lambda: tracker.claim_next(f"agent{number}"), None)
    return " ".join(item.id for item in claimed)


def add_dependency(store: StorageBackend, number: int, arguments: list[str]) -> str:
    blocker = (number + 1) % int(arguments[0])
    return attempted(lambda: ProgressTracker("shop", store).add_dependency(f"i{number}", blocked_by=f"i{blocker}"))


def hand_over(store: StorageBackend, number: int, arguments: list[str]) -> str:
    (agent,) = arguments
    manager = SessionManager("shop", store)
    context = manager.start_session(agent, goal=f"goal {number}")
    manager.create_handoff(agent, context.session_id, f"action {number}", "success", ["go on"])
    before = context.previous_handoff
    return str(None if before is None else before.last_action)


def attempted(act: Callable[[], object]) -> str:
    try:
        act()
    except ValidationError as exc:
        return "cycle" if "cycle" in str(exc) else str(exc)
    return "fine"


COMMANDS: dict[str, Command] = {
    "merge-preferences": merge_preferences,
    "save-state": save_state,
    "set-parent": set_parent,
    "add-memories": add_memories,
    "claim-all": claim_all,
    "add-dependency": add_dependency,
    "hand-over": hand_over,
}


def say(message: str) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        command, place, number, *arguments = json.loads(line)
        with open_storage(place, embedding_dim=4) as store:
            say("ready")
            sys.stdin.readline()
            said = COMMANDS[command](store, int(number), arguments)
        say(said)


if __name__ == "__main__":
    main()
