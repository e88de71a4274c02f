"""Redaction: find and mask secrets in texts and records; it needs no store, so every layer may use it."""

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
