"""A Qdrant server, or the nodes of a cluster: calls are repeated on another node while one does not answer."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from alma.closeable import Closeable
from alma.errors import ConfigurationError, MissingDependencyError, StorageError, ValidationError
from alma.model.secret import Secret

try:
    import httpx
    from qdrant_client import QdrantClient
    from qdrant_client import models as models
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as exc:
    raise MissingDependencyError("qdrant-client", "qdrant") from exc

Result = TypeVar("Result")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
_LONGEST_ERROR = 300


class QdrantError(StorageError):
    """The server does not answer, or refuses the key."""


class MissingCollectionError(QdrantError):
    """The server has no collection of that name."""


class _Unanswered(Exception):
    """A node did not answer, or answered that it cannot work now."""

    def __init__(self, reason: str, *, is_down: bool) -> None:
        super().__init__(reason)
        self.is_down = is_down


class QdrantServer(Closeable):
    """The nodes of a Qdrant server by their addresses.

    A node that fails is passed over: the next one is asked, in turns and with pauses, until the timeout is over. All
    calls can be repeated. Nothing is connected before the first call. Of several nodes, each is asked before every call
    whether it is ready: one that was started again answers at once, but without what was written while it was down.
    """

    def __init__(
        self, url: str | Sequence[str], api_key: str | Secret | None = None, timeout_seconds: float = 10.0
    ) -> None:
        self.urls = addresses(url)
        self._timeout = timeout_seconds
        self._clients = [_client(each, api_key, timeout_seconds) for each in self.urls]
        self._probe = httpx.Client(timeout=timeout_seconds) if len(self.urls) > 1 else None
        # The node that answered last is asked first.
        self._first = 0

    def call(self, ask: Callable[[QdrantClient], Result]) -> Result:
        """The answer of a node.

        Raises `MissingCollectionError`, `ValidationError` for what the server refuses, and `QdrantError` if no node
        answers.
        """
        deadline, pause = time.monotonic() + self._timeout, _FIRST_PAUSE_SECONDS
        while True:
            problems: list[_Unanswered] = []
            for number in self._order():
                try:
                    self._require_ready(number)
                    result = _request(self._clients[number], ask)
                except _Unanswered as exc:
                    problems.append(exc)
                else:
                    self._first = number
                    return result
            if all(each.is_down for each in problems) or time.monotonic() + pause > deadline:
                where = ", ".join(self.urls)
                raise QdrantError(
                    f"the Qdrant server at {where} cannot be reached ({problems[0]}); start it, or correct qdrant.url"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def ping(self) -> None:
        """Raise `QdrantError` unless a node answers."""
        self.call(lambda client: client.get_aliases())

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self._probe is not None:
            self._probe.close()

    def _require_ready(self, number: int) -> None:
        """Raise `_Unanswered` while a node of a cluster has not caught up with the others."""
        if self._probe is None:
            return
        try:
            answer = self._probe.get(f"{self.urls[number]}/readyz")
        except httpx.HTTPError as exc:
            raise _Unanswered(str(exc) or type(exc).__name__, is_down=True) from exc
        # A proxy may not have this address; only a node says that it is not ready.
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            raise _Unanswered("it is still catching up with the other nodes", is_down=False)

    def _order(self) -> list[int]:
        first, count = self._first, len(self._clients)
        return [(first + step) % count for step in range(count)]


def addresses(url: str | Sequence[str]) -> tuple[str, ...]:
    """The addresses of the nodes: one text, with commas between several, or a list."""
    given = url.split(",") if isinstance(url, str) else url
    found = tuple(dict.fromkeys(text for each in given if (text := str(each).strip().rstrip("/"))))
    if not found or not all(each.startswith(("http://", "https://")) for each in found):
        raise ConfigurationError(f"qdrant.url must be like http://host:6333 or a list of these, not {url!r}")
    return found


def _client(url: str, api_key: str | Secret | None, timeout_seconds: float) -> QdrantClient:
    key = None if api_key is None else Secret(api_key).reveal()
    with warnings.catch_warnings():
        # A key without TLS is the user's decision, as on a private network.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        try:
            return QdrantClient(url, api_key=key, timeout=timeout_seconds, check_compatibility=False)  # type: ignore[arg-type]
        except ValueError as exc:
            raise ConfigurationError(f"qdrant.url must be like http://host:6333, not {url!r}: {exc}") from exc


def _request(client: QdrantClient, ask: Callable[[QdrantClient], Result]) -> Result:
    try:
        return ask(client)
    except ResponseHandlingException as exc:
        raise _Unanswered(str(exc.source) or type(exc.source).__name__, is_down=True) from exc
    except ResourceExhaustedResponse as exc:
        raise _Unanswered(exc.message, is_down=False) from exc
    except UnexpectedResponse as exc:
        raise _error(exc) from exc


def _error(exc: UnexpectedResponse) -> Exception:
    status, reason = exc.status_code or 0, _reason(exc)
    if status == 404:
        return MissingCollectionError(f"the Qdrant server answered: {reason}")
    if status in (401, 403):
        return QdrantError("the Qdrant server refuses the key; correct qdrant.api_key")
    if 400 <= status < 500 and status != 429:
        return ValidationError("qdrant", None, reason, "refused the request")
    return _Unanswered(reason, is_down=False)


def _reason(exc: UnexpectedResponse) -> str:
    """The server's own sentence."""
    try:
        said = json.loads(exc.content)["status"]["error"]
    except (ValueError, LookupError, TypeError):
        said = exc.content.decode(errors="replace") or exc.reason_phrase
    return str(said)[:_LONGEST_ERROR]
