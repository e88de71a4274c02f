"""A logging filter that masks secrets."""

from __future__ import annotations

import logging
from typing import Any

from alma.errors import RefusedError
from alma.redaction.nested import redacted_value
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_FORMATTER = logging.Formatter()
_LEFT_OUT = "a message was left out, as the redactor failed at it"


class RedactingFilter(logging.Filter):
    """Masks secrets in the message, its arguments, its error and the further facts of everything that is logged.

    `handler.addFilter(RedactingFilter())` is enough; a filter on a logger does not see what its children log.
    """

    def __init__(self, redactor: Redactor = DEFAULT_REDACTOR) -> None:
        super().__init__()
        self._redactor = checked_redactor("filter", redactor) or DEFAULT_REDACTOR

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            self._mask(record)
        except RefusedError:
            # Logging must not raise, and unredacted text must not be logged.
            _empty(record)
        return True

    def _mask(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        clean = self._clean(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info and any(record.exc_info):
            self._mask_error(record)
        record.exc_text, record.stack_info = self._clean(record.exc_text), self._clean(record.stack_info)
        for name, value in _facts(record).items():
            record.__dict__[name] = self._clean(value, name)

    def _mask_error(self, record: logging.LogRecord) -> None:
        """Replace the exception by its masked traceback when that holds a secret."""
        assert record.exc_info
        text = _FORMATTER.formatException(record.exc_info)
        clean = self._clean(text)
        if clean != text:
            record.exc_info, record.exc_text = None, clean

    def _clean(self, value: Any, name: str = "") -> Any:
        return redacted_value(value, name, name, self._redactor.redact, []) if _can_be_read(value) else value


def _can_be_read(value: Any) -> bool:
    """Whether this is text or JSON; other values are left as they are."""
    if type(value) is dict:
        return all(isinstance(key, str) and _can_be_read(each) for key, each in value.items())
    if type(value) in (list, tuple):
        return all(map(_can_be_read, value))
    return value is None or type(value) in (str, bool, int, float)


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """The fields given as `extra`."""
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


def _empty(record: logging.LogRecord) -> None:
    record.msg, record.args = _LEFT_OUT, None
    record.exc_info = record.exc_text = record.stack_info = None
    for name in _facts(record):
        record.__dict__[name] = None
