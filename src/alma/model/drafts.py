"""Work items and handoffs that a program fills in step by step, before it stores them or without a store."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from alma.clock import new_id, now

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_DECISIONS = 10
_SHOWN = 5


class Lines(list[Any]):
    """A list that also equals a tuple of the same items, as a stored record has."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def put(record: Any, **values: Any) -> None:
    """Set fields of a record in place, each checked as in a new one; lists stay lists."""
    for name, value in values.items():
        checked = record.spec.checked(name, value)
        object.__setattr__(record, name, Lines(checked) if isinstance(checked, tuple) else checked)


class Draft:
    """A record whose fields may be assigned; each value is checked as in a new record."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        for name, value in self.values().items():  # type: ignore[attr-defined]
            if isinstance(value, tuple):
                object.__setattr__(self, name, Lines(value))

    def __eq__(self, other: object) -> bool:
        """Whether it is a record of this kind with the same values, a draft or not."""
        if getattr(other, "spec", None) is not self.spec:  # type: ignore[attr-defined]
            return NotImplemented
        return bool(self.values() == other.values())  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.spec.by_name:  # type: ignore[attr-defined]
            put(self, **{name: value})
        else:
            object.__setattr__(self, name, value)


def _draft_of(kind: str) -> Any:
    # The drafts are subclasses of the records that are made from the classes here.
    return getattr(import_module("alma.model.workspace"), kind)


def drafted(record: Any) -> Any:
    """A copy of a stored work item or handoff that may be changed; lists of them and None are given likewise."""
    if isinstance(record, list):
        return [drafted(each) for each in record]
    if record is None or isinstance(record, Draft):
        return record
    made = _draft_of(f"{type(record).__name__.removeprefix('Session')}Draft")(**record.values())
    if isinstance(record, HandoffSteps):
        made.session_start, made.session_end = record.session_start, record.session_end
    return made


class WorkSteps:
    """The steps of a work item; they change this object only. `ProgressTracker` has the same steps for stored items."""

    __slots__ = ()

    @classmethod
    def create(
        cls,
        project_id: str,
        title: str,
        description: str = "",
        item_type: str = "task",
        agent: str | None = None,
        priority: int = 50,
        parent_id: str | None = None,
        **fields: Any,
    ) -> Any:
        """A new work item that may be changed."""
        named = {"title": title, "description": description, "item_type": item_type, "agent": agent}
        more = {"priority": priority, "parent_id": parent_id, **fields}
        return _draft_of("WorkItemDraft")(id=fields.pop("id", new_id()), project_id=project_id, **named, **more)

    def start(self: Any) -> None:
        """Begin an attempt."""
        put(self, status="in_progress", started_at=now(), attempt_count=self.attempt_count + 1, updated_at=now())

    def complete(self: Any, tests_passing: bool = True) -> None:
        """The work is done; the time since its start is added to the time spent."""
        moment = now()
        begun = self.started_at or moment
        spent = self.time_spent_ms + max(0, int((moment - begun).total_seconds() * 1000))
        put(self, status="done", completed_at=moment, tests_passing=tests_passing, time_spent_ms=spent)
        put(self, updated_at=moment)

    def block(self: Any, blocked_by: str | None = None, reason: str = "") -> None:
        """The work waits, for another item or for a reason."""
        waits = [*self.blocked_by, *([blocked_by] if blocked_by else [])]
        put(self, status="blocked", blocked_by=waits, metadata=self._noted("block_reason", reason), updated_at=now())

    def fail(self: Any, reason: str = "") -> None:
        """The work failed."""
        put(self, status="failed", metadata=self._noted("failure_reason", reason), updated_at=now())

    def is_actionable(self: Any) -> bool:
        """Whether it can be worked on now: open, and not waiting for another item."""
        return self.status in ("pending", "in_progress") and not self.blocked_by

    def _noted(self: Any, key: str, reason: str) -> dict[str, Any]:
        return {**self.metadata, key: reason} if reason else dict(self.metadata)


class HandoffSteps:
    """The steps of a handoff; they change this object only. `SessionManager` has them for stored sessions."""

    __slots__ = ()

    @classmethod
    def create(
        cls,
        project_id: str,
        agent: str,
        session_id: str,
        last_action: str,
        current_goal: str,
        last_outcome: str = "unknown",
        session_start: datetime | None = None,
        **fields: Any,
    ) -> Any:
        """A new handoff that may be changed."""
        named = {"project_id": project_id, "agent": agent, "session_id": session_id, "last_action": last_action}
        made = _draft_of("HandoffDraft")(
            **named,
            current_goal=current_goal,
            last_outcome=last_outcome,
            duration_ms=fields.pop("duration_ms", 0),
            **fields,
        )
        made.session_start = session_start or made.created_at
        return made

    @property
    def embedding(self) -> None:
        """Handoffs have no vectors; the name is for programs that ask."""
        return None

    @property
    def session_start(self: Any) -> datetime:
        """When the session began."""
        begun: datetime = self.created_at - timedelta(milliseconds=self.duration_ms or 0)
        return begun

    @property
    def session_end(self: Any) -> datetime | None:
        """When the session ended: a stored handoff is made at the end."""
        return self.created_at  # type: ignore[no-any-return]

    def finalize(self: Any, last_action: str, last_outcome: str, next_steps: Sequence[str] | None = None) -> None:
        """End the session with its last action and outcome."""
        self.session_end = now()
        spent = int((self.session_end - self.session_start).total_seconds() * 1000)
        put(self, last_action=last_action, last_outcome=last_outcome, duration_ms=max(0, spent))
        if next_steps:
            put(self, next_steps=list(next_steps)[:_MOST_DECISIONS])

    def add_decision(self: Any, decision: str) -> None:
        """Note a decision; the latest ten are kept."""
        put(self, key_decisions=[*self.key_decisions, decision][-_MOST_DECISIONS:])

    def add_blocker(self: Any, blocker: str) -> None:
        """Note what is in the way, once."""
        put(self, blockers=[*self.blockers, *([] if blocker in self.blockers else [blocker])])

    def remove_blocker(self: Any, blocker: str) -> None:
        """Remove what is no longer in the way."""
        put(self, blockers=[each for each in self.blockers if each != blocker])

    def set_test_status(self: Any, test_name: str, passing: bool) -> None:
        """Note whether a test passes."""
        put(self, test_status={**self.test_status, test_name: passing})

    def format_quick_reload(self: Any) -> str:
        """The handoff as a short text with headings."""
        told = f"{self.last_action} ({self.last_outcome or 'unknown'})"
        lines = [f"## Session Handoff: {self.session_id}", f"Agent: {self.agent}"]
        lines += [f"Goal: {self.current_goal or self.goal or 'Unknown'}", f"Last Action: {told}"]
        lines.append(f"Confidence: {round(self.confidence_level * 100)}%")
        lines += section("Next Steps", self.next_steps[:_SHOWN])
        lines += section("Blockers", self.blockers)
        lines += section("Key Decisions", self.key_decisions[-_SHOWN:])
        lines += section("Active Files", self.active_files[:_SHOWN])
        lines += section("Risks", self.risk_flags)
        if self.test_status:
            passing = sum(1 for value in self.test_status.values() if value is True)
            lines += ["", f"### Tests: {passing}/{len(self.test_status)} passing"]
        return "\n".join(lines)


def section(heading: str, texts: Sequence[str], marks: str = "###") -> list[str]:
    """The lines of a heading with a list below it; nothing for an empty list."""
    return ["", f"{marks} {heading}:", *(f"- {text}" for text in texts)] if texts else []


class SessionNotes:
    """The notes of an open session for its handoff."""

    __slots__ = ()

    def _note(self: Any, name: str, default: Any) -> Any:
        noted = self.context_json.get("handoff")
        return noted.get(name, default) if isinstance(noted, dict) else default

    @property
    def last_action(self) -> str:
        """The last action noted."""
        return str(self._note("last_action", "session_start"))

    @property
    def last_outcome(self) -> str:
        """The outcome of the last action."""
        return str(self._note("last_outcome", "unknown"))

    @property
    def current_goal(self: Any) -> str | None:
        """The goal noted last, else that of the session."""
        return self._note("current_goal", self.goal)  # type: ignore[no-any-return]

    @property
    def key_decisions(self) -> list[str]:
        """The decisions noted."""
        return list(self._note("key_decisions", ()))

    @property
    def active_files(self) -> list[str]:
        """The files noted."""
        return list(self._note("active_files", ()))

    @property
    def blockers(self) -> list[str]:
        """The blockers."""
        return list(self._note("blockers", ()))

    @property
    def next_steps(self) -> list[str]:
        """The next steps noted."""
        return list(self._note("next_steps", ()))

    @property
    def risk_flags(self) -> list[str]:
        """The risks noted."""
        return list(self._note("risk_flags", ()))

    @property
    def test_status(self) -> dict[str, Any]:
        """Which tests pass."""
        return dict(self._note("test_status", {}))

    @property
    def confidence_level(self) -> float:
        """How sure the agent is of its work."""
        return float(self._note("confidence_level", 0.5))
