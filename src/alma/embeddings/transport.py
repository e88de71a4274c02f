"""Asking a service over HTTP: JSON out, JSON in, with time-outs, retries and errors that say what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alma.errors import ConfigurationError, EmbeddingError
from alma.model.secret import Secret
from alma.retrying import RETRIED_STATUSES, Failure, attempt_seconds, retry_after_seconds, until_answered

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
        answer = until_answered(lambda: self._attempt(body), self.attempts, self.backoff_seconds, EmbeddingError)
        return answer.content

    def _attempt(self, body: Mapping[str, Any]) -> _Answer | Failure:
        import http.client
        import urllib.error

        timeout_seconds = attempt_seconds(self.timeout_seconds)
        try:
            return _Answer(json.loads(self._send(body, timeout_seconds)))
        except urllib.error.HTTPError as exc:
            with exc:
                return self._refusal(exc.code, exc.headers.get("Retry-After"), _words_of(exc), exc)
        except (OSError, http.client.HTTPException) as exc:
            return self._unreachable(exc, timeout_seconds)
        except (ValueError, RecursionError) as exc:
            return Failure(f"{self.name} answered with something that is not JSON", True, cause=exc)

    def _send(self, body: Mapping[str, Any], timeout_seconds: float) -> bytes:
        import urllib.request

        request = urllib.request.Request(
            self.url,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", self.key_header: f"{self.key_prefix}{self.key.reveal()}"},
        )
        opener = urllib.request.build_opener(_no_redirects())
        with opener.open(request, timeout=timeout_seconds) as response:
            content: bytes = response.read()
        return content

    def _refusal(self, status: int, retry_after: str | None, said: str, cause: Exception) -> Failure:
        # A wrong key is quoted, in part, by some services; an exhausted quota comes as 429 and does not pass.
        fix = self.fixes.get(status)
        quote = "" if status == 401 or not said else f": {self.key.hidden_in(said)}"
        sentence = f"{self.name} answered {status}{quote}{f'; {fix}' if fix else ''}"
        may_pass = status in RETRIED_STATUSES and "insufficient_quota" not in said
        return Failure(sentence, may_pass, retry_after_seconds(retry_after), cause)

    def _unreachable(self, exc: Exception, timeout_seconds: float) -> Failure:
        import ssl

        reason = getattr(exc, "reason", exc)
        host = self.url.split("/")[2]
        if isinstance(reason, TimeoutError):
            said = f"did not answer within {timeout_seconds:.3g} seconds"
        else:
            said = f"cannot be reached at {host}: {str(reason) or type(reason).__name__}"
        return Failure(f"{self.name} {said}", not isinstance(reason, ssl.SSLCertVerificationError), cause=exc)


@dataclass(frozen=True)
class _Answer:
    content: Any


def _no_redirects() -> Any:
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        """A redirected request would take the key to another host."""

        def redirect_request(self, *_: Any) -> None:
            return None

    return NoRedirects()


def _words_of(refusal: Any) -> str:
    """What a service says besides its status; nothing where it broke off while it said so."""
    import http.client

    try:
        return _quoted(refusal.read())
    except (OSError, http.client.HTTPException):
        return ""


def _quoted(content: bytes) -> str:
    """The service's own words, short and on one line."""
    try:
        error = json.loads(content)["error"]
        said = " ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = content.decode(errors="replace")
    return " ".join(said.split())[:_LONGEST_QUOTE]
