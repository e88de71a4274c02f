"""Sending: one HTTP request, and what is known when it fails."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit, urlunsplit

from alma.events.addresses import ForbiddenAddress, require_allowed
from alma.retrying import Failure, retry_after_seconds

_MAY_PASS = frozenset({408, 425, 429})
# What an address may have as it is; "%" too, as what was escaped already is not escaped again.
_AS_IT_IS = "/?:@!$&'()*+,;=%~"


def send(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float, *, allow_link_local: bool = False
) -> Failure | None:
    """Post a body; None when it was accepted. Redirects are not followed: what is signed is for this address.

    Proxies of the environment are not used: behind one, the address that a name leads to could not be checked.
    """
    import http.client
    import urllib.error
    import urllib.request

    from alma.opening import opened

    request = urllib.request.Request(_escaped(url), data=body, headers=dict(headers), method="POST")
    try:
        check = None if allow_link_local else require_allowed
        with opened(request, timeout_seconds, check, use_proxies=False):
            return None
    except urllib.error.HTTPError as exc:
        with exc:
            may_pass = exc.code in _MAY_PASS or exc.code >= 500
            return Failure(f"answered {exc.code}", may_pass, retry_after_seconds(exc.headers.get("Retry-After")))
    except (OSError, http.client.HTTPException) as exc:
        reason = getattr(exc, "reason", exc)
        if isinstance(reason, ForbiddenAddress):
            return Failure(str(reason), may_pass=False)
        late = isinstance(reason, TimeoutError)
        said = f"did not answer within {timeout_seconds:g} seconds" if late else f"cannot be reached: {reason}"
        return Failure(said, True)


def _escaped(url: str) -> str:
    """The address as it is sent, where a path has spaces or letters of any script."""
    parts = urlsplit(url)
    path, query = quote(parts.path, safe=_AS_IT_IS), quote(parts.query, safe=_AS_IT_IS)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))
