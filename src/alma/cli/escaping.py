"""Safe text: what is stored can be read, and never acts on the terminal it is shown in."""

from __future__ import annotations

import re

from alma.text.disguise import visible

# Control characters, and those that turn or hide the text around them; a line break and a tab are text.
_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def safe(text: str) -> str:
    """The text with what acts on a terminal written out, as \\x1b for an escape, and without what is not seen."""
    return visible(_SURROGATES.sub(_written, _ACTING.sub(_written, text.replace("\r\n", "\n"))))


def one_line(text: str) -> str:
    """The text as one line."""
    return safe(" ".join(text.split()))


def safe_json(document: str) -> str:
    """A JSON document with the same characters escaped as JSON does; it means the same."""
    return _SURROGATES.sub(_escaped, _ACTING.sub(_escaped, document))


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
