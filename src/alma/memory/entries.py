"""Entries: what a caller says of a memory, checked and turned into the fields of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from alma import clock
from alma.errors import ScopeViolationError, ValidationError
from alma.memory.filters import checked_layer
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory

MOST_BYTES = 1 << 20
Content = str | Mapping[str, Any]

# What the store keeps count of, or what would make it another memory.
_FIXED = ("id", "created_at", "updated_at", "access_count", "last_accessed_at", "embedding")


def new_memory(content: Content, fields: Mapping[str, Any], by: Attribution) -> Memory:
    """The memory that a caller describes; whose it is comes from the attribution where it is not said."""
    values = {**plain_fields({**fields, "content": content})}
    for name, known in (("user_id", by.user_id), ("session_id", by.session_id), ("source_agent", by.agent)):
        if values.get(name) is None and known is not None:
            values[name] = known
    memory = Memory(**values)
    _check_owner(memory)
    return memory


def changed_memory(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    """The memory with these changes, as of now."""
    changed = memory.replace(**changes, updated_at=clock.now())
    _check_owner(changed)
    if changed.text() != memory.text() and "embedding" not in changes:
        # The vector of what it no longer says must not be found.
        changed = changed.replace(embedding=None)
    return changed


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes as fields of a memory, none of them one that the journal looks after itself."""
    if not isinstance(changes, Mapping) or not changes:
        raise ValidationError("memory", None, changes, "needs the fields to change, as a dict")
    for name in _FIXED:
        if name in changes:
            raise ValidationError("memory", name, changes[name], "cannot be changed")
    values = plain_fields(changes)
    for name, value in values.items():
        Memory.spec.field(name)
        Memory.spec.checked(name, value)
    return values


def plain_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory, where layers may be named, a time to live given, and content be JSON with a text."""
    values = dict(given)
    if "content" in values:
        values.update(_content(values["content"], values.get("content_json")))
    if "layers" in values:
        values.update(_layer_flags(values.pop("layers")))
    if "ttl_seconds" in values:
        values["expires_at"] = _expiry(values.pop("ttl_seconds"), values.get("expires_at"))
    if values.get("content_json") is not None:
        _check_size("content_json", _as_json(values["content_json"]))
    return values


def _content(content: Content, content_json: Any) -> dict[str, Any]:
    if isinstance(content, Mapping):
        if content_json is not None:
            raise ValidationError("memory", "content", content, "must be text where content_json is given as well")
        text = content.get("text")
        found = text if isinstance(text, str) and text.strip() else _as_json(content)
        _check_size("content", found)
        return {"content": found, "content_json": dict(content)}
    if isinstance(content, str):
        _check_size("content", content)
    return {"content": content}


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as exc:
        raise ValidationError("memory", "content", value, f"must be text or JSON: {exc}") from None


def _check_size(name: str, text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise ValidationError("memory", name, text, f"must have at most {MOST_BYTES:,} bytes (1 MB), has {size:,}")


def _layer_flags(layers: Iterable[Layer | str] | None) -> dict[str, bool]:
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise ValidationError("memory", "layers", layers, f"must be a list out of {', '.join(Layer)}")
    chosen = {checked_layer(layer) for layer in layers}
    return {f"layer_{layer}": layer in chosen for layer in Layer}


def _expiry(ttl_seconds: Any, expires_at: datetime | None) -> datetime | None:
    if ttl_seconds is None:
        return expires_at
    if expires_at is not None:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "cannot be given together with expires_at")
    if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, int | float) or not ttl_seconds > 0:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "must be a number above 0")
    try:
        return clock.now() + timedelta(seconds=ttl_seconds)
    except OverflowError:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "is further than time goes; leave it out") from None


def _check_owner(memory: Memory) -> None:
    if memory.user_id is None and memory.project_id is None and memory.session_id is None:
        raise ScopeViolationError("memory", None, None, "must belong to a user, a project or a session; name one")
    if memory.is_private and memory.user_id is None:
        raise ValidationError("memory", "is_private", True, "needs a user_id: only that user will see it")
