"""Errors as the service tells them, as the classes that the library itself raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alma.errors import (
    ALMAError,
    ConfigurationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    RetrievalError,
    StorageError,
    ValidationError,
)

_CLASSES: Mapping[str, type[ALMAError]] = {
    "invalid_request": ConfigurationError,
    "unauthenticated": PermissionDeniedError,
    "permission_denied": PermissionDeniedError,
    "memory_not_found": NotFoundError,
    "session_not_found": NotFoundError,
    "conflict": ConflictError,
    "precondition_failed": ConflictError,
    "validation_error": ValidationError,
    "refused": RefusedError,
    "storage_error": StorageError,
    "search_error": RetrievalError,
    "unavailable": ProviderError,
}


class ServiceError(ALMAError):
    """The service answered with an error that the library itself never raises."""


class ServiceUnreachable(ProviderError):
    """The service could not be reached, or did not answer in time."""


def error_from(status: int, body: Any) -> ALMAError:
    """The error that an answer tells of; notes on it give the request's id, status and further facts."""
    said = body.get("error") if isinstance(body, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("message"), str):
        return ServiceError(f"the service answered with status {status}, and not as ALMA does: is it one?")
    details = said.get("details")
    error = _error(str(said.get("code")), said["message"], details if isinstance(details, dict) else {})
    error.add_note(f"status {status}, code {said.get('code')}, request {said.get('request_id')}")
    if details:
        error.add_note(f"details {details}")
    return error


def _error(code: str, message: str, details: Mapping[str, Any]) -> ALMAError:
    cls = _CLASSES.get(code, ServiceError)
    if cls is ValidationError:
        made: ALMAError = ValidationError("request", details.get("field"), None, str(details.get("reason", message)))
    elif cls is NotFoundError:
        made = NotFoundError(str(details.get("kind", "memory")), str(details.get("id", "")))
    elif cls is RefusedError:
        made = RefusedError(str(details.get("rule", "refused")), message)
    else:
        made = cls(message)
    # In the words of the service, which knew the value.
    made.args = (message,)
    return made
