"""Answers: the one shape of an error, which status goes with which error, and how a result is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from alma.errors import (
    ALMAError,
    NotFoundError,
    RefusedError,
    StorageFullError,
    UnsupportedOperation,
    ValidationError,
)
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
"""Every word that an error's `code` can be."""

_CODE_OF_STATUS = {404: "not_found", 405: "method_not_allowed", 412: "precondition_failed", 429: "rate_limit_exceeded"}


class ArgumentError(ValidationError):
    """An argument is not as it is described."""

    @classmethod
    def of(cls, exc: ValidationError) -> ArgumentError:
        """The same error, of an argument."""
        return cls(exc.subject, exc.field, exc.value, exc.reason)


class HttpError(Exception):
    """An answer that is an error of HTTP and not of the memory: too large, not JSON, no key."""

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
    """The answer to a request that ended with this exception; what was not meant for the caller is not told."""
    if isinstance(exc, HttpError):
        return exc
    if not isinstance(exc, ALMAError):
        return HttpError(500, "something went wrong inside; the service's log says what, under the request's id")
    code = code_of(exc)
    status = 501 if isinstance(exc, UnsupportedOperation) else _STATUS_OF_CODE[code]
    if isinstance(exc, StorageFullError):
        status = 507
    if code == "validation_error" and not isinstance(exc, ArgumentError):
        # The arguments are as described; it is what is stored, or what they say together, that does not allow it.
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
    """The error as it is sent."""
    said: JsonObject = {"code": error.code, "message": error.message, "request_id": request_id}
    if error.details is not None:
        said["details"] = error.details
    return json_response({"error": said}, error.status, error.headers)


def json_response(value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; text is sent as it was made."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode(errors="replace"), status, dict(headers or {}), "application/json")
