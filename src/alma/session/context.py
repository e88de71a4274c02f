"""What a session knows when it starts, and what is left of those before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from alma.memory.handoffs import Notes
from alma.model.briefing import Line, Topic, briefing
from alma.model.workspace import Session, SessionHandoff, SessionOutcome

DEFAULT_PROMPT_TOKENS = 800


@dataclass(frozen=True, slots=True)
class _OfSession:
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
class PreviousSession(_OfSession):
    """A session of the past and, if it left one, its handoff."""

    handoff: SessionHandoff | None

    @property
    def started_at(self) -> datetime:
        return self.session.created_at

    @property
    def ended_at(self) -> datetime | None:
        return self.session.ended_at

    @property
    def last_action(self) -> str | None:
        """What was done last, as far as it was noted."""
        return Notes.of(self.session).last_action if self.handoff is None else self.handoff.last_action

    @property
    def last_outcome(self) -> SessionOutcome:
        """How that went; a session that neither ended nor left a handoff was interrupted, or is still running."""
        if self.handoff is not None:
            return SessionOutcome.parse(self.handoff.last_outcome)
        return Notes.of(self.session).last_outcome


@dataclass(frozen=True, slots=True)
class SessionContext(_OfSession):
    """What a session starts with."""

    previous_handoff: SessionHandoff | None = None
    open_sessions: tuple[PreviousSession, ...] = ()
    """Other sessions of the agent that have not ended: they still run elsewhere, or were cut off."""

    @property
    def project_id(self) -> str | None:
        return self.session.project_id

    @property
    def session_start(self) -> datetime:
        return self.session.created_at

    def to_prompt(self, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> str:
        """The context as text for a language model, never longer than the budget."""
        goal = Topic.of("Goal", "", [self.goal or ""])
        handoff = () if self.previous_handoff is None else handoff_topics(self.previous_handoff)
        return briefing([goal, *handoff, open_topic(self.open_sessions)], max_tokens)


def open_topic(sessions: tuple[PreviousSession, ...]) -> Topic:
    """Sessions that were never ended, with where they stood."""
    lines = (
        Line(f"since {each.started_at:%Y-%m-%d %H:%M}", each.last_action or each.goal or "nothing noted")
        for each in sessions
    )
    return Topic("Sessions Not Ended", tuple(lines))


def handoff_topics(handoff: SessionHandoff) -> list[Topic]:
    """A handoff as topics of a briefing: where it stopped, what is next, what is in the way, the rest."""
    day = f"{handoff.created_at:%Y-%m-%d}"
    stopped = [Line(f"Last action ({handoff.last_outcome or 'unknown'}, {day})", handoff.last_action)]
    if handoff.current_goal:
        stopped.append(Line("Goal then", handoff.current_goal))
    details = [
        *(Line("Decided", text) for text in handoff.key_decisions),
        *(Line("Risk", text) for text in handoff.risk_flags),
        *(Line("File", text) for text in handoff.active_files),
        *(Line("Tests", f"{name}: {value}") for name, value in handoff.test_status.items()),
    ]
    return [
        Topic("Where The Last Session Stopped", tuple(stopped)),
        Topic.of("Next Steps", "", handoff.next_steps),
        Topic.of("Blockers", "", handoff.blockers),
        Topic("Also Known", tuple(details)),
    ]
