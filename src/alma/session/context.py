"""The initial context of a session: the previous sessions, completed by enrichers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from alma.arguments import earlier
from alma.clock import new_id, now
from alma.memory.handoffs import Notes
from alma.model.briefing import Line, Topic, briefing
from alma.model.drafts import section
from alma.model.workspace import Session, SessionHandoff, SessionOutcome

if TYPE_CHECKING:
    from alma.progress.tracker import ProgressSummary


DEFAULT_PROMPT_TOKENS = 800


class _SessionView:
    __slots__ = ()
    session: Session

    @property
    def session_id(self) -> str:
        return self.session.id

    @property
    def agent(self) -> str | None:
        return self.session.agent

    @property
    def goal(self) -> str | None:
        return self.session.goal


@dataclass(frozen=True, slots=True)
class PreviousSession(_SessionView):
    """A past session and its handoff, if there is one."""

    session: Session
    handoff: SessionHandoff | None

    @property
    def started_at(self) -> datetime:
        return self.session.created_at

    @property
    def ended_at(self) -> datetime | None:
        return self.session.ended_at

    @property
    def notes(self) -> Notes:
        """The notes the session took."""
        return Notes.of(self.session)

    @property
    def last_action(self) -> str | None:
        """The last action that was noted."""
        return self.notes.last_action if self.handoff is None else self.handoff.last_action

    @property
    def last_outcome(self) -> SessionOutcome:
        """The outcome of the last action; a session without end and handoff was interrupted or is still running."""
        if self.handoff is not None:
            return SessionOutcome.parse(self.handoff.last_outcome)
        return self.notes.last_outcome

    def __getattr__(self, name: str) -> Any:
        """What the handoff says."""
        if name.startswith("_") or self.handoff is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.handoff, name)


def _of_session(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a context, with a session made from its project, agent and id where none is given."""
    names = {"project_id": "project_id", "agent": "agent", "session_id": "id"}
    told = {there: given.pop(name) for name, there in names.items() if name in given}
    return given if not told else {"session": Session(**told), **given}


@earlier(_of_session)
@dataclass(slots=True)
class SessionContext(_SessionView):
    """What a session starts with; the fields after `open_sessions` are filled in by enrichers."""

    session: Session
    previous_handoff: SessionHandoff | None = None
    open_sessions: tuple[PreviousSession, ...] = ()
    """Open sessions of the agent, which are still running elsewhere or were interrupted."""
    progress: ProgressSummary | None = None
    recent_outcomes: list[Any] = field(default_factory=list)
    relevant_heuristics: list[Any] = field(default_factory=list)
    codebase_state: dict[str, Any] | None = None
    environment_state: dict[str, Any] | None = None
    suggested_focus: Any = None
    rules_of_engagement: list[str] = field(default_factory=list)
    created_at: datetime = field(default_factory=now)

    @classmethod
    def create(cls, project_id: str, agent: str, session_id: str | None = None, **fields: Any) -> SessionContext:
        """The context of a session that is not stored."""
        return cls(session=Session(id=session_id or new_id(), project_id=project_id, agent=agent), **fields)

    @property
    def project_id(self) -> str | None:
        return self.session.project_id

    @property
    def session_start(self) -> datetime:
        return self.session.created_at

    def to_prompt(self, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> str:
        """The context as text for a language model, within the token budget."""
        goal = Topic.of("Goal", "", [self.goal or ""])
        handoff = () if self.previous_handoff is None else handoff_topics(self.previous_handoff)
        return briefing([goal, *handoff, open_topic(self.open_sessions)], max_tokens)

    def format_orientation(self) -> str:
        """The context as a text with headings, whatever its length."""
        lines = ["# Session Orientation", f"Project: {self.project_id}", f"Agent: {self.agent}"]
        lines.append(f"Session: {self.session_id}")
        previous = self.previous_handoff
        if previous is not None:
            lines += ["", "## Previous Session", f"Outcome: {previous.last_outcome or 'unknown'}"]
            lines += [f"Last Action: {previous.last_action}", f"Goal: {previous.current_goal or previous.goal or ''}"]
            lines += section("Next Steps from Last Session", previous.next_steps[:3])
            lines += section("Outstanding Blockers", previous.blockers, "##")
        told = getattr(self.progress, "format_summary", self.progress.__str__)
        lines += [] if self.progress is None else ["", "## Progress", told()]
        task = getattr(self.suggested_focus, "title", None)
        focus = f"Task: {task}" if isinstance(task, str) else self.suggested_focus
        lines += section("Suggested Focus", [focus] if focus else [], "##")
        state = {"uncommitted": "Uncommitted Changes"}
        shown = [f"{state.get(key, key.title())}: {value}" for key, value in (self.codebase_state or {}).items()]
        lines += section("Codebase State", shown, "##")
        return "\n".join([*lines, *section("Rules of Engagement", self.rules_of_engagement, "##")])


def open_topic(sessions: Sequence[PreviousSession]) -> Topic:
    """Open sessions with their state and the handoff they would make."""
    return Topic("Sessions Not Ended", tuple(line for each in sessions for line in _lines_of(each)))


def _lines_of(session: PreviousSession) -> Iterator[Line]:
    notes, since = session.notes, f"since {session.started_at:%Y-%m-%d %H:%M}"
    label = f"{since}, last action ({notes.last_outcome})" if session.last_action else since
    yield Line(label, session.last_action or session.goal or "nothing noted")
    yield from (Line("Next step", text) for text in notes.next_steps)
    yield from (Line("Blocker", text) for text in notes.blockers)
    yield from _details(notes)


def _details(left: Notes | SessionHandoff) -> Iterator[Line]:
    yield from (Line("Decided", text) for text in left.key_decisions)
    yield from (Line("Risk", text) for text in left.risk_flags)
    yield from (Line("File", text) for text in left.active_files)
    yield from (Line("Tests", f"{name}: {value}") for name, value in left.test_status.items())


def handoff_topics(handoff: SessionHandoff) -> list[Topic]:
    """A handoff as topics of a briefing: last action, next steps, blockers, details."""
    day = f"{handoff.created_at:%Y-%m-%d}"
    stopped = [Line(f"Last action ({handoff.last_outcome or 'unknown'}, {day})", handoff.last_action)]
    if handoff.current_goal:
        stopped.append(Line("Goal then", handoff.current_goal))
    return [
        Topic("Where The Last Session Stopped", tuple(stopped)),
        Topic.of("Next Steps", "", handoff.next_steps),
        Topic.of("Blockers", "", handoff.blockers),
        Topic("Also Known", tuple(_details(handoff))),
    ]
