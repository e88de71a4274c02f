"""A long JSON file, element by element: an array, or an object of arrays, never held in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from alma.transfer.limits import Limits

_LIMITS = Limits()
_CHUNK = 1 << 18
_IN_NUMBERS = frozenset("0123456789+-.eE")
_decode = json.JSONDecoder().raw_decode


class JsonStream:
    """Reads values from a text that is fetched as it is needed."""

    def __init__(self, file: TextIO, limits: Limits = _LIMITS) -> None:
        self._file = file
        self._limits = limits
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._before = 0
        self._held = False

    def elements(self, whole: frozenset[str]) -> Iterator[tuple[str | None, bool, Any]]:
        """(key, in a list, value) for each element; an object whose first key is one of `whole` is one element."""
        start = self._peek()
        if start == "[":
            yield from ((None, True, value) for value in self._array())
        elif start == "{" and self._first_key() not in whole:
            yield from self._members()
        else:
            yield None, True, self._value()
        if self._peek():
            raise ValueError(f"there is something after its end, at character {self.position}")

    @property
    def position(self) -> int:
        """How many characters were consumed."""
        return self._before + self._at

    def _array(self) -> Iterator[Any]:
        self._skip("[")
        if self._peek() == "]":
            self._skip("]")
            return
        while True:
            yield self._value()
            if self._peek() != ",":
                break
            self._skip(",")
        self._skip("]")

    def _members(self) -> Iterator[tuple[str | None, bool, Any]]:
        self._skip("{")
        if self._peek() == "}":
            self._skip("}")
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                raise ValueError(f"a key must be text, at character {self.position}")
            self._skip(":")
            if self._peek() == "[":
                yield from ((key, True, value) for value in self._array())
            else:
                yield key, False, self._value()
            if self._peek() != ",":
                break
            self._skip(",")
        self._skip("}")

    def _first_key(self) -> str | None:
        """The first key of the object that begins here, which stays unread."""
        at, self._held = self._at, True
        self._at += 1
        key = self._value() if self._peek() == '"' else None
        self._at, self._held = at, False
        return key

    def _value(self) -> Any:
        self._peek()
        wanted = _CHUNK
        while True:
            try:
                value, end = _decode(self._buffer, self._at)
            except ValueError as exc:
                if self._ended:
                    raise ValueError(f"{exc.msg if isinstance(exc, json.JSONDecodeError) else exc}, at character "
                                     f"{self.position}") from None  # fmt: skip
            else:
                # A number near the end of the buffer may go on behind it, as 1.5 and 1e9 do.
                if self._ended or (end < len(self._buffer) and self._buffer[end] not in _IN_NUMBERS):
                    self._at = end
                    return value
            self._limits.check_row(len(self._buffer) - self._at)
            # Ever larger pieces: a long element is decoded a few times, not once for each small piece.
            self._fetch(wanted, keep=True)
            wanted *= 2

    def _peek(self) -> str:
        """The next character that is no white space, or nothing at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at].isspace():
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._ended:
                return ""
            self._fetch(_CHUNK, keep=False)

    def _skip(self, expected: str) -> None:
        if self._peek() != expected:
            raise ValueError(f"{expected!r} was expected at character {self.position}")
        self._at += 1

    def _fetch(self, size: int, *, keep: bool) -> None:
        more = self._file.read(size)
        self._ended = not more
        if not self._held and (not keep or self._at > _CHUNK):
            self._before += self._at
            self._buffer, self._at = self._buffer[self._at :], 0
        self._buffer += more
