"""Tags: the version of a memory as an HTTP entity tag, and what a caller says about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from alma.errors import ConflictError
from alma.model.fields import JsonObject
from alma.rest.responses import HttpError

T = TypeVar("T")

_TAG = re.compile(r'(W/)?"([^"]*)"')
_VERSION = re.compile(r"v([1-9]\d{0,8})")
_MOST_TAGS = 16


def tag_of(version: int) -> str:
    """The entity tag of a memory at this version."""
    return f'"v{version}"'


def is_unchanged(if_none_match: str, version: int) -> bool:
    """Whether the caller has this version already."""
    if if_none_match.strip() == "*":
        return True
    return any(name == f"v{version}" for _, name in _TAG.findall(if_none_match))


def expected_versions(if_match: str) -> tuple[int, ...] | None:
    """The versions that the caller insists on, None for any; a weak tag never matches."""
    if if_match.strip() == "*":
        return None
    strong = (name for weak, name in _TAG.findall(if_match) if not weak)
    return tuple(int(found[1]) for name in strong if (found := _VERSION.fullmatch(name)))[:_MOST_TAGS]


def if_unchanged(if_match: str, arguments: JsonObject, perform: Callable[[Mapping[str, object]], T]) -> T:
    """Do it if the memory is at a version that the caller insists on."""
    versions = expected_versions(if_match)
    if versions is None:
        return perform(arguments)
    also = arguments.get("expected_version")
    for version in versions if also is None else [version for version in versions if version == also]:
        try:
            return perform({**arguments, "expected_version": version})
        except ConflictError:
            continue
    raise HttpError(412, "the memory was changed since it was read: read it again", "precondition_failed")
