"""Guarding: a redactor of somebody else's that fails, or answers with something else, stores nothing and says so."""

from __future__ import annotations

from typing import Any

from alma.errors import RefusedError, ValidationError
from alma.redaction.nested import Redacted
from alma.redaction.redactor import Redactor, SecretRedactor


class Guarded:
    """A redactor whose failures are refusals; what it failed at may hold secrets, so they do not repeat it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def redact(self, text: str, name: str = "") -> Redacted:
        try:
            redacted: Any = self._redactor.redact(text, name)
        except Exception as exc:  # noqa: BLE001 - whatever it raises, nothing may pass that it has not seen
            raise self._refusal(f"failed with {type(exc).__name__}") from None
        if not isinstance(redacted, Redacted) or not isinstance(redacted.text, str):
            raise self._refusal("did not return a Redacted, as Redacted(text)")
        return redacted

    def _refusal(self, what: str) -> RefusedError:
        named = type(self._redactor).__name__
        return RefusedError("redaction", f"nothing was stored: the redactor {named} {what}; mend it, or leave it out")

    def __repr__(self) -> str:
        return f"Guarded({self._redactor!r})"


def checked_redactor(what: str, redactor: Redactor | None) -> Redactor | None:
    """The redactor, guarded where it is somebody else's, or None, and an error for anything that is neither."""
    if redactor is None or type(redactor) in (SecretRedactor, Guarded):
        return redactor
    if callable(getattr(redactor, "redact", None)):
        return Guarded(redactor)
    raise ValidationError(
        what, "redactor", redactor, "must have a method redact(text, name), or be None for no redaction"
    )
