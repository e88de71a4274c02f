"""Agent sessions: handoffs between them, and the briefing before one starts; each name is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.model.workspace import SessionHandoff as SessionHandoff
    from alma.model.workspace import SessionOutcome as SessionOutcome
    from alma.session.context import PreviousSession as PreviousSession
    from alma.session.context import SessionContext as SessionContext
    from alma.session.initializer import CodebaseOrientation as CodebaseOrientation
    from alma.session.initializer import InitializationResult as InitializationResult
    from alma.session.initializer import RulesOfEngagement as RulesOfEngagement
    from alma.session.initializer import SessionInitializer as SessionInitializer
    from alma.session.manager import SessionManager as SessionManager

_HOME_OF = {
    "CodebaseOrientation": "alma.session.initializer",
    "InitializationResult": "alma.session.initializer",
    "PreviousSession": "alma.session.context",
    "RulesOfEngagement": "alma.session.initializer",
    "SessionContext": "alma.session.context",
    "SessionHandoff": "alma.model.workspace",
    "SessionInitializer": "alma.session.initializer",
    "SessionManager": "alma.session.manager",
    "SessionOutcome": "alma.model.workspace",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
