"""The demonstration: a believable month of three agents' work, the same in every run."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from random import Random
from typing import Any

from alma import clock
from alma.core import ALMA
from alma.errors import RefusedError
from alma.model.learning import DomainKnowledge
from alma.operations import operation_named
from alma.operations.access import Caller
from alma.operations.base import to_json

__all__ = ["DAYS", "PROJECT", "fill"]

DAYS = 30
PROJECT = "shop"
_SEED = 7
_TASKS_A_DAY = (4, 8)
_LEARNT_BY_DAY = 14
_Given = Mapping[str, Any]
_Step = tuple[datetime, Callable[["_Writer"], None]]


def fill(memory: ALMA, until: datetime | None = None, progress: Callable[[int, int], None] | None = None) -> None:
    """Write the month that ends with `until` (default: now) into an empty store."""
    end = (until or clock.now()).astimezone(UTC)
    start = (end - timedelta(days=DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    story = tomllib.loads((files("alma.demo") / "story.toml").read_text(encoding="utf-8"))
    steps = sorted(_steps(story, start, end, Random(_SEED)), key=lambda step: step[0])
    with clock.replay(start, _SEED) as time:
        writer = _Writer(memory)
        # Changes that maintenance would make when the demonstration is opened are not part of the month.
        writer.do("set_setting", key="memory_decay_enabled", value=False)
        for done, (at, write) in enumerate(steps, start=1):
            time.moment = at
            write(writer)
            if progress is not None:
                progress(done, len(steps))
        time.moment = end
        writer.finish(story)


class _Writer:
    """Performs operations, and remembers the ids of what it wrote."""

    def __init__(self, memory: ALMA) -> None:
        self._memory = memory
        self._caller = Caller(memory)
        self._ids: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def do(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Perform an operation, as any caller does."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result: dict[str, Any] = to_json(operation_named(operation).perform(self._caller, given))
        return result

    def work(self, given: _Given, task: str, choice: list[Any], success: bool) -> None:
        strategy, *error = choice[0], *choice[2:]
        self.do(
            "learn",
            agent=given["agent"],
            task=task,
            task_type=given["type"],
            outcome="success" if success else "failure",
            strategy_used=strategy,
            error_message=error[0] if error and not success else None,
        )

    def memories(self, given: _Given) -> None:
        made = self.do(
            "create_memory",
            content=given["text"],
            title=given["title"],
            memory_type=given["type"],
            agent=given["agent"],
            tags=given["tags"],
        )
        self._ids[given["title"]] = made["memory"]["id"]

    def facts(self, given: _Given) -> None:
        replaced = [self._ids[given["supersedes"]]] if "supersedes" in given else []
        made = self.do(
            "add_knowledge",
            agent=given["agent"],
            domain=given["domain"],
            fact=given["text"],
            source=given.get("source", "user_stated"),
            supersedes=replaced,
        )["knowledge"]
        self._ids[given["text"]] = made["id"]
        if "confidence" in given:
            scope = self._memory.scope()
            self._memory.storage.update(DomainKnowledge, made["id"], {"confidence": given["confidence"]}, scope)

    def preferences(self, given: _Given) -> None:
        made = self.do("add_preference", user_id=given["user"], category=given["category"], preference=given["text"])[
            "preference"
        ]
        if "confidence" in given:
            self.do("correct_record", kind="user_preference", id=made["id"], confidence=given["confidence"])

    def changes(self, given: _Given) -> None:
        self.do("update_memory", memory_id=self._ids[given["title"]], content=given["text"], reason=given["reason"])

    def relations(self, given: _Given) -> None:
        ends = {"from_id": self._ids[given["from"]], "to_id": self._ids[given["to"]]}
        self.do("relate_memories", **ends, relation=given["relation"])

    def untrusted(self, given: _Given) -> None:
        try:
            self.do("create_memory", content=given["text"], agent=given["agent"], source=given["source"])
        except RefusedError:
            # Quarantined, which is what the review inbox is to show.
            return

    def graph(self, given: _Given) -> None:
        self.do("add_to_graph", text=given["text"])

    def sessions(self, given: _Given) -> None:
        made = self.do("create_session", name=given["name"], goal=given["goal"], agent=given["agent"])
        self._sessions[given["name"]] = made["session"]["id"]

    def end_session(self, given: _Given) -> None:
        self.do("end_session", session_id=self._sessions[given["name"]], summary=f"Done: {given['goal']}.")

    def handoffs(self, given: _Given) -> None:
        self.do(
            "create_handoff",
            session_id=self._sessions[given["session"]],
            agent=given["agent"],
            last_action=given["action"],
            last_outcome=given["outcome"],
            next_steps=given["next"],
            blockers=given.get("blockers"),
            key_decisions=given.get("decisions"),
            active_files=given["files"],
        )

    def finish(self, story: _Given) -> None:
        """Work items, working memory, reads and patterns as they are at the end of the month."""
        for item in story["items"]:
            made = self.do("create_work_item", title=item["title"], agent=item["agent"], priority=item["priority"])
            self.do("update_work_item", item_id=made["item"]["id"], status=item["status"])
        held = [
            self._ids[title] for title in ("Returns within 30 days", "Idempotent payments", "Gift cards are accounts")
        ]
        self.do("switch_session", session_id=self._sessions["Returns"], reopen=True)
        self.do("hold_memories", session_id=self._sessions["Returns"], memory_ids=held)
        self.do("pin_records", kind="memory", ids=[self._ids["Orders live in PostgreSQL"]])
        self.do("get_memory", memory_id=self._ids["Idempotent payments"])
        self.do("mark_helpful", memory_id=self._ids["Idempotent payments"], session_id=self._sessions["Returns"])
        self.do("mine_patterns")
        self._memory.journal.flush()


def _steps(story: _Given, start: datetime, end: datetime, random: Random) -> Iterator[_Step]:
    """Everything that happens before the end, with its time."""
    for name in (
        "memories",
        "facts",
        "preferences",
        "changes",
        "relations",
        "untrusted",
        "graph",
        "sessions",
        "handoffs",
    ):
        for number, given in enumerate(story[name]):
            at = start + timedelta(days=given["day"], hours=9 + _HOURS[name], minutes=7 * number % 50)
            yield at, _written(name, given)
    for given in story["sessions"]:
        over = start + timedelta(days=given["day"] + given["length"], hours=17)
        if over < end - timedelta(hours=12):
            yield over, _written("end_session", given)
    for day in range(DAYS):
        for hour in sorted(random.uniform(8.0, 18.0) for _ in range(random.randint(*_TASKS_A_DAY))):
            yield _task(story, start + timedelta(days=day, hours=hour), day, random)


# What refers to something else comes after it on the same day.
_HOURS = {
    "sessions": -1.0,
    "memories": 0.0,
    "facts": 1.0,
    "preferences": 1.5,
    "changes": 2.0,
    "relations": 3.0,
    "untrusted": 4.0,
    "graph": 4.5,
    "handoffs": 8.0,
}


def _written(name: str, given: _Given) -> Callable[[_Writer], None]:
    return lambda writer: getattr(writer, name)(given)


def _task(story: _Given, at: datetime, day: int, random: Random) -> _Step:
    """A task of a day: agents choose what works more often as the month goes on."""
    given = random.choice(story["work"])
    task = random.choice(given["tasks"])
    knows = random.random() < 0.35 + 0.6 * min(1.0, day / _LEARNT_BY_DAY)
    choice = given["good" if knows else "bad"]
    success = random.random() < choice[1]
    return at, lambda writer: writer.work(given, task, choice, success)
