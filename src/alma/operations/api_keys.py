"""API keys: created once, shown once, stored as a hash, and verified to a grant."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from alma import clock
from alma.errors import ALMAError, NotFoundError, ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_name
from alma.model.governance import ANONYMOUS, ApiKey, Attribution, AuditEvent
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.operations.access import Grant, Right
from alma.storage.base import StorageBackend, Transaction, checked_storage

__all__ = ["ApiKeys"]

_log = logging.getLogger("alma.access")

_EVERYWHERE = Scope.everywhere()
_TOKEN = lazy_regex(r"(alma_[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_SECRET_BYTES = 32
# How long a revoked key stays valid in other processes.
_TRUSTED_SECONDS = 0.5
_MOST_TRUSTED = 1_000
_USE_NOTED_EVERY = timedelta(minutes=1)


class ApiKeys:
    """The API keys of a store; thread-safe. Changes of other processes are seen within half a second."""

    def __init__(self, storage: StorageBackend, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._storage = checked_storage("keys", storage)
        self._monotonic = monotonic
        self._trusted: dict[str, tuple[float, ApiKey]] = {}
        self._lock = threading.Lock()
        self._existence: tuple[float, bool] | None = None

    def create(
        self,
        name: str,
        rights: Iterable[Right | str],
        user_id: str | None = None,
        project_id: str | None = None,
        agent: str | None = None,
        expires_at: datetime | None = None,
        by: Attribution = ANONYMOUS,
    ) -> tuple[ApiKey, str]:
        """Create a key; returns it with its token, which cannot be read again."""
        prefix = f"alma_{secrets.token_hex(6)}"
        token = f"{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        key = ApiKey(
            name=checked_name("api_key", "name", name),
            prefix=prefix,
            hash=_hashed(token),
            rights=_checked_rights(rights),
            user_id=user_id,
            project_id=project_id,
            agent=agent,
            expires_at=expires_at,
        )
        if key.expires_at is not None and key.expires_at <= clock.now():
            raise ValidationError("api_key", "expires_at", expires_at, "must lie in the future")

        def store(tx: Transaction) -> None:
            tx.save(key, _event("create", key, tx.by))

        self._storage.write(store, by)
        self._existence = None
        return key, token

    def list_all(self) -> list[ApiKey]:
        """All keys, newest first, including revoked and expired ones."""
        return self._storage.find(ApiKey, _EVERYWHERE, order=(Order("id", "desc"),))

    def revoke(self, key_id: str, by: Attribution = ANONYMOUS) -> ApiKey:
        """Revoke a key by its id or prefix; revoking twice has no effect."""

        def end(tx: Transaction) -> ApiKey:
            field = "prefix" if key_id.startswith("alma_") else "id"
            named = tx.find(ApiKey, _EVERYWHERE, Compare(field, "eq", key_id), limit=1)
            held = tx.lock(ApiKey, [key.id for key in named], _EVERYWHERE)
            if not held:
                raise NotFoundError("api_key", key_id)
            if held[0].revoked_at is not None:
                return held[0]
            ended = held[0].replace(revoked_at=clock.now())
            tx.save(ended, _event("revoke", ended, tx.by))
            return ended

        checked_name("api_key", "id", key_id)
        ended = self._storage.write(end, by)
        with self._lock:
            self._trusted.clear()
        return ended

    def any_exist(self) -> bool:
        """Whether the store has ever had a key; from then on, a service requires one."""
        known = self.existence_just_seen()
        if known is None:
            until = self._monotonic() + _TRUSTED_SECONDS
            known = bool(self._storage.find(ApiKey, _EVERYWHERE, limit=1))
            self._existence = (until, known)
        return known

    def existence_just_seen(self) -> bool | None:
        """The cached result of `any_exist`, or None."""
        until, known = self._existence or (0.0, False)
        return known if until > self._monotonic() else None

    def verify(self, token: str) -> Grant | None:
        """The grant of a token; None if it is unknown, revoked or expired."""
        named = _TOKEN.fullmatch(token)
        if named is None:
            return None
        hashed = _hashed(token)
        return _grant(self._just_seen(hashed) or self._read(named.group(1), hashed))

    def verified_just_now(self, token: str) -> Grant | None:
        """The cached result of `verify`, or None."""
        return _grant(self._just_seen(_hashed(token))) if _TOKEN.fullmatch(token) else None

    def _just_seen(self, hashed: str) -> ApiKey | None:
        with self._lock:
            until, key = self._trusted.get(hashed, (0.0, None))
        return key if until > self._monotonic() else None

    def _read(self, prefix: str, hashed: str) -> ApiKey | None:
        begun = self._monotonic()
        found = self._storage.find(ApiKey, _EVERYWHERE, Compare("prefix", "eq", prefix), limit=1)
        if not found or not hmac.compare_digest(found[0].hash, hashed):
            return None
        with self._lock:
            if len(self._trusted) >= _MOST_TRUSTED:
                self._trusted.clear()
            self._trusted[hashed] = (begun + _TRUSTED_SECONDS, found[0])
        self._note_use(found[0])
        return found[0]

    def _note_use(self, key: ApiKey) -> None:
        moment = clock.now()
        if key.revoked_at is not None or (key.last_used_at or key.created_at) > moment - _USE_NOTED_EVERY:
            return
        try:
            self._storage.update(ApiKey, key.id, {"last_used_at": moment}, _EVERYWHERE)
        except ALMAError as exc:
            _log.warning("last_used_at of a key could not be updated", extra={"key_id": key.id, "error": str(exc)})


def _hashed(token: str) -> str:
    # The secret has 256 random bits, so a slow hash would add no security.
    return hashlib.sha256(token.encode()).hexdigest()


def _checked_rights(rights: Iterable[Right | str]) -> tuple[str, ...]:
    known = ", ".join(Right)
    if isinstance(rights, str):
        raise ValidationError("api_key", "rights", rights, f"must be a list of {known}")
    given = set(map(str, rights))
    if not given or not given <= set(Right):
        raise ValidationError("api_key", "rights", sorted(given), f"must name at least one of {known}, and no other")
    return tuple(str(right) for right in Right if right in given)


def _grant(key: ApiKey | None) -> Grant | None:
    if key is None or key.revoked_at is not None:
        return None
    if key.expires_at is not None and key.expires_at <= clock.now():
        return None
    return Grant(frozenset(map(Right, key.rights)), key.user_id, key.project_id, key.agent, key.id)


def _event(action: str, key: ApiKey, by: Attribution) -> AuditEvent:
    return AuditEvent(
        user_id=by.user_id,
        agent_id=by.agent,
        action=action,
        resource_type=ApiKey.spec.kind,
        resource_id=key.id,
        details_json={"name": key.name, "rights": list(key.rights)},
        ip_address=by.ip_address,
        user_agent=by.user_agent,
    )
