"""Merging: a JSON object with some of its keys changed, as deep as the changes go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alma.errors import ValidationError
from alma.model.fields import JsonObject


def merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """What results from the changes: objects are merged key by key, None removes a key, the rest is replaced."""
    if not isinstance(changes, Mapping):
        raise ValidationError("changes", None, changes, "must be a JSON object")
    result = dict(old)
    for key, value in changes.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[key] = value
    return result
