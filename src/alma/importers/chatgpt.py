"""ChatGPT's export: conversations are trees of messages, of which the branch that was last looked at is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alma.importers.base import LeftOut, RowRefused
from alma.importers.conversations import ConversationExport, Turn

_SPEAKERS = {"user": "user", "assistant": "assistant"}
_SAID = ("text", "multimodal_text")


class ChatGPT(ConversationExport):
    """`conversations.json`, alone or in the archive it comes in."""

    name = "chatgpt"
    key = "id"
    fields = frozenset({"id", "conversation_id", "title", "mapping", "current_node", "create_time", "update_time"})
    title_fields = ("title",)
    id_fields = ("id", "conversation_id")
    created_fields = ("create_time",)
    changed_fields = ("update_time",)

    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | LeftOut]:
        nodes = data.get("mapping")
        if not isinstance(nodes, Mapping):
            raise RowRefused("the conversation has no mapping of its messages")
        for node in _branch(nodes, data.get("current_node")):
            message = node.get("message")
            if isinstance(message, Mapping):
                yield _turn(message, str(message.get("id") or node.get("id")))


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """The nodes from the root to the current one; a node that was seen already ends a circle."""
    key = current if current in nodes else _last_leaf(nodes)
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(key, str) and key in nodes and key not in seen:
        seen.add(key)
        node = nodes[key]
        if not isinstance(node, Mapping):
            break
        found.append(node)
        key = node.get("parent")
    return found[::-1]


def _last_leaf(nodes: Mapping[str, Any]) -> str | None:
    """Where nobody says which branch is the current one: the end of the one that was written last."""
    leaves = [key for key, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")]
    return max(leaves, key=lambda key: (_time(nodes[key]), key), default=None)


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, Mapping) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _turn(message: Mapping[str, Any], message_id: str) -> Turn | LeftOut:
    author, content = _inside(message, "author"), _inside(message, "content")
    metadata = _inside(message, "metadata")
    role, kind = author.get("role"), content.get("content_type")
    if role not in _SPEAKERS:
        return LeftOut(f"{role or 'unknown'} messages")
    if metadata.get("is_visually_hidden_from_conversation"):
        return LeftOut("hidden messages")
    if message.get("recipient") not in (None, "all"):
        return LeftOut("calls of tools")
    if kind not in (None, *_SAID):
        return LeftOut(f"{kind} messages")
    text = _text(content)
    if not text.strip():
        return LeftOut("messages without text")
    details = {"model": metadata["model_slug"]} if isinstance(metadata.get("model_slug"), str) else {}
    return Turn(message_id, _SPEAKERS[role], text, message.get("create_time"), details)


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "")
    said = [part if isinstance(part, str) else _spoken(part) for part in parts]
    return "\n".join(text for text in said if text.strip())


def _spoken(part: Any) -> str:
    """The words of a part that is no plain text, as of speech that was written down."""
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _inside(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}
