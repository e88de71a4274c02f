"""The session manager: sessions and handoffs across processes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from alma.bootstrap.stores import StoreUser
from alma.clock import new_id, now
from alma.memory.handoffs import NOTES, Handoffs, Notes, summary_of
from alma.memory.sessions import Sessions, created, end_session, locked, open_session
from alma.memory.updates import Screen, merged, screened, without_secrets
from alma.model.briefing import Line, Topic, briefing
from alma.model.common import checked_name, spellings
from alma.model.drafts import drafted, put
from alma.model.fields import JsonObject
from alma.model.governance import Attribution
from alma.model.query import And, Compare, In, Order
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionHandoff, SessionOutcome
from alma.session.context import PreviousSession, SessionContext, handoff_topics, open_topic

if TYPE_CHECKING:
    from alma.progress.tracker import ProgressTracker
    from alma.storage.base import StorageBackend, Transaction


_log = logging.getLogger("alma.session")
Enricher = Callable[[SessionContext], SessionContext]
QUICK_RELOAD_TOKENS = 400
_OPEN_SHOWN = 5


class SessionManager(StoreUser):
    """The sessions of a project's agents, in the given store or in the project's default store.

    Agent names are compared without case unless `any_case` is False. With a `user_id`, only sessions and handoffs of
    that user are visible.
    """

    def __init__(
        self,
        project_id: str,
        storage: StorageBackend | None = None,
        progress_tracker: ProgressTracker | None = None,
        max_handoffs: int = 50,
        *,
        screen: Screen = without_secrets,
        any_case: bool = True,
        user_id: str | None = None,
    ) -> None:
        self.project_id = checked_name("session", "project_id", project_id)
        super().__init__(storage, screen)
        self._any_case = any_case
        self._user_id = user_id
        self.progress_tracker = progress_tracker
        self.max_handoffs = max_handoffs
        self._enrichers: list[Enricher] = []
        self._sessions = Sessions(self._storage, screen=self._screen)
        self._handoffs = Handoffs(self._storage)

    # ------------------------------------------------------------------ a session

    def start_session(
        self,
        agent: str,
        goal: str | None = None,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        name: str = "",
        session_type: str = "task",
        parent_session_id: str | None = None,
        working_directory: str | None = None,
        git_branch: str | None = None,
        git_commit: str | None = None,
        metadata: JsonObject | None = None,
    ) -> SessionContext:
        """Start a session of an agent, with the handoff of the last one."""
        session = Session(
            id=session_id or new_id(),
            project_id=self.project_id,
            agent=checked_name("session", "agent", agent),
            goal=goal,
            user_id=user_id or self._user_id,
            name=name,
            session_type=session_type,
            parent_session_id=parent_session_id,
            working_directory=working_directory,
            git_branch=git_branch,
            git_commit=git_commit,
            metadata=metadata or {},
        )
        by = Attribution(user_id=session.user_id, agent=agent, session_id=session.id)
        started = self._storage.write(lambda tx: created(tx, self._screen(session)), by)
        with self._storage.snapshot():
            others = self._open(agent, but=started.id)
            context = SessionContext(started, self.get_latest_handoff(agent), tuple(others))
        return self._enriched(context)

    def register_enricher(self, enricher: Enricher) -> None:
        """Add a function that completes the context of each session that starts; its errors are logged."""
        self._enrichers.append(enricher)

    def _enriched(self, context: SessionContext) -> SessionContext:
        if self.progress_tracker is not None:
            context.progress = self.progress_tracker.get_progress_summary(context.agent)
        for enricher in self._enrichers:
            try:
                context = enricher(context)
            except Exception as exc:  # noqa: BLE001 - the session starts without what this one adds
                _log.warning("an enricher of session contexts failed", extra={"error": str(exc)})
        return context

    def get_active_handoff(self, agent: str, session_id: str) -> SessionHandoff | None:
        """The handoff that the open session would make now.

        While it has noted none itself, it has the goal and the blockers of the last session.
        """
        session = self._sessions.get(session_id, self._scope_of(agent))
        if session is None or not session.is_active:
            return None
        notes, previous = Notes.of(session), self.get_latest_handoff(agent)
        active: SessionHandoff = drafted(notes.handoff(session, now()))
        goal = None if previous is None else previous.current_goal
        put(
            active,
            last_action=notes.last_action or "session_start",
            current_goal=active.current_goal or goal or "Unknown",
        )
        if previous is not None and not active.blockers:
            put(active, blockers=previous.blockers)
        active.session_end = None  # type: ignore[misc]
        return active

    def get_all_agents(self) -> list[str]:
        """The agents that left a handoff in this project."""
        scope = Scope(project_id=self.project_id, user_id=self._user_id)
        return list(dict.fromkeys(handoff.agent for handoff in self._handoffs.find(scope)))

    def get_agent_stats(self, agent: str) -> dict[str, Any]:
        """How many sessions an agent ended, how many with success, how long they took, and what was in the way."""
        handoffs = self._handoffs.find(self._scope_of(agent))
        took = [handoff.duration_ms for handoff in handoffs if handoff.duration_ms]
        well = sum(1 for handoff in handoffs if handoff.last_outcome == SessionOutcome.SUCCESS)
        met = Counter(blocker for handoff in handoffs for blocker in handoff.blockers)
        return {
            "agent": agent,
            "total_sessions": len(handoffs),
            "success_rate": well / len(handoffs) if handoffs else 0.0,
            "avg_duration_ms": sum(took) / len(took) if took else 0,
            "common_blockers": [blocker for blocker, _ in met.most_common(5)],
        }

    def clear_history(self, agent: str | None = None) -> int:
        """Delete the handoffs of an agent, or of all agents of the project; returns how many there were."""
        scope = Scope(project_id=self.project_id) if agent is None else self._scope_of(agent)
        ids = [handoff.id for handoff in self._handoffs.find(scope)]
        self._storage.write(lambda tx: tx.delete(SessionHandoff, ids, scope), Attribution(agent=agent))
        return len(ids)

    def update_session(
        self,
        agent: str,
        session_id: str,
        action: str | None = None,
        outcome: SessionOutcome | str | bool | None = None,
        *,
        goal: str | None = None,
        decision: str | None = None,
        blocker: str | None = None,
        resolved_blocker: str | None = None,
        next_step: str | None = None,
        active_file: str | None = None,
        risk_flag: str | None = None,
        test_status: JsonObject | None = None,
        confidence: float | None = None,
        test_result: JsonObject | None = None,
        risk: str | None = None,
    ) -> Session | None:
        """Note progress, decisions and blockers for the handoff; the notes survive an interrupted session.

        The confidence is kept between 0 and 1; an unknown session gives None. `test_result` and `risk` are earlier
        names of `test_status` and `risk_flag`.
        """
        if self._sessions.get(session_id, self._scope_of(agent)) is None:
            _log.warning("there is no such session of the agent", extra={"agent": agent, "session_id": session_id})
            return None
        confidence = min(1.0, max(0.0, confidence)) if isinstance(confidence, float | int) else confidence
        test_status = test_result if test_status is None else test_status
        risk_flag = risk if risk_flag is None else risk_flag

        def update(tx: Transaction) -> Session:
            session = open_session(tx, session_id, self._scope_of(agent))
            notes = Notes.of(session)
            noted = notes.changed(
                {
                    "last_action": action,
                    "last_outcome": outcome if outcome is not None or action is None else SessionOutcome.UNKNOWN,
                    "current_goal": goal,
                    "key_decisions": _with(notes.key_decisions, decision),
                    "blockers": _with([each for each in notes.blockers if each != resolved_blocker], blocker),
                    "next_steps": _with(notes.next_steps, next_step),
                    "active_files": _with(notes.active_files, active_file),
                    "risk_flags": _with(notes.risk_flags, risk_flag),
                    "test_status": None if test_status is None else merged(notes.test_status, test_status),
                    "confidence_level": confidence,
                }
            )
            return self._with_notes(tx, session, noted, agent)

        return self._storage.write(update, Attribution(agent=agent, session_id=session_id))

    def _with_notes(self, tx: Transaction, session: Session, notes: Notes, agent: str) -> Session:
        # Validate now what the handoff would refuse at the end.
        notes.handoff(session, now())
        moment = now()
        changes = {
            "context_json": {**session.context_json, NOTES: notes.to_json()},
            "last_active_at": moment,
            "updated_at": moment,
        }
        updated = tx.update(Session, session.id, screened(session, changes, self._screen), self._scope_of(agent))
        assert updated is not None, "it is locked"
        return updated

    def create_handoff(
        self,
        agent: str,
        session_id: str,
        last_action: str | None = None,
        last_outcome: SessionOutcome | str | bool | None = None,
        next_steps: Sequence[str] | None = None,
        blockers: Sequence[str] | None = None,
        *,
        key_decisions: Sequence[str] | None = None,
        active_files: Sequence[str] | None = None,
        risk_flags: Sequence[str] | None = None,
        current_goal: str | None = None,
        confidence_level: float | None = None,
        test_status: JsonObject | None = None,
        metadata: JsonObject | None = None,
        goal: str | None = None,
        **context: Any,
    ) -> SessionHandoff:
        """End a session with a handoff; values that are not given come from the notes of the session.

        A second handoff of a session replaces the first and keeps values that are not given again. A session with a
        new id is made. `goal` is the earlier name of `current_goal`; values with other names become metadata.
        """
        current_goal = goal if current_goal is None else current_goal
        metadata = {**(metadata or {}), **context}
        given = {
            "last_action": last_action,
            "last_outcome": last_outcome,
            "next_steps": next_steps,
            "blockers": blockers,
            "key_decisions": key_decisions,
            "active_files": active_files,
            "risk_flags": risk_flags,
            "current_goal": current_goal,
            "confidence_level": confidence_level,
            "test_status": test_status,
        }

        def create(tx: Transaction) -> SessionHandoff:
            moment, scope = now(), self._scope_of(agent)
            if tx.get(Session, session_id, Scope.everywhere()) is None:
                new = Session(id=session_id, project_id=self.project_id, agent=agent, user_id=self._user_id)
                created(tx, self._screen(new))
            session = locked(tx, session_id, scope)
            notes = Notes.of(session).changed(given)
            handoff = self._screen(notes.handoff(session, moment, metadata))
            tx.save(handoff)
            summary = None if session.summary else summary_of(handoff)
            end_session(tx, session, moment, summary, screen=self._screen, notes=notes)
            return handoff

        made = self._storage.write(create, Attribution(agent=agent, session_id=session_id))
        return drafted(made)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ previous sessions

    def get_latest_handoff(
        self, agent: str, session_id: str | None = None, as_of: datetime | None = None
    ) -> SessionHandoff | None:
        """The handoff of the agent's last session, or None; only of this session, and not later than `as_of`."""
        of_session = [] if session_id is None else [Compare("session_id", "eq", session_id)]
        until = [] if as_of is None else [Compare("created_at", "le", as_of)]
        found = self._handoffs.latest(self._scope_of(agent), And(*of_session, *until))
        return drafted(found)  # type: ignore[no-any-return]

    def get_session(self, session_id: str) -> Session | None:
        """The session with this id in the project, or None."""
        return self._sessions.get(session_id, Scope(project_id=self.project_id, user_id=self._user_id))

    def get_previous_sessions(self, agent: str, limit: int = 10) -> list[PreviousSession]:
        """The agent's ended sessions, latest first and at most `max_handoffs`, with their handoffs."""
        with self._storage.snapshot() as tx:
            ended = Compare("is_active", "eq", False)
            found = tx.find(
                Session, self._scope_of(agent), ended, (Order("ended_at", "desc"),), min(limit, self.max_handoffs)
            )
            return self._with_handoffs(found)

    def get_quick_reload(self, agent: str, max_tokens: int = QUICK_RELOAD_TOKENS) -> str:
        """Where the agent's last session stopped, as text for a language model, within the token budget.

        Open sessions with notes, such as interrupted ones, are listed after it.
        """
        with self._storage.snapshot():
            handoff = self.get_latest_handoff(agent)
            begun = [session for session in self._open(agent) if session.notes != Notes()]
        if handoff is None and not begun:
            return briefing(
                [Topic("Where The Last Session Stopped", (Line(f"No previous session found for agent {agent}"),))],
                max_tokens,
            )
        by = Topic("Session Handoff", (Line("Agent", agent),))
        stopped = [] if handoff is None else [by, *handoff_topics(handoff)]
        return briefing([*stopped, open_topic(begun)], max_tokens)

    def _open(self, agent: str, but: str | None = None) -> list[PreviousSession]:
        """The agent's open sessions, except the one with this id."""
        found = self._sessions.find(self._scope_of(agent), active=True, limit=_OPEN_SHOWN + 1)
        return self._with_handoffs([session for session in found if session.id != but][:_OPEN_SHOWN])

    def _with_handoffs(self, sessions: Sequence[Session]) -> list[PreviousSession]:
        of_these = In("session_id", [session.id for session in sessions])
        scope = Scope(project_id=self.project_id)
        # Oldest first, so that the newest handoff of each session wins.
        found = self._storage.find(SessionHandoff, scope, of_these, (Order("created_at"),))
        latest = {handoff.session_id: handoff for handoff in found}
        return [PreviousSession(session, latest.get(session.id)) for session in sessions]

    def _scope_of(self, agent: str) -> Scope:
        named = checked_name("session", "agent", agent)
        agents = spellings(named) if self._any_case else named
        return Scope(project_id=self.project_id, agent=agents, user_id=self._user_id)


def _with(texts: Sequence[str], added: str | None) -> list[str]:
    return [*texts, *([] if added is None else [added])]
