"""The language model port: messages in, words out."""

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
    """One turn of a conversation with a model."""

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValidationError("message", "role", self.role, f"must be one of {', '.join(get_args(Role))}")
        if not isinstance(self.content, str):
            raise ValidationError("message", "content", self.content, "must be text")


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked: checked messages, the shape its answer must have, and how long it may be."""

    messages: tuple[Message, ...]
    schema: Schema | None
    max_tokens: int
    temperature: float | None
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered; `finish_reason` is "length" where it was cut off."""

    text: str
    model: str
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class LanguageModel(Closeable):
    """Answers messages.

    * `complete` returns text, never an empty one, or raises `LanguageModelError` with a sentence that says what to do.
    * With a `schema` (JSON Schema) the service is told to answer with such JSON; what comes is still text, to be read
      by `alma.llm.structured.complete_json`.
    * What may pass by itself (429, 5xx, no connection, a time-out) is tried again, `attempts` times in all.
    * Keys never appear in errors.

    A subclass implements `model` and `_attempt`.
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
        """Ask once."""

    def complete(
        self,
        messages: Iterable[Message | Mapping[str, Any]],
        schema: Schema | None = None,
        max_tokens: int = 1_024,
        temperature: float | None = 0.0,
        timeout_seconds: float | None = None,
    ) -> Completion:
        """The model's answer to the messages; a temperature of None leaves it to the service."""
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        request = Request(checked_messages(messages), schema, max_tokens, temperature, seconds)
        return retry(
            lambda: _not_empty(self._attempt(request)), self._attempts, self._backoff_seconds, LanguageModelError
        )

    def close(self) -> None:
        """Release connections, where there are some; closing twice is fine."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r})"


def checked_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages as such, or an error that says what is wrong with them."""
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
