"""Asking a service over HTTP: JSON out, JSON in, with time-outs, retries and errors that say what to do."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from alma.errors import ConfigurationError, EmbeddingError
from alma.model.secret import Secret

_RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
_LONGEST_WAIT_SECONDS = 60.0
_LONGEST_QUOTE = 300


@dataclass(frozen=True)
class Service:
    """One address of a service, how to be let in, and what its refusals mean.

    `fixes` says for a status what the reader of the error should do.
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
        if not self.url.startswith(("http://", "https://")):
            raise ConfigurationError(f"the address of {self.name} must begin with https://, not {self.url[:40]!r}")
        if self.attempts < 1 or self.timeout_seconds <= 0 or self.backoff_seconds < 0:
            raise ConfigurationError(f"attempts and timeout_seconds of {self.name} must be greater than 0")

    def post(self, body: Mapping[str, Any]) -> Any:
        """The service's answer; what may pass by itself is tried again, each time after a longer wait."""
        for attempt in range(1, self.attempts + 1):
            failure = self._attempt(body)
            if isinstance(failure, _Answer):
                return failure.content
            wait = failure.wait_seconds(self.backoff_seconds, attempt)
            if not failure.may_pass or attempt == self.attempts or wait > _LONGEST_WAIT_SECONDS:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                raise EmbeddingError(f"{failure.sentence}{tried}") from failure.cause
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, body: Mapping[str, Any]) -> _Answer | _Failure:
        import http.client
        import urllib.error

        try:
            return _Answer(json.loads(self._send(body)))
        except urllib.error.HTTPError as exc:
            with exc:
                return self._refusal(exc.code, exc.headers.get("Retry-After"), _quoted(exc.read()), exc)
        except (OSError, http.client.HTTPException) as exc:
            return self._unreachable(exc)
        except ValueError as exc:
            return _Failure(f"{self.name} answered with something that is not JSON", True, cause=exc)

    def _send(self, body: Mapping[str, Any]) -> bytes:
        import urllib.request

        request = urllib.request.Request(
            self.url,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", self.key_header: f"{self.key_prefix}{self.key.reveal()}"},
        )
        opener = urllib.request.build_opener(_no_redirects())
        with opener.open(request, timeout=self.timeout_seconds) as response:
            content: bytes = response.read()
        return content

    def _refusal(self, status: int, retry_after: str | None, said: str, cause: Exception) -> _Failure:
        # A wrong key is quoted, in part, by some services; an exhausted quota comes as 429 and does not pass.
        fix = self.fixes.get(status)
        quote = "" if status == 401 or not said else f": {self.key.hidden_in(said)}"
        sentence = f"{self.name} answered {status}{quote}{f'; {fix}' if fix else ''}"
        may_pass = status in _RETRIED and "insufficient_quota" not in said
        return _Failure(sentence, may_pass, _seconds(retry_after), cause)

    def _unreachable(self, exc: Exception) -> _Failure:
        import ssl

        reason = getattr(exc, "reason", exc)
        host = self.url.split("/")[2]
        if isinstance(reason, TimeoutError):
            said = f"did not answer within {self.timeout_seconds:g} seconds"
        else:
            said = f"cannot be reached at {host}: {str(reason) or type(reason).__name__}"
        return _Failure(f"{self.name} {said}", not isinstance(reason, ssl.SSLCertVerificationError), cause=exc)


@dataclass(frozen=True)
class _Answer:
    content: Any


@dataclass(frozen=True)
class _Failure:
    """Why an attempt failed, and whether another may succeed."""

    sentence: str
    may_pass: bool
    retry_after: float | None = None
    cause: Exception | None = None

    def wait_seconds(self, backoff_seconds: float, attempt: int) -> float:
        """What the service asks for, or else twice as long each time, spread so that clients do not come together."""
        if self.retry_after is not None:
            return self.retry_after
        longest = min(_LONGEST_WAIT_SECONDS, backoff_seconds * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)


def _no_redirects() -> Any:
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        """A redirected request would take the key to another host."""

        def redirect_request(self, *_: Any) -> None:
            return None

    return NoRedirects()


def _quoted(content: bytes) -> str:
    """The service's own words, short and on one line."""
    try:
        error = json.loads(content)["error"]
        said = " ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = content.decode(errors="replace")
    return " ".join(said.split())[:_LONGEST_QUOTE]


def _seconds(retry_after: str | None) -> float | None:
    """What a Retry-After header says, as a number of seconds or as a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
