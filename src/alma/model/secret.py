"""Secret: a text that is used but never shown."""

from __future__ import annotations


class Secret:
    """A key or password, printed, logged and formatted as ***."""

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text._text if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """The text itself, to be sent to a service."""
        return self._text

    def hidden_in(self, text: str) -> str:
        """The given text without this secret in it."""
        return text.replace(self._text, "***") if self._text else text

    def __repr__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._text.strip())

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled; give each process its own")
