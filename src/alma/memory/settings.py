"""Users, and settings: the documented keys, typed and validated, for the whole store or for one user."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from alma.clock import new_id, now
from alma.errors import NotFoundError, ValidationError
from alma.memory.tuning import SEARCH
from alma.memory.updates import Screen, merged, screened, without_secrets
from alma.model.fields import JsonObject, Range
from alma.model.governance import (
    ANONYMOUS,
    Attribution,
    AuditEvent,
    Setting,
    SettingType,
    audit_event,
    default_settings,
)
from alma.model.query import EVERYTHING, At, Compare, Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import User
from alma.storage.base import StorageBackend, Transaction, checked_storage

_EVERYWHERE = Scope.everywhere()
# Who set a value without saying so; a value without an author is the default.
_UNKNOWN_AUTHOR = "unknown"
# The key of a user's preferences that holds the user's settings.
_OWN = "settings"
_DECAY = "memory_decay_enabled"
_THRESHOLD = "semantic_search_threshold"

Source = Literal["default", "model", "global", "user"]
SettingValue = bool | int | float | str

_DOCUMENTED = {setting.key: setting for setting in default_settings()}
_LIMITS = {
    "default_decay_rate": Range(0, 1),
    "max_memories_per_session": Range(1),
    "semantic_search_threshold": Range(0, 1),
}
_TYPES: dict[SettingType, tuple[type, ...]] = {
    SettingType.BOOLEAN: (bool,),
    SettingType.INTEGER: (int,),
    SettingType.FLOAT: (float, int),
    SettingType.STRING: (str,),
}
_NAMES = {
    SettingType.BOOLEAN: "true or false",
    SettingType.INTEGER: "a whole number",
    SettingType.FLOAT: "a number",
    SettingType.STRING: "text",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective value of every setting."""

    memory_decay_enabled: bool
    default_decay_rate: float
    max_memories_per_session: int
    semantic_search_threshold: float
    auto_categorization_enabled: bool

    @classmethod
    def documented(cls) -> Settings:
        """The documented settings; a store's threshold of semantic search is that of its embedding model."""
        return cls(**{field.name: _DOCUMENTED[field.name].typed_value for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting with its effective value, where that comes from, and the default.

    The default of `semantic_search_threshold` is that of the store's embedding model.
    """

    key: str
    value: SettingValue
    source: Source
    default: SettingValue
    value_type: SettingType
    description: str
    is_user_configurable: bool


class SystemSettings:
    """Reads and changes the settings of a store.

    The value of a user has priority over the value of the store, which has priority over the default.
    """

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = checked_storage("settings", storage)

    def read(self, user_id: str | None = None) -> Settings:
        """All settings as typed attributes."""
        return Settings(**{setting.key: setting.value for setting in self.list_all(user_id)})  # type: ignore[arg-type]

    def list_all(self, user_id: str | None = None) -> list[SettingInForce]:
        """Every setting with its value and where that comes from."""
        with self._storage.snapshot() as tx:
            stored = {row.key: row for row in tx.get_many(Setting, list(_DOCUMENTED), _EVERYWHERE)}
            own = _own_values(tx, user_id)
        found = [_in_force(key, stored.get(key), own) for key in _DOCUMENTED]
        return [_for_model(setting, self._storage.embedding_model) for setting in found]

    def get(self, key: str, user_id: str | None = None) -> SettingValue:
        """The value of one setting."""
        return self.in_force(key, user_id).value

    def in_force(self, key: str, user_id: str | None = None) -> SettingInForce:
        """One setting with its value and where that comes from."""
        _known(key)
        return next(setting for setting in self.list_all(user_id) if setting.key == key)

    def threshold(self, user_id: str | None = None) -> float:
        """The least cosine of a search in semantic mode that names none."""
        return float(self.get(_THRESHOLD, user_id))

    def switched(self, key: str, on: bool) -> list[str]:
        """The ids of users who have set this setting on or off."""
        chosen = At("preferences_json", (_OWN, _known(key).key), on)
        return [str(user_id) for (user_id,) in self._storage.values(User, ("id",), _EVERYWHERE, chosen)]

    def set(
        self, key: str, value: SettingValue, user_id: str | None = None, by: Attribution = ANONYMOUS
    ) -> SettingInForce:
        """Set a value for the store, or for one user."""
        checked = _checked(key, value)
        return self._write([key], checked, user_id, by)[0]

    def set_text(self, key: str, text: str, user_id: str | None = None, by: Attribution = ANONYMOUS) -> SettingInForce:
        """Set a value given as text, for example on a command line."""
        setting = _known(key)
        try:
            value = setting.replace(value=text.strip() if isinstance(text, str) else text).typed_value
        except ValidationError:
            raise _wrong_type(setting, text) from None
        return self.set(key, value, user_id, by)

    def reset(
        self, key: str | None = None, user_id: str | None = None, by: Attribution = ANONYMOUS
    ) -> list[SettingInForce]:
        """Reset one setting or, without a key, all: a user's to those of the store, the store's to the defaults."""
        keys = list(_DOCUMENTED) if key is None else [_known(key).key]
        return self._write(keys, None, user_id, by)

    def _write(
        self, keys: Sequence[str], value: SettingValue | None, user_id: str | None, by: Attribution
    ) -> list[SettingInForce]:
        written = self._storage.write(lambda tx: [_put(tx, key, value, user_id) for key in keys], by)
        return [_for_model(setting, self._storage.embedding_model) for setting in written]


class DecaySwitch:
    """Whether a record decays: the setting `memory_decay_enabled` of its user, else that of the store."""

    def __init__(self, storage: StorageBackend) -> None:
        settings = SystemSettings(storage)
        self._is_on = bool(settings.get(_DECAY))
        self._others = frozenset(settings.switched(_DECAY, not self._is_on))

    def __call__(self, record: Record) -> bool:
        return self._is_on is not (getattr(record, "user_id", None) in self._others)


def _put(tx: Transaction, key: str, value: SettingValue | None, user_id: str | None) -> SettingInForce:
    """Store a value, or with None the default, and record the change in the audit log."""
    if user_id is None:
        before, after = _put_for_all(tx, key, value)
    else:
        before, after = _put_for_user(tx, key, value, user_id)
    if before.value != after.value or before.source != after.source:
        tx.save(_change(tx.by, before, after, user_id))
    return after


def _put_for_all(tx: Transaction, key: str, value: SettingValue | None) -> tuple[SettingInForce, SettingInForce]:
    stored = next(iter(tx.lock(Setting, [key], _EVERYWHERE)), None)
    text = _DOCUMENTED[key].value if value is None else value if isinstance(value, str) else json.dumps(value)
    author = None if value is None else tx.by.author or _UNKNOWN_AUTHOR
    changed = _DOCUMENTED[key].replace(value=text, updated_at=now(), updated_by=author)
    before = _in_force_or_damaged(key, stored)
    if stored is None or (stored.value, stored.updated_by is None) != (text, author is None):
        tx.save(changed)
    return before, _in_force(key, changed, {})


def _put_for_user(
    tx: Transaction, key: str, value: SettingValue | None, user_id: str
) -> tuple[SettingInForce, SettingInForce]:
    if not _DOCUMENTED[key].is_user_configurable:
        raise ValidationError("setting", key, user_id, "is set for the whole store; users cannot change it")
    ensured(tx, user_id)
    (user,) = tx.lock(User, [user_id], _EVERYWHERE)
    stored = tx.get(Setting, key, _EVERYWHERE)
    own = dict(user.preferences_json.get(_OWN, {}))
    before = _in_force(key, stored, own)
    own.pop(key, None)
    if value is not None:
        own[key] = value
    after = _in_force(key, stored, own)
    if (before.value, before.source) != (after.value, after.source):
        preferences = {**user.preferences_json, _OWN: own}
        tx.update(User, user_id, {"preferences_json": preferences, "updated_at": now()}, _EVERYWHERE)
    return before, after


def _change(by: Attribution, before: SettingInForce, after: SettingInForce, user_id: str | None) -> AuditEvent:
    """The audit event of a change, with old and new value."""
    details: dict[str, Any] = {"from": before.value, "to": after.value, "for": user_id or "everybody"}
    if by.reason is not None:
        details["reason"] = by.reason
    return audit_event(by, "configure", Setting.spec.kind, [after.key], details_json=details)


def _own_values(tx: Transaction, user_id: str | None) -> dict[str, Any]:
    user = None if user_id is None else tx.get(User, user_id, _EVERYWHERE)
    own = {} if user is None else user.preferences_json.get(_OWN, {})
    return own if isinstance(own, dict) else {}


def _in_force(key: str, stored: Setting | None, own: dict[str, Any]) -> SettingInForce:
    documented = _DOCUMENTED[key]
    default = documented.typed_value
    value: Any = default
    source: Source = "default"
    if stored is not None:
        # The documented type wins over the type in the row.
        value = _checked(key, documented.replace(value=stored.value).typed_value)
        # A row that was never set has the default value and no author.
        source = "default" if value == default and stored.updated_by is None else "global"
    if key in own and documented.is_user_configurable:
        value, source = _checked(key, own[key]), "user"
    return SettingInForce(
        key,
        value,
        source,
        default,
        documented.value_type,
        documented.description or "",
        documented.is_user_configurable,
    )


def _for_model(setting: SettingInForce, model: str) -> SettingInForce:
    """The setting with the default of the embedding model, where the default depends on it."""
    if setting.key != _THRESHOLD:
        return setting
    least = SEARCH.thresholds.get(model, 0.0)
    setting = replace(setting, default=least)
    return replace(setting, value=least, source="model") if setting.source == "default" else setting


def _in_force_or_damaged(key: str, stored: Setting | None) -> SettingInForce:
    """The stored value, or the default if it is invalid, so that it can be replaced."""
    try:
        return _in_force(key, stored, {})
    except ValidationError:
        return _in_force(key, None, {})


def _known(key: str) -> Setting:
    setting = _DOCUMENTED.get(key) if isinstance(key, str) else None
    if setting is None:
        raise ValidationError("setting", None, key, f"is not known; there are {', '.join(_DOCUMENTED)}")
    return setting


def _checked(key: str, value: Any) -> Any:
    """The value in its type and inside its limits."""
    setting = _known(key)
    types = _TYPES[setting.value_type]
    if type(value) not in types:
        raise _wrong_type(setting, value)
    limits = _LIMITS.get(key)
    if limits is not None and not limits.low <= value <= limits.high:
        most = "" if limits.high == float("inf") else f" and at most {limits.high:g}"
        raise ValidationError("setting", key, value, f"must be at least {limits.low:g}{most}")
    return float(value) if setting.value_type is SettingType.FLOAT else value


def _wrong_type(setting: Setting, value: Any) -> ValidationError:
    return ValidationError("setting", setting.key, value, f"must be {_NAMES[setting.value_type]}")


# Users have no narrower scope.
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
