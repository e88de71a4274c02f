"""HTTP transport for embedding services: JSON requests with timeouts, retries, and errors that name the fix."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from alma.errors import ConfigurationError, EmbeddingError, shown
from alma.model.secret import Secret
from alma.retry import RETRIED_STATUSES, Failure, attempt_timeout, retry, retry_after_seconds

_LONGEST_QUOTE = 300


@dataclass(frozen=True)
class Service:
    """The URL of a service, its authentication, and the meaning of its error statuses.

    `fixes` has the advice for each error status.
    """

    name: str
    url: str
    key_header: str
    key_prefix: str
    key: Secret
    fixes: Mapping[int, str]
    timeout_seconds: float = 30.0
    attempts: int = 5
    backoff_seconds: float = 0.5

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise ConfigurationError(
                f"the address of {self.name} cannot be read: {self.url!r}; write it as https://host/path"
            )
        if not _is_sent_as_it_is(self.key.reveal()):
            raise ConfigurationError(
                f"the API key of {self.name} has a line break or invalid characters: copy it again, without "
                f"the surrounding text"
            )
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise ConfigurationError(
                f"attempts of {self.name} must be a whole number greater than 0, not {self.attempts!r}"
            )
        if not _is_number(self.timeout_seconds) or self.timeout_seconds <= 0:
            raise ConfigurationError(
                f"timeout_seconds of {self.name} must be a number greater than 0, not {self.timeout_seconds!r}"
            )
        if not _is_number(self.backoff_seconds) or self.backoff_seconds < 0:
            raise ConfigurationError(
                f"backoff_seconds of {self.name} must be a number of at least 0, not {self.backoff_seconds!r}"
            )

    def post(self, body: Mapping[str, Any]) -> Any:
        """The service's response; transient failures are retried with exponential backoff."""
        answer = retry(lambda: self._attempt(body), self.attempts, self.backoff_seconds, EmbeddingError)
        return answer.content

    def _attempt(self, body: Mapping[str, Any]) -> _Answer | Failure:
        import http.client
        import urllib.error

        timeout_seconds = attempt_timeout(self.timeout_seconds)
        try:
            content = self._send(body, timeout_seconds)
            answer = json.loads(content)
        except urllib.error.HTTPError as exc:
            with exc:
                return self._refusal(exc.code, exc.headers.get("Retry-After"), _words_of(exc), exc)
        except (OSError, http.client.HTTPException) as exc:
            return self._unreachable(exc, timeout_seconds)
        except (ValueError, RecursionError) as exc:
            return Failure(f"{self.name} returned a response that is not JSON", True, cause=exc)
        error = answer.get("error") if isinstance(answer, Mapping) else None
        return _Answer(answer) if not error else self._error_instead(error, content)

    def _error_instead(self, error: Any, content: bytes) -> Failure:
        """The error in a response with a success status, which some services send."""
        code = error.get("code") if isinstance(error, Mapping) else None
        said = self.key.hidden_in(_quoted(content))
        transient = isinstance(code, int) and code in RETRIED_STATUSES
        return Failure(f"{self.name} returned an error: {said}; check the model and the request", transient)

    def _send(self, body: Mapping[str, Any], timeout_seconds: float) -> bytes:
        import urllib.request

        from alma.http_client import open_url

        request = urllib.request.Request(
            self.url,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", self.key_header: f"{self.key_prefix}{self.key.reveal()}"},
        )
        with open_url(request, timeout_seconds) as answer:
            return answer.read()

    def _refusal(self, status: int, retry_after: str | None, said: str, cause: Exception) -> Failure:
        # Some services quote a part of a wrong key. An exhausted quota is a 429 that is not transient.
        fix = self.fixes.get(status)
        quote = "" if status == 401 or not said else f": {self.key.hidden_in(said)}"
        sentence = f"{self.name} answered {status}{quote}{f'; {fix}' if fix else ''}"
        transient = status in RETRIED_STATUSES and "insufficient_quota" not in said
        return Failure(sentence, transient, retry_after_seconds(retry_after), cause)

    def _unreachable(self, exc: Exception, timeout_seconds: float) -> Failure:
        import ssl

        reason = getattr(exc, "reason", exc)
        host = self.url.split("/")[2]
        if isinstance(reason, TimeoutError):
            said = f"did not answer within {timeout_seconds:.3g} seconds"
        else:
            said = f"cannot be reached at {host}: {_why(reason)}"
        return Failure(f"{self.name} {said}", not isinstance(reason, ssl.SSLCertVerificationError), cause=exc)


@dataclass(frozen=True)
class _Answer:
    content: Any


def key_of(given: str | Secret | None, missing: str) -> Secret:
    """The API key, or an error that says where to set it."""
    if not isinstance(given, str | Secret) or not Secret(given):
        raise ConfigurationError(missing)
    return Secret(given)


def text_of(name: str, given: str, missing: str) -> str:
    """The option, if it is non-empty text, or an error that says how to give it."""
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(f"{missing} ({name} is {given!r})")
    return given


def base_of(name: str, given: str, missing: str) -> str:
    """The base URL, validated, or an error that says how to give it."""
    base = text_of(name, given, missing).rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise ConfigurationError(f"{name} must begin with https://, not be {shown(base)}")
    # Not quoted, because it may contain a password.
    if "@" in base.partition("://")[2].partition("/")[0]:
        raise ConfigurationError(f"{name} must be given without a user and password, as in https://host/path")
    if "?" in base or "#" in base:
        raise ConfigurationError(f"{name} must end before the question mark, as in https://host/path, not {base!r}")
    return base


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Reading the port validates it.
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.hostname) and _is_sent_as_it_is(url) and " " not in url


def _is_sent_as_it_is(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _why(reason: object) -> str:
    """The reason of a failed connection, without the error number."""
    import http.client

    if isinstance(reason, http.client.IncompleteRead):
        return "the connection was lost in the middle of the response"
    if isinstance(reason, http.client.HTTPException) and not isinstance(reason, OSError):
        return "its response is not HTTP"
    return (isinstance(reason, OSError) and reason.strerror) or str(reason)


def _words_of(refusal: Any) -> str:
    """The body of an error response; empty if the connection was lost."""
    import http.client

    try:
        return _quoted(refusal.read())
    except (OSError, http.client.HTTPException):
        return ""


def _quoted(content: bytes) -> str:
    """The service's error message, shortened to one line."""
    try:
        error = json.loads(content)["error"]
        said = (
            error
            if isinstance(error, str)
            else " ".join(str(error[key]) for key in ("code", "message") if error.get(key))
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = content.decode(errors="replace")
    return " ".join(said.split())[:_LONGEST_QUOTE]
