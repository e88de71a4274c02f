"""HTTP responses: the JSON of errors, the status of each error code, JSON results, and ETags of memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.responses import Response

from alma.errors import (
    ALMAError,
    ConflictError,
    NotFoundError,
    RefusedError,
    StorageFullError,
    UnsupportedOperation,
    ValidationError,
)
from alma.lazy import lazy_regex
from alma.model.fields import JsonObject
from alma.operations.base import code_of

_STATUS_OF_CODE: Mapping[str, int] = {
    "invalid_request": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "memory_not_found": 404,
    "session_not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "precondition_failed": 412,
    "validation_error": 422,
    "refused": 409,
    "rate_limit_exceeded": 429,
    "internal_error": 500,
    "storage_error": 503,
    "search_error": 503,
    "unavailable": 503,
}
CODES = tuple(_STATUS_OF_CODE)
"""All values of an error's `code`."""

_CODE_OF_STATUS = {404: "not_found", 405: "method_not_allowed", 412: "precondition_failed", 429: "rate_limit_exceeded"}


class ArgumentError(ValidationError):
    """An argument does not match the operation's schema."""

    @classmethod
    def of(cls, exc: ValidationError) -> ArgumentError:
        """The same error, about an argument."""
        return cls(exc.subject, exc.field, exc.value, exc.reason)


class HttpError(Exception):
    """An error of HTTP rather than of the operation: body too large, not JSON, no key."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        details: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or _CODE_OF_STATUS.get(status, "invalid_request" if status < 500 else "internal_error")
        self.details = details
        self.headers = dict(headers or {})


def error_of(exc: BaseException) -> HttpError:
    """The HTTP error for an exception; the text of unexpected exceptions is not shown to the caller."""
    if isinstance(exc, HttpError):
        return exc
    if not isinstance(exc, ALMAError):
        return HttpError(500, "internal error: the service's log has the details under the request id")
    code = code_of(exc)
    status = 501 if isinstance(exc, UnsupportedOperation) else _STATUS_OF_CODE[code]
    if isinstance(exc, StorageFullError):
        status = 507
    if code == "validation_error" and not isinstance(exc, ArgumentError):
        # The arguments match the schema; the stored data, or their combination, does not allow them.
        status = 409
    return HttpError(status, str(exc), code, _details_of(exc))


def _details_of(exc: ALMAError) -> JsonObject | None:
    match exc:
        case ValidationError():
            return {"field": exc.field, "reason": exc.reason} if exc.field else {"reason": exc.reason}
        case NotFoundError():
            return {"kind": exc.kind, "id": str(exc.record_id)}
        case RefusedError():
            return {"rule": exc.code}
    return None


def error_response(error: HttpError, request_id: str) -> Response:
    """An error as a JSON response."""
    said: JsonObject = {"code": error.code, "message": error.message, "request_id": request_id}
    if error.details is not None:
        said["details"] = error.details
    return json_response({"error": said}, error.status, error.headers)


def json_response(value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response; text is sent as it is."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode(errors="replace"), status, dict(headers or {}), "application/json")


T = TypeVar("T")

_TAG = lazy_regex(r'(W/)?"([^"]*)"')
_VERSION = lazy_regex(r"v([1-9]\d{0,8})")
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
