"""A typed client of the REST service: the same operations, from another process or machine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from alma.aio import awaited
from alma.client_calls import Calls, Made
from alma.clock import new_id
from alma.closeable import Closeable
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
from alma.events.emitter import MemoryEvent
from alma.model.fields import JsonObject
from alma.operations import operation_named
from alma.retry import Failure, retry, retry_after_seconds

try:
    import httpx
except ImportError as exc:
    raise MissingDependencyError("httpx", "client") from exc

__all__ = ["AsyncClient", "Client", "ServiceError", "ServiceUnreachable"]

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
    # The message of the service contains the value.
    made.args = (message,)
    return made


class Client(Calls, Closeable):
    """A client of the REST service.

    Network errors and a busy service are retried with backoff; an idempotency key makes sure that a write is
    executed once. Errors are those of the library: NotFoundError, ValidationError, ConflictError … Thread-safe.
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        attempts: int = 4,
        backoff_seconds: float = 0.2,
    ) -> None:
        self._attempts, self._backoff_seconds = attempts, backoff_seconds
        self._transport = Transport(address.rstrip("/"), key, timeout_seconds, attempts, backoff_seconds)

    def close(self) -> None:
        """Close the connections; closing twice has no effect."""
        self._transport.close()

    # ------------------------------------------------------------------ any operation

    def call(self, name: str, **arguments: Any) -> JsonObject:
        """Call any operation by its name; arguments that are None are omitted."""
        found: JsonObject = json.loads(self._answer(name, arguments))
        return found

    def _call(self, name: str, output: type[Made], arguments: Mapping[str, Any]) -> Made:
        return output.model_validate_json(self._answer(name, arguments))

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> str:
        said = {key: value for key, value in arguments.items() if value is not None}
        once = not operation_named(name).read_only
        return self._transport.send("POST", f"/v1/operations/{quote(name)}", said, once=once)

    # ------------------------------------------------------------------ changes

    def events(self, project_id: str | None = None, since: str | None = None) -> Iterator[MemoryEvent]:
        """A stream of changes from now on, or since the event with this id; reconnects after a broken connection."""
        params = {} if project_id is None else {"project_id": project_id}
        failures = 0
        while True:
            try:
                for event_id, data in self._blocks(params, since):
                    since, failures = event_id or since, 0
                    if data:
                        yield _event(json.loads(data), event_id)
            except ServiceUnreachable:
                failures += 1
                if failures > self._attempts:
                    raise
            time.sleep(self._backoff_seconds * 2**failures)

    def _blocks(self, params: Mapping[str, str], since: str | None) -> Iterator[tuple[str, str]]:
        headers = {} if since is None else {"Last-Event-ID": since}
        event_id, data = "", ""
        for line in self._transport.lines("/v1/events", headers, params):
            name, _, value = line.partition(": ")
            if name == "id":
                event_id = value
            elif name == "data":
                data += value
            elif not line:
                yield event_id, data
                data = ""


def _event(said: JsonObject, event_id: str) -> MemoryEvent:
    """The event, with the id to resume from."""
    return MemoryEvent(**{**said, "timestamp": datetime.fromisoformat(said["timestamp"]), "id": event_id})


class AsyncClient:
    """The asynchronous client: `await client.retrieve(…)`; takes the arguments of `Client`."""

    def __init__(
        self,
        address: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        attempts: int = 4,
        backoff_seconds: float = 0.2,
    ) -> None:
        self.client = Client(
            address, key, timeout_seconds=timeout_seconds, attempts=attempts, backoff_seconds=backoff_seconds
        )

    def __getattr__(self, name: str) -> Any:
        return awaited(getattr(self.client, name))

    async def events(self, project_id: str | None = None, since: str | None = None) -> AsyncIterator[MemoryEvent]:
        """A stream of changes from now on, or since the event with this id."""
        events = self.client.events(project_id, since)
        while True:
            event = await asyncio.to_thread(next, events, None)
            if event is None:
                return
            yield event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.client.close)
