"""Visibility: which general memories a reader may see at all, besides the scope."""

from __future__ import annotations

from datetime import datetime

from alma.model.query import EVERYTHING, And, Compare, Missing, Or, Predicate
from alma.model.scope import Scope, checked_scope


def alive(now: datetime) -> Predicate:
    """Neither deleted, archived nor expired."""
    return And(
        Compare("is_active", "eq", True),
        Compare("is_archived", "eq", False),
        Or(Missing("expires_at"), Compare("expires_at", "gt", now)),
    )


def public(user_id: str | None) -> Predicate:
    """What is private is seen by the user it belongs to, and by nobody else."""
    everybodys = Compare("is_private", "eq", False)
    return everybodys if user_id is None else Or(everybodys, Compare("user_id", "eq", user_id))


def open_to(scope: Scope, user_id: str | None = None) -> Predicate:
    """What a user, or else the one that a scope names, may see; without either the whole store sees all."""
    if user_id is None and checked_scope("memory", scope).unlimited:
        return EVERYTHING
    return public(scope.user_id if user_id is None else user_id)


def visible(scope: Scope, now: datetime, user_id: str | None = None) -> Predicate:
    """What this scope shows of general memories now, to whoever asks."""
    return And(alive(now), open_to(scope, user_id))
