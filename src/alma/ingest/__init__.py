"""Ingest: what every text passes before it is stored."""

from alma.ingest.echo_guard import EchoGuard
from alma.ingest.pipeline import Ingest, Status, Written
from alma.model.provenance import TRUSTED_SOURCES
from alma.redaction.nested import Masked, Redacted
from alma.redaction.redactor import RedactingFilter, Redactor, SecretRedactor, redact_record, redact_text
from alma.redaction.rules import Rule

__all__ = [
    "TRUSTED_SOURCES",
    "Ingest",
    "EchoGuard",
    "Masked",
    "Redacted",
    "RedactingFilter",
    "Redactor",
    "Rule",
    "SecretRedactor",
    "Status",
    "Written",
    "redact_record",
    "redact_text",
]
