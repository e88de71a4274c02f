"""Logs without secrets: a filter for any logger or handler."""

from __future__ import annotations

import logging

from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class RedactingFilter(logging.Filter):
    """Masks secrets in the message, its arguments and the further facts of everything that is logged.

    `handler.addFilter(RedactingFilter())` is enough; a filter on a logger does not see what its children log.
    """

    def __init__(self, redactor: Redactor = DEFAULT_REDACTOR) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = self._redactor.redact(message).text
        if clean != message:
            record.msg, record.args = clean, None
        for name, value in record.__dict__.items():
            if name not in _STANDARD and isinstance(value, str):
                record.__dict__[name] = self._redactor.redact(value, name).text
        return True
