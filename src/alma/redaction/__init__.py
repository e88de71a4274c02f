"""Redaction: secrets in texts and records, found and taken out; it needs no store, so that everything may use it."""

from alma.redaction.nested import Masked, Redacted
from alma.redaction.redactor import (
    DEFAULT_REDACTOR,
    Redactor,
    SecretRedactor,
    redact_json,
    redact_record,
    redact_text,
)
from alma.redaction.rules import Rule

__all__ = [
    "DEFAULT_REDACTOR",
    "Masked",
    "Redacted",
    "Redactor",
    "Rule",
    "SecretRedactor",
    "redact_json",
    "redact_record",
    "redact_text",
]
