"""Signatures: how the receiver of a webhook knows that it is ours, whole, and not an old one sent again."""

from __future__ import annotations

import hashlib
import hmac

from alma.clock import now
from alma.model.secret import Secret

SIGNATURE_HEADER = "X-ALMA-Signature"
TIMESTAMP_HEADER = "X-ALMA-Timestamp"
EVENT_HEADER = "X-ALMA-Event"
DELIVERY_HEADER = "X-ALMA-Delivery"

_PREFIX = "sha256="


def sign(secret: str | Secret, timestamp: int | str, body: bytes | str) -> str:
    """The signature of a body sent at this time: HMAC-SHA256 over `<timestamp>.<body>`, as `sha256=<hex>`."""
    content = body.encode() if isinstance(body, str) else bytes(body)
    key = Secret(secret).reveal().encode()
    return _PREFIX + hmac.new(key, f"{timestamp}.".encode() + content, hashlib.sha256).hexdigest()


def verify_signature(
    secret: str | Secret,
    body: bytes | str,
    signature: str | None,
    timestamp: int | str | None,
    tolerance_seconds: float = 300.0,
) -> bool:
    """Whether a webhook's body was signed with this secret, and within the last few minutes.

    `signature` and `timestamp` are what the headers X-ALMA-Signature and X-ALMA-Timestamp say, `body` is what came,
    byte for byte. What is missing or no signature at all is False, as is a timestamp further from now than the
    tolerance, which keeps a recorded request from being sent again later.
    """
    sent_at = _seconds(timestamp)
    if not signature or sent_at is None or not Secret(secret):
        return False
    is_ours = hmac.compare_digest(sign(secret, str(timestamp).strip(), body).encode(), signature.strip().encode())
    return is_ours and abs(now().timestamp() - sent_at) <= tolerance_seconds


def _seconds(timestamp: int | str | None) -> int | None:
    try:
        return None if timestamp is None else int(timestamp)
    except (ValueError, OverflowError):
        return None
