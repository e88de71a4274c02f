"""The wire: a client at the other end of standard input and output, which nothing else in the process can reach."""

from __future__ import annotations

import json
import os
import sys
import threading

LONGEST_MESSAGE = 16 * 1024 * 1024
"""In bytes: more than the longest text that is remembered takes when every character of it is escaped."""


PARSE_ERROR, INVALID_REQUEST = -32700, -32600


def refusal(code: int, reason: str) -> bytes:
    """The answer to what is no message, and so has no id."""
    error = {"code": code, "message": reason}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode() + b"\n"


class Wire:
    """Takes standard input and output: who prints or reads from now on, C libraries included, misses the client."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
        self._output = os.dup(1)
        self._writing = threading.Lock()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:
            os.dup2(nothing, 1)
        os.close(nothing)
        sys.stdout = sys.stderr

    def next_message(self) -> bytes | None:
        """The next line; None when the client has closed its end. One that is too long is refused and passed over."""
        while line := self._input.readline(LONGEST_MESSAGE + 1):
            if len(line) > LONGEST_MESSAGE and not line.endswith(b"\n"):
                self._skip_line()
                self.write(refusal(INVALID_REQUEST, f"a message has at most {LONGEST_MESSAGE} bytes"))
            elif line.strip():
                return line
        return None

    def write(self, line: bytes) -> None:
        """Send a whole line; threads may call it at the same time."""
        with self._writing:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._output, rest) :]

    def _skip_line(self) -> None:
        while (piece := self._input.readline(1 << 16)) and not piece.endswith(b"\n"):
            pass
