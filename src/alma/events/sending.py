"""Sending: one HTTP request, and what is known when it fails."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alma.events.addresses import ForbiddenAddress, require_allowed

_MAY_PASS = frozenset({408, 425, 429})
LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed, and whether another may succeed."""

    sentence: str
    may_pass: bool
    retry_after: float | None = None

    def wait_seconds(self, backoff_seconds: float, attempt: int) -> float:
        """What the receiver asks for, or else twice as long each time, spread so that senders do not come together."""
        if self.retry_after is not None:
            return min(self.retry_after, LONGEST_WAIT_SECONDS)
        longest = min(LONGEST_WAIT_SECONDS, backoff_seconds * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)


def send(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float, *, allow_link_local: bool = False
) -> Failure | None:
    """Post a body; None when it was accepted. Redirects are not followed: what is signed is for this address."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, data=body, headers=dict(headers), method="POST")
    handlers = [_no_redirects(), *(() if allow_link_local else _watchful())]
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_seconds):
            return None
    except urllib.error.HTTPError as exc:
        with exc:
            may_pass = exc.code in _MAY_PASS or exc.code >= 500
            return Failure(f"answered {exc.code}", may_pass, _seconds(exc.headers.get("Retry-After")))
    except (OSError, http.client.HTTPException) as exc:
        reason = getattr(exc, "reason", exc)
        if isinstance(reason, ForbiddenAddress):
            return Failure(str(reason), may_pass=False)
        late = isinstance(reason, TimeoutError)
        said = f"did not answer within {timeout_seconds:g} seconds" if late else f"cannot be reached: {reason}"
        return Failure(said, True)


def _no_redirects() -> Any:
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        """A redirected request would take what was signed to another host."""

        def redirect_request(self, *_: Any) -> None:
            return None

    return NoRedirects()


def _watchful() -> tuple[Any, ...]:
    """What connects and looks where it has come to before anything is sent: a name may lead anywhere."""
    import http.client
    import urllib.request

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            require_allowed(self.sock.getpeername()[0])

    class Encrypted(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            require_allowed(self.sock.getpeername()[0])

    class OverPlain(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Plain, request)

    class OverEncrypted(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Encrypted, request)

    return OverPlain(), OverEncrypted()


def _seconds(retry_after: str | None) -> float | None:
    try:
        return None if retry_after is None else max(0.0, float(retry_after))
    except ValueError:
        return None
