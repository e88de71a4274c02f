"""Operations on API keys: list, create and revoke them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from alma.clock import now
from alma.errors import PermissionDeniedError
from alma.model.governance import ApiKey
from alma.operations.access import Caller, Right
from alma.operations.api_keys import ApiKeys
from alma.operations.base import Input, Name, Operation, Output, operation


class ListKeys(Input):
    pass


class KeyShown(Output):
    id: str
    name: str
    prefix: str
    rights: Sequence[str]
    user_id: str | None = None
    project_id: str | None = None
    agent: str | None = None
    status: str = Field(description="valid, expired or revoked")
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class KeyList(Output):
    keys: Sequence[KeyShown]


@operation("keys", Right.ADMIN, idempotent=True, example={})
def list_keys(caller: Caller, request: ListKeys) -> KeyList:
    """List the API keys of the store, newest first, without their tokens."""
    caller.require_unlimited("the list of keys")
    return KeyList(keys=[_shown(key) for key in ApiKeys(caller.store.storage).list_all()])


def _shown(key: ApiKey) -> KeyShown:
    over = key.expires_at is not None and key.expires_at <= now()
    status = "revoked" if key.revoked_at is not None else "expired" if over else "valid"
    names = KeyShown.model_fields.keys() - {"status"}
    return KeyShown(status=status, **{name: getattr(key, name) for name in names})


class CreateKey(Input):
    name: Name = Field(description="The purpose of the key.")
    rights: Annotated[Sequence[Right], Field(min_length=1, max_length=4)] = Field(
        description="read, write, delete, admin; no right includes another."
    )
    user_id: Name | None = Field(None, description="Limit the key to this user.")
    project_id: Name | None = Field(None, description="Limit the key to this project.")
    agent: Name | None = Field(None, description="Limit the key to this agent.")
    days: float | None = Field(None, gt=0, le=36_500, description="Days until the key expires; default: never.")


class KeyCreated(Output):
    key: KeyShown
    token: str = Field(description="The token; it cannot be read again.")


@operation("keys", Right.ADMIN, example={"name": "reader", "rights": ["read"], "project_id": "shop"})
def create_key(caller: Caller, request: CreateKey) -> KeyCreated:
    """Create an API key; its token is shown once, and stored as a hash."""
    caller.require_unlimited("making a key")
    wanted = set(request.rights)
    if not wanted <= caller.grant.rights:
        more = ", ".join(sorted(wanted - caller.grant.rights))
        raise PermissionDeniedError(f"a key cannot give more rights than it has: this one lacks {more}")
    expires = None if request.days is None else now() + timedelta(days=request.days)
    key, token = ApiKeys(caller.store.storage).create(
        request.name,
        request.rights,
        user_id=request.user_id,
        project_id=request.project_id,
        agent=request.agent,
        expires_at=expires,
        by=caller.by(),
    )
    return KeyCreated(key=_shown(key), token=token)


class RevokeKey(Input):
    key_id: Name = Field(description="The id of the key, or its prefix: alma_….")


class KeyRevoked(Output):
    key: KeyShown


@operation(
    "keys",
    Right.ADMIN,
    destructive=True,
    idempotent=True,
    example={"key_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"},
)
def revoke_key(caller: Caller, request: RevokeKey) -> KeyRevoked:
    """Revoke an API key; revoking twice has no effect."""
    caller.require_unlimited("revoking a key")
    return KeyRevoked(key=_shown(ApiKeys(caller.store.storage).revoke(request.key_id, caller.by())))


KEYS: tuple[Operation[Any, Any], ...] = (list_keys, create_key, revoke_key)
