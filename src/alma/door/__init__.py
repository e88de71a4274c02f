"""The door: what every text passes before it is remembered."""

from alma.door.door import TRUSTED_SOURCES, Door, Status, Written
from alma.door.echo import EchoGuard
from alma.door.logs import RedactingFilter
from alma.redaction.nested import Masked, Redacted
from alma.redaction.redactor import Redactor, SecretRedactor, redact_record, redact_text
from alma.redaction.secrets import Rule

__all__ = [
    "TRUSTED_SOURCES",
    "Door",
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
