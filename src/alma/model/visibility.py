"""Visibility: which general memories a reader may see at all, besides the scope."""

from __future__ import annotations

from datetime import datetime

from alma.model.query import EVERYTHING, And, Compare, Missing, Or, Predicate
from alma.model.scope import Scope


def alive(now: datetime) -> Predicate:
    """Neither deleted, archived nor expired."""
    return And(
        Compare("is_active", "eq", True),
        Compare("is_archived", "eq", False),
        Or(Missing("expires_at"), Compare("expires_at", "gt", now)),
    )


def open_to(scope: Scope) -> Predicate:
    """What is private is seen by its user alone, so by a scope that names one; the whole store sees all."""
    if scope.user_id is not None or scope.unlimited:
        return EVERYTHING
    return Compare("is_private", "eq", False)


def visible(scope: Scope, now: datetime) -> Predicate:
    """What this scope shows of general memories now."""
    return And(alive(now), open_to(scope))
