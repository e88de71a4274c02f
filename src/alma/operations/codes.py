"""Codes: the one word by which programs tell errors apart, the same at every face."""

from __future__ import annotations

from alma.errors import (
    ALMAError,
    ConfigurationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    RetrievalError,
    ScopeViolationError,
    StorageError,
    ValidationError,
)

# The Orchestrator's codes, and conflict, refused and unavailable besides; the first that fits counts.
_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (PermissionDeniedError, "permission_denied"),
    (ScopeViolationError, "permission_denied"),
    (ConflictError, "conflict"),
    (ValidationError, "validation_error"),
    (RefusedError, "refused"),
    (RetrievalError, "search_error"),
    (ProviderError, "unavailable"),
    (StorageError, "storage_error"),
    (ConfigurationError, "invalid_request"),
    (ALMAError, "invalid_request"),
)


def code_of(error: BaseException) -> str:
    """The word for an error; what nobody raised on purpose is an internal error."""
    if isinstance(error, NotFoundError):
        return "session_not_found" if error.kind == "session" else "memory_not_found"
    return next((code for kind, code in _CODES if isinstance(error, kind)), "internal_error")
