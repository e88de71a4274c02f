"""Shared by the OpenAI and Anthropic clients: error handling, and one deadline for the whole response."""

from __future__ import annotations

import re
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

from alma.errors import ConfigurationError
from alma.llm.base import Completion, LanguageModel, Request
from alma.model.secret import Secret
from alma.redaction.redactor import redact_text
from alma.retry import RETRIED_STATUSES, Failure, retry_after_seconds

_LONGEST_QUOTE = 300
_BAD_REQUEST = 400


class SdkModel(LanguageModel):
    """A model behind an official SDK client; retries are ours, so that all services behave alike."""

    def __init__(
        self, service: str, model: str, key: Secret, fixes: Mapping[int, str], errors: ModuleType, **patience: Any
    ) -> None:
        super().__init__(**patience)
        if not model.strip():
            raise ConfigurationError(f"{service} needs the name of a model (model=…)")
        self._service = service
        self._model_name = model
        self._key = key
        self._fixes = fixes
        self._errors = errors
        self._takes_temperature = True

    @property
    def model(self) -> str:
        return self._model_name

    @abstractmethod
    def _ask(self, request: Request) -> Any:
        """The response of the client; the caller translates its errors."""

    @abstractmethod
    def _read(self, answer: Any) -> Completion:
        """The completion in a response; any error is a malformed response."""

    def _attempt(self, request: Request) -> Completion | Failure:
        result = self._complete_once(request if self._takes_temperature else replace(request, temperature=None))
        if isinstance(result, Failure) and self._refuses_temperature(result, request):
            # Reasoning models do not accept a temperature.
            self._takes_temperature = False
            return self._complete_once(replace(request, temperature=None))
        return result

    def _complete_once(self, request: Request) -> Completion | Failure:
        errors = self._errors
        try:
            answer = self._ask(request)
        except errors.APIStatusError as exc:
            return self._refusal(exc)
        except errors.APITimeoutError as exc:
            return Failure(
                f"{self._service} did not answer within {request.timeout_seconds:g} seconds", True, cause=exc
            )
        except errors.APIConnectionError as exc:
            reason = str(exc.__cause__ or exc)
            return Failure(f"{self._service} cannot be reached: {self._key.hidden_in(reason)}", True, cause=exc)
        except (errors.APIError, ValueError, RecursionError) as exc:
            return self._no_completion(exc)
        try:
            return self._read(answer)
        except (ValueError, TypeError, AttributeError, LookupError) as exc:
            return self._no_completion(exc)

    def _no_completion(self, exc: Exception) -> Failure:
        return Failure(f"the response of {self._service} is not a completion", True, cause=exc)

    def _refuses_temperature(self, failure: Failure, request: Request) -> bool:
        status = getattr(failure.cause, "status_code", None)
        return request.temperature is not None and status == _BAD_REQUEST and "temperature" in failure.message

    def _refusal(self, exc: Any) -> Failure:
        status: int = exc.status_code
        fix = self._fixes.get(status)
        # Some services quote a part of a wrong key.
        said = "" if status == 401 else self._key.hidden_in(_quoted(exc))
        sentence = f"{self._service} answered {status}{f': {said}' if said else ''}{f'; {fix}' if fix else ''}"
        transient = status in RETRIED_STATUSES and "insufficient_quota" not in said
        return Failure(sentence, transient, retry_after_seconds(exc.response.headers.get("retry-after")), exc)


def _quoted(exc: Any) -> str:
    """The service's error message, shortened to one line."""
    body = exc.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        parts = (str(inner[name]) for name in ("code", "type", "message") if inner.get(name))
        words = " ".join(parts)
    else:
        words = str(inner or exc.message)
    return redact_text(re.sub(r"\s+", " ", words).strip()[:_LONGEST_QUOTE]).text


# Trace events of a new connection; the second one for TLS.
_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


def deadline_hooks(client: type) -> dict[str, list[Callable[[Any], None]]]:
    """Event hooks for this HTTP client class that apply the read timeout to the whole response.

    Clients restart the read timeout with every piece of data, so the connection checks a deadline on every read. The
    SDKs use different releases of httpx.
    """
    names = (base.__module__.partition(".")[0] for base in client.__mro__ if base.__name__ == "Client")
    httpx: Any = import_module(next(names))
    # A connection is reused for several requests, each in the thread that sends it.
    asking = threading.local()

    def begin(request: Any) -> None:
        seconds = request.extensions.get("timeout", {}).get("read")
        asking.deadline = None if seconds is None else time.monotonic() + seconds
        request.extensions["trace"] = watch

    def watch(event: str, told: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            hold(told["return_value"])

    def hold(connection: Any) -> None:
        read = connection.read

        def read_in_time(most_bytes: int, timeout: float | None = None) -> bytes:
            deadline: float | None = getattr(asking, "deadline", None)
            left = timeout if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise httpx.ReadTimeout("timed out")
            piece: bytes = read(most_bytes, left)
            return piece

        connection.read = read_in_time

    return {"request": [begin]}
