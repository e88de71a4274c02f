"""ETags: the version of a memory as an HTTP entity tag; If-None-Match and If-Match."""

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


def etag_of(version: int) -> str:
    """The ETag of a memory at this version."""
    return f'"v{version}"'


def matches_etag(if_none_match: str, version: int) -> bool:
    """Whether an If-None-Match header names this version."""
    if if_none_match.strip() == "*":
        return True
    return any(name == f"v{version}" for _, name in _TAG.findall(if_none_match))


def expected_versions(if_match: str) -> tuple[int, ...] | None:
    """The versions in an If-Match header, None for any version; weak tags never match."""
    if if_match.strip() == "*":
        return None
    strong = (name for weak, name in _TAG.findall(if_match) if not weak)
    return tuple(int(found[1]) for name in strong if (found := _VERSION.fullmatch(name)))[:_MOST_TAGS]


def if_match(if_match: str, arguments: JsonObject, perform: Callable[[Mapping[str, object]], T]) -> T:
    """Perform the operation if the memory is at a version that If-Match names, or raise 412."""
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
