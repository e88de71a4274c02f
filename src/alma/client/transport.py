"""HTTP transport of the client: connection pool, retries, idempotency keys and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from alma.clock import new_id
from alma.errors import (
    ALMAError,
    ConfigurationError,
    ConflictError,
    MissingDependencyError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    RetrievalError,
    StorageError,
    ValidationError,
)
from alma.model.fields import JsonObject
from alma.retry import Failure, retry, retry_after_seconds

try:
    import httpx
except ImportError as exc:
    raise MissingDependencyError("httpx", "server") from exc

_PASSING = frozenset({429, 502, 503, 504})


class Transport:
    """A connection pool to one service; thread-safe."""

    def __init__(
        self, address: str, key: str | None, timeout_seconds: float, attempts: int, backoff_seconds: float
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout_seconds)
        self._address = address
        self._attempts = attempts
        self._backoff_seconds = backoff_seconds

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        once: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Send a request and return the response text; `once` adds an idempotency key."""
        said = dict(headers or {})
        if once:
            said.setdefault("Idempotency-Key", new_id())

        def attempt() -> str | Failure:
            try:
                answer = self._http.request(method, path, json=body, headers=said)
            except httpx.TransportError as exc:
                return Failure(self._unreachable(exc), transient=True, cause=exc)
            return _read(answer)

        try:
            return retry(attempt, self._attempts, self._backoff_seconds, ServiceUnreachable)
        except ServiceUnreachable as exc:
            if isinstance(exc.__cause__, ALMAError):
                # The service responded with the same error every time.
                raise exc.__cause__ from None
            raise

    def lines(self, path: str, headers: Mapping[str, str], params: Mapping[str, str]) -> Iterator[str]:
        """The lines of a streaming response, until it ends."""
        # The service sends heartbeats, so silence means a lost connection.
        patience = httpx.Timeout(10.0, read=60.0)
        try:
            with self._http.stream("GET", path, headers=dict(headers), params=dict(params), timeout=patience) as answer:
                if answer.status_code != httpx.codes.OK:
                    answer.read()
                    raise error_from(answer.status_code, _parsed(answer))
                yield from answer.iter_lines()
        except httpx.TransportError as exc:
            raise ServiceUnreachable(self._unreachable(exc)) from exc

    def _unreachable(self, exc: Exception) -> str:
        return f"the service at {self._address} did not answer: {str(exc) or type(exc).__name__}"


def _read(answer: httpx.Response) -> str | Failure:
    if answer.is_success:
        return answer.text
    error = error_from(answer.status_code, _parsed(answer))
    wait = retry_after_seconds(answer.headers.get("retry-after"))
    if answer.status_code in _PASSING or wait is not None:
        return Failure(str(error), transient=True, retry_after=wait, cause=error)
    raise error


def _parsed(answer: httpx.Response) -> JsonObject | None:
    try:
        found: JsonObject = json.loads(answer.content)
    except ValueError:
        return None
    return found


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
    """The service returned an error that the library never raises."""


class ServiceUnreachable(ProviderError):
    """The service could not be reached, or timed out."""


def error_from(status: int, body: Any) -> ALMAError:
    """The library error for an error response; its notes have the request id, the status and details."""
    said = body.get("error") if isinstance(body, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("message"), str):
        return ServiceError(f"status {status} without an ALMA error: is this the address of an ALMA service?")
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
    # The message of the service, which knew the value.
    made.args = (message,)
    return made
