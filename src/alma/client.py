"""A typed client of the REST service: the same operations, from another process or machine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from alma.aio import awaited
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
from alma.operations.base import Output
from alma.operations.learning import KnowledgeKept, LearnedFrom, PreferenceKept, Recommended
from alma.operations.maintenance import Stats
from alma.operations.memories import Context, Hits, MemoryKept, MemoryPage
from alma.operations.retrieving import Retrieved
from alma.operations.sessions import SessionOpen
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


Made = TypeVar("Made", bound=Output)


class Client(Closeable):
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

    # ------------------------------------------------------------------ before and after a task

    def retrieve(
        self, task: str, agent: str, user_id: str | None = None, top_k: int | None = None, **further: Any
    ) -> Retrieved:
        """Retrieve the memories worth knowing for this task; `prompt` is the text for a language model."""
        given = {"task": task, "agent": agent, "user_id": user_id, "top_k": top_k, **further}
        return self._call("retrieve", Retrieved, given)

    def learn(self, agent: str, task: str, outcome: str | bool, strategy_used: str, **further: Any) -> LearnedFrom:
        """Record the outcome of a task."""
        given = {"agent": agent, "task": task, "outcome": outcome, "strategy_used": strategy_used, **further}
        return self._call("learn", LearnedFrom, given)

    def recommend(self, task: str, agent: str, among: Sequence[str] | None = None, **further: Any) -> Recommended:
        """Recommend a strategy for a task, with the evidence."""
        given = {"task": task, "agent": agent, "among": among, **further}
        return self._call("recommend", Recommended, given)

    def add_preference(self, user_id: str, category: str, preference: str, **further: Any) -> PreferenceKept:
        """Store how a user wants things done."""
        given = {"user_id": user_id, "category": category, "preference": preference, **further}
        return self._call("add_preference", PreferenceKept, given)

    def add_knowledge(self, agent: str, domain: str, fact: str, **further: Any) -> KnowledgeKept:
        """Store a fact, if the agent may learn in this domain."""
        return self._call("add_knowledge", KnowledgeKept, {"agent": agent, "domain": domain, "fact": fact, **further})

    def stats(self, agent: str | None = None, project_id: str | None = None) -> Stats:
        """Count the memories of each kind."""
        return self._call("stats", Stats, {"agent": agent, "project_id": project_id})

    # ------------------------------------------------------------------ general memories

    def remember(self, content: str | Mapping[str, Any], **further: Any) -> MemoryKept:
        """Create a memory: a note, a decision, a solution or a part of a conversation."""
        return self._call("create_memory", MemoryKept, {"content": content, **further})

    def get(self, memory_id: str, **further: Any) -> MemoryKept:
        """Read a memory by its id; its version can be passed to `update`."""
        return self._call("get_memory", MemoryKept, {"memory_id": memory_id, **further})

    def update(self, memory_id: str, *, expected_version: int | None = None, **changes: Any) -> MemoryKept:
        """Change a memory; with `expected_version`, a ConflictError if it has changed since."""
        given = {"memory_id": memory_id, "expected_version": expected_version, **changes}
        return self._call("update_memory", MemoryKept, given)

    def delete(self, memory_id: str, **further: Any) -> bool:
        """Delete a memory, softly unless `hard=True`; returns whether there was one."""
        return bool(self.call("delete_memory", memory_id=memory_id, **further)["deleted"])

    def list(self, *, limit: int | None = None, cursor: str | None = None, **further: Any) -> MemoryPage:
        """A page of memories; pass `next_cursor` for the next page."""
        return self._call("list_memories", MemoryPage, {"limit": limit, "cursor": cursor, **further})

    def search(self, query: str, *, limit: int | None = None, mode: str | None = None, **further: Any) -> Hits:
        """Search memories by meaning and by words."""
        return self._call("search_memories", Hits, {"query": query, "limit": limit, "mode": mode, **further})

    def context(self, activity: str = "", **further: Any) -> Context:
        """Collect the memories that matter for an activity, files and a branch."""
        return self._call("get_context", Context, {"activity": activity, **further})

    # ------------------------------------------------------------------ sessions and changes

    def create_session(self, name: str = "", **further: Any) -> SessionOpen:
        """Create a session, to which memories and agent states can belong."""
        return self._call("create_session", SessionOpen, {"name": name, **further})

    def end_session(self, session_id: str, summary: str | None = None, archive: bool | None = None) -> SessionOpen:
        """End a session and store its summary."""
        given = {"session_id": session_id, "summary": summary, "archive": archive}
        return self._call("end_session", SessionOpen, given)

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

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.client = Client(*arguments, **options)

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
