"""JSON from a language model: requested by schema, parsed leniently, and checked against the source text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from alma.errors import LanguageModelError
from alma.llm.base import LanguageModel, Message, Schema

_FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_AGAIN = "That was not JSON. Answer again with a single JSON object that matches this schema:\n{}"
_TRIALS = 2


def complete_json(
    llm: LanguageModel, messages: Iterable[Message], schema: Schema, max_tokens: int = 1_024
) -> dict[str, Any]:
    """The JSON object in the model's response; if there is none, one more request quotes the schema.

    The caller checks the fields: some services treat a schema as a hint.
    """
    asked = [*messages]
    for _ in range(_TRIALS):
        answer = llm.complete(asked, schema, max_tokens)
        if answer.finish_reason == "length" and not _is_whole(answer.text):
            raise LanguageModelError(f"{llm.model} was cut off after {max_tokens:,} tokens; raise max_tokens")
        found = read_object(answer.text, _only_list(schema))
        if found is not None:
            return found
        asked += [Message("assistant", answer.text[:2_000]), Message("user", _AGAIN.format(json.dumps(schema)))]
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
