"""Escape control characters, so that stored text cannot control the terminal."""

from __future__ import annotations

import re

from alma.text.disguise import visible

# Control characters except newline and tab, and characters that reorder or hide text.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def safe(text: str) -> str:
    """The text with control characters written as \\x1b, and without invisible characters."""
    return visible(_SURROGATES.sub(_written, _ACTING.sub(_written, text.replace("\r\n", "\n"))))


def one_line(text: str) -> str:
    """The text on one line."""
    return safe(" ".join(text.split()))


def safe_json(document: str) -> str:
    """A JSON document with the same characters as JSON escapes."""
    return _SURROGATES.sub(_escaped, _ACTING.sub(_escaped, document))


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
