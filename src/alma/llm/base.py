"""The language model port: messages in, text out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from alma.closeable import Closeable
from alma.errors import ConfigurationError, LanguageModelError, ValidationError
from alma.model.fields import JsonObject
from alma.retry import Failure, retry

Role = Literal["system", "user", "assistant"]
Schema = JsonObject


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValidationError("message", "role", self.role, f"must be one of {', '.join(get_args(Role))}")
        if not isinstance(self.content, str):
            raise ValidationError("message", "content", self.content, "must be text")


@dataclass(frozen=True, slots=True)
class Request:
    """A request: messages, response schema, token limit, temperature and timeout."""

    messages: tuple[Message, ...]
    schema: Schema | None
    max_tokens: int
    temperature: float | None
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A response; `finish_reason` is "length" if it was truncated."""

    text: str
    model: str
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class LanguageModel(Closeable):
    """A language model.

    * `complete` returns non-empty text, or raises `LanguageModelError` with a sentence that says what to do.
    * With a `schema` (JSON Schema) the service is asked for such JSON; the result is still text, to be parsed by
      `alma.llm.structured.complete_json`.
    * Transient failures (429, 5xx, no connection, timeout) are retried, `attempts` in total.
    * API keys never appear in errors.

    Subclasses implement `model` and `_attempt`.
    """

    def __init__(self, timeout_seconds: float = 60.0, attempts: int = 3, backoff_seconds: float = 0.5) -> None:
        if attempts < 1 or timeout_seconds <= 0 or backoff_seconds < 0:
            raise ConfigurationError("attempts and timeout_seconds of a language model must be greater than 0")
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._backoff_seconds = backoff_seconds

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name."""

    @abstractmethod
    def _attempt(self, request: Request) -> Completion | Failure:
        """Send one request."""

    def complete(
        self,
        messages: Iterable[Message | Mapping[str, Any]],
        schema: Schema | None = None,
        max_tokens: int = 1_024,
        temperature: float | None = 0.0,
        timeout_seconds: float | None = None,
    ) -> Completion:
        """The response to the messages; a temperature of None uses the service's default."""
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        request = Request(checked_messages(messages), schema, max_tokens, temperature, seconds)
        return retry(
            lambda: _not_empty(self._attempt(request)), self._attempts, self._backoff_seconds, LanguageModelError
        )

    def close(self) -> None:
        """Close connections; closing twice has no effect."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r})"


def checked_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages as `Message` objects, or an error."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise ValidationError("messages", None, messages, "must be a list of messages")
    parsed = tuple(each if isinstance(each, Message) else _parsed(each) for each in messages)
    if not any(message.role == "user" for message in parsed):
        raise ValidationError("messages", None, messages, "must contain a message of the user")
    return parsed


def _parsed(message: Any) -> Message:
    if not isinstance(message, Mapping):
        raise ValidationError("messages", None, message, "must be messages with a role and a content")
    return Message(message.get("role"), message.get("content"))  # type: ignore[arg-type]


_REFUSED = ("refusal", "content_filter")


def _not_empty(result: Completion | Failure) -> Completion | Failure:
    if isinstance(result, Completion) and not result.text.strip():
        if result.finish_reason in _REFUSED:
            return Failure(f"{result.model} refused to answer; ask in other words, or another model", False)
        return Failure(f"{result.model} answered with nothing", True)
    return result
