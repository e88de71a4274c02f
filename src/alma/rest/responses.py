"""HTTP responses: the JSON of errors, the status of each error code, and JSON results."""

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
