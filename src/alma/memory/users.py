"""Users: profiles, preferences and activity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from alma.clock import new_id, now
from alma.errors import NotFoundError, ValidationError
from alma.memory.updates import Screen, merged, screened, without_secrets
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.query import EVERYTHING, Compare, Order
from alma.model.scope import Scope
from alma.model.workspace import User
from alma.storage.base import StorageBackend, Transaction, checked_storage

# Users have no narrower scope.
_EVERYWHERE = Scope.everywhere()
ChangesOf = Callable[[User], Mapping[str, Any]]
_CHANGEABLE = ("username", "email", "display_name", "is_active")


class Users:
    """The users of a store."""

    def __init__(self, storage: StorageBackend, screen: Screen = without_secrets) -> None:
        self._storage = checked_storage("users", storage)
        self._screen = screen

    def create(
        self,
        username: str,
        *,
        user_id: str | None = None,
        email: str | None = None,
        display_name: str | None = None,
        profile: JsonObject | None = None,
        preferences: JsonObject | None = None,
        by: Attribution = ANONYMOUS,
    ) -> User:
        """Create a user; a username or email address that is taken is refused."""
        user = User(
            id=user_id or new_id(),
            username=username,
            email=email,
            display_name=display_name,
            profile_json=profile or {},
            preferences_json=preferences or {},
        )
        return self._storage.write(lambda tx: _created(tx, self._screen(user)), by)

    def ensure(self, user_id: str, by: Attribution = ANONYMOUS) -> User:
        """The user with this id, created with the id as name if there is none."""
        return self._storage.write(lambda tx: ensured(tx, user_id), by)

    def get(self, user_id: str) -> User | None:
        """The user with this id, or None."""
        return self._storage.get(User, user_id, _EVERYWHERE)

    def require(self, user_id: str) -> User:
        """The user with this id, or NotFoundError."""
        return self._storage.require(User, user_id, _EVERYWHERE)

    def named(self, username: str) -> User | None:
        """The user with this name, or None."""
        return next(iter(self._storage.find(User, _EVERYWHERE, Compare("username", "eq", username), limit=1)), None)

    def list_all(self, active_only: bool = True, limit: int | None = None) -> list[User]:
        """The users, most recently active first."""
        where = Compare("is_active", "eq", True) if active_only else EVERYTHING
        return self._storage.find(User, _EVERYWHERE, where, (Order("last_active_at", "desc"),), limit)

    def update(self, user_id: str, by: Attribution = ANONYMOUS, **changes: Any) -> User:
        """Change the username, email, display_name or is_active of a user."""
        for name in changes:
            if name not in _CHANGEABLE:
                raise ValidationError(
                    "user", None, name, f"cannot be changed here; these can: {', '.join(_CHANGEABLE)}"
                )
        return self._changed(user_id, lambda _: changes, by)

    def merge_preferences(self, user_id: str, changes: Mapping[str, Any], by: Attribution = ANONYMOUS) -> User:
        """Change some preferences; None removes one."""
        return self._changed(user_id, lambda user: {"preferences_json": merged(user.preferences_json, changes)}, by)

    def merge_profile(self, user_id: str, changes: Mapping[str, Any], by: Attribution = ANONYMOUS) -> User:
        """Change parts of the profile; None removes a key."""
        return self._changed(user_id, lambda user: {"profile_json": merged(user.profile_json, changes)}, by)

    def touch(self, user_id: str, by: Attribution = ANONYMOUS) -> User:
        """Record that the user is active now."""
        return self._changed(user_id, lambda user: {"last_active_at": max(now(), user.last_active_at)}, by)

    def _changed(self, user_id: str, changes_of: ChangesOf, by: Attribution) -> User:
        return self._storage.write(lambda tx: _update(tx, user_id, changes_of, self._screen), by)


def ensured(tx: Transaction, user_id: str) -> User:
    """The user with this id, created if there is none, inside a transaction."""
    known = tx.get(User, user_id, _EVERYWHERE)
    if known is not None:
        return known
    user = User(id=user_id, username=user_id)
    tx.insert(user)
    return user


def _created(tx: Transaction, user: User) -> User:
    if tx.get(User, user.id, _EVERYWHERE) is not None:
        raise ValidationError("user", "id", user.id, "is taken by another user")
    tx.insert(user)
    return user


def _update(tx: Transaction, user_id: str, changes_of: ChangesOf, screen: Screen) -> User:
    found = tx.lock(User, [user_id], _EVERYWHERE)
    if not found:
        raise NotFoundError("user", user_id)
    changes = screened(found[0], {"updated_at": now(), **changes_of(found[0])}, screen)
    changed = tx.update(User, user_id, changes, _EVERYWHERE)
    assert changed is not None, "it is locked"
    return changed
