"""The context a session starts with: previous sessions, open sessions and the last handoff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from alma.memory.handoffs import Notes
from alma.model.briefing import Line, Topic, briefing
from alma.model.workspace import Session, SessionHandoff, SessionOutcome

DEFAULT_PROMPT_TOKENS = 800


@dataclass(frozen=True, slots=True)
class _SessionView:
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


@dataclass(frozen=True, slots=True)
class SessionContext(_SessionView):
    """What a session starts with."""

    previous_handoff: SessionHandoff | None = None
    open_sessions: tuple[PreviousSession, ...] = ()
    """Open sessions of the agent, which are still running elsewhere or were interrupted."""

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


def open_topic(sessions: Sequence[PreviousSession]) -> Topic:
    """Open sessions with their state and what they would hand over."""
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
