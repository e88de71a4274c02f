"""The language model port: messages in, text or checked JSON out; and a model with scripted responses for tests."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from alma.closeable import Closeable
from alma.errors import ConfigurationError, LanguageModelError, ValidationError
from alma.lazy import lazy_regex
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
      `complete_json`.
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
        return Failure(f"{result.model} returned an empty response", True)
    return result


_FENCED = lazy_regex(r"```(?:json)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
_THOUGHTS = lazy_regex(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_AGAIN = "That was not JSON. Answer again with a single JSON object that matches this schema:\n{}"
_TRIALS = 2


def complete_json(
    llm: LanguageModel, messages: Iterable[Message], schema: Schema, max_tokens: int = 1_024
) -> dict[str, Any]:
    """The JSON object in the model's response; if there is none, one more request quotes the schema.

    The caller checks the fields: some services treat a schema as a hint.
    """
    conversation = [*messages]
    for _ in range(_TRIALS):
        answer = llm.complete(conversation, schema, max_tokens)
        if answer.finish_reason == "length" and not _is_whole(answer.text):
            raise LanguageModelError(f"{llm.model} was cut off after {max_tokens:,} tokens; raise max_tokens")
        found = read_object(answer.text, _only_list(schema))
        if found is not None:
            return found
        conversation += [Message("assistant", answer.text[:2_000]), Message("user", _AGAIN.format(json.dumps(schema)))]
    raise LanguageModelError(f"{llm.model} did not answer with JSON, asked {_TRIALS} times")


def read_object(text: str, listed: str | None = None) -> dict[str, Any] | None:
    """The first JSON object in a text; a list of objects becomes the field `listed`."""
    for candidate in _candidates(_THOUGHTS.sub("", text)):
        try:
            found, _ = json.JSONDecoder().raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
        if listed is not None and isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return {listed: found}
    return None


def _is_whole(text: str) -> bool:
    """Whether the JSON in a truncated text is complete."""
    begin = re.search(r"[\[{]", _THOUGHTS.sub("", text))
    if begin is None:
        return False
    try:
        json.JSONDecoder().raw_decode(begin.string, begin.start())
    except (ValueError, RecursionError):
        return False
    return True


def _only_list(schema: Schema) -> str | None:
    """The name of the only list in a schema, which some models return without the object around it."""
    properties = schema.get("properties", {})
    lists = [name for name, each in properties.items() if each.get("type") == "array"]
    return lists[0] if len(lists) == len(properties) == 1 else None


def _candidates(text: str) -> Iterator[str]:
    yield text.strip()
    for fenced in _FENCED.findall(text):
        yield fenced.strip()
    for match in list(re.finditer(r"[\[{]", text))[:50]:
        yield text[match.start() :]


def span_of(text: str, quote: str) -> tuple[int, int] | None:
    """The position of a quote in the text, ignoring case, white space and quotation marks; None if absent."""
    words = quote.strip(" \t\r\n\"'“”‘’`….").split()
    if not words:
        return None
    pattern = r"\s+".join(_alike(word) for word in words)
    match = re.search(pattern, text, re.IGNORECASE)
    return match.span() if match else None


def _alike(word: str) -> str:
    return re.sub(r"[\"“”„]|['‘’`]", lambda m: '["“”„]' if m[0] in '"“”„' else "['‘’`]", re.escape(word))


Reply = str | dict[str, Any] | Exception | Callable[[Request], str]


class ScriptedModel(LanguageModel):
    """Returns its replies in order, repeating the last one; `asked` holds the requests.

    A reply is text, an object sent as JSON, an error, or a function of the request.
    """

    def __init__(self, *replies: Reply, attempts: int = 1) -> None:
        super().__init__(attempts=attempts, backoff_seconds=0.0)
        if not replies:
            raise LanguageModelError("a scripted model needs at least one reply")
        self._replies: list[Reply] = list(replies)
        self.asked: list[Request] = []

    @property
    def model(self) -> str:
        return "scripted"

    def _attempt(self, request: Request) -> Completion | Failure:
        reply = self._replies[min(len(self.asked), len(self._replies) - 1)]
        self.asked.append(request)
        if isinstance(reply, Exception):
            return Failure(str(reply), transient=True, cause=reply)
        if isinstance(reply, dict):
            return Completion(json.dumps(reply), self.model, "stop")
        return Completion(reply if isinstance(reply, str) else reply(request), self.model, "stop")
