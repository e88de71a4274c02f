"""What a session knows when it starts, and what is left of those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    def notes(self) -> Notes:
        """What it noted while it ran."""
        return Notes.of(self.session)

    @property
    def last_action(self) -> str | None:
        """What was done last, as far as it was noted."""
        return self.notes.last_action if self.handoff is None else self.handoff.last_action

    @property
    def last_outcome(self) -> SessionOutcome:
        """How that went; a session that neither ended nor left a handoff was interrupted, or is still running."""
        if self.handoff is not None:
            return SessionOutcome.parse(self.handoff.last_outcome)
        return self.notes.last_outcome


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


def open_topic(sessions: Sequence[PreviousSession]) -> Topic:
    """Sessions that were never ended, with where they stood and what they would have handed over."""
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
    """A handoff as topics of a briefing: where it stopped, what is next, what is in the way, the rest."""
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
