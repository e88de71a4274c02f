"""Messages of LangChain as items of a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages, message_to_dict

from alma.integration.transcripts import Item, said_in

_ROLES = frozenset(("user", "human", "ai", "assistant", "system", "developer"))
_SPEAKERS = frozenset(("human", "ai"))


def item_of(message: BaseMessage, external_id: str | None = None) -> Item:
    """What people and models say is searched by meaning, the rest by words; the output of tools is not trusted."""
    kind = message.type.removesuffix("MessageChunk").lower()
    said, trusted = kind in _SPEAKERS, kind not in ("tool", "function")
    status = getattr(message, "status", None) if kind == "tool" else None
    succeeded = None if status is None else status != "error"
    return Item(message_to_dict(message), kind, said_in(message.content), said, trusted, external_id, succeeded)


def messages_in(value: Any) -> Iterator[BaseMessage]:
    """The messages in what a node of a graph writes: one or a list, as objects, pairs or dicts."""
    for each in value if isinstance(value, list) else [value]:
        is_pair = isinstance(each, tuple | list) and len(each) == 2 and isinstance(each[0], str) and each[0] in _ROLES
        if isinstance(each, BaseMessage):
            yield each
        elif is_pair or (isinstance(each, dict) and each.get("role") in _ROLES and "content" in each):
            yield from convert_to_messages([each])
