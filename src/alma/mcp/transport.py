"""Newline-delimited JSON over stdin and stdout, protected against other output of the process."""

from __future__ import annotations

import json
import os
import sys
import threading

LONGEST_MESSAGE = 16 * 1024 * 1024
"""In bytes: more than the longest allowed text takes with every character escaped."""


PARSE_ERROR, INVALID_REQUEST = -32700, -32600


def error_message(code: int, reason: str) -> bytes:
    """The error response to an invalid message, which has no id."""
    error = {"code": code, "message": reason}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode() + b"\n"


class StdioTransport:
    """Takes over stdin and stdout; later prints of this process, including C libraries, go to stderr."""

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
        """The next line, or None when the client has closed its end; lines that are too long are refused."""
        while line := self._input.readline(LONGEST_MESSAGE + 1):
            if len(line) > LONGEST_MESSAGE and not line.endswith(b"\n"):
                self._skip_line()
                self.write(error_message(INVALID_REQUEST, f"a message may have at most {LONGEST_MESSAGE} bytes"))
            elif line.strip():
                return line
        return None

    def write(self, line: bytes) -> None:
        """Write a line; thread-safe."""
        with self._writing:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._output, rest) :]

    def _skip_line(self) -> None:
        while (piece := self._input.readline(1 << 16)) and not piece.endswith(b"\n"):
            pass
