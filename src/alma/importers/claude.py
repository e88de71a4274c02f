"""Claude's export: conversations with their messages in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alma.importers.base import LeftOut, RowRefused
from alma.importers.conversations import ConversationExport, Turn

_SPEAKERS = {"human": "user", "user": "user", "assistant": "assistant"}


class Claude(ConversationExport):
    """`conversations.json`, alone or in the archive it comes in."""

    name = "claude"
    key = "uuid"
    fields = frozenset({"uuid", "name", "chat_messages", "created_at", "updated_at", "account"})
    title_fields = ("name",)
    id_fields = ("uuid",)
    created_fields = ("created_at",)
    changed_fields = ("updated_at",)

    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | LeftOut]:
        messages = data.get("chat_messages")
        if not isinstance(messages, list):
            raise RowRefused("the conversation has no chat_messages")
        for number, message in enumerate(messages):
            if isinstance(message, Mapping):
                yield _turn(message, str(message.get("uuid") or number))
            else:
                yield LeftOut("messages that are no objects")


def _turn(message: Mapping[str, Any], message_id: str) -> Turn | LeftOut:
    sender = message.get("sender")
    if sender not in _SPEAKERS:
        return LeftOut(f"{sender or 'unknown'} messages")
    text = "\n\n".join(part for part in (_text(message), *_pasted(message)) if part.strip())
    files = [name for name in _file_names(message) if name]
    if not text.strip():
        return LeftOut("messages without text")
    return Turn(message_id, _SPEAKERS[str(sender)], text, message.get("created_at"), {"files": files} if files else {})


def _text(message: Mapping[str, Any]) -> str:
    """What was said; what tools were asked and answered stands in parts of other types."""
    parts = message.get("content")
    if isinstance(parts, list):
        said = [
            str(part.get("text") or "") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"
        ]
        joined = "\n".join(text for text in said if text.strip())
        if joined:
            return joined
    if isinstance(parts, str) and parts.strip():
        return parts
    text = message.get("text")
    return text if isinstance(text, str) else ""


def _pasted(message: Mapping[str, Any]) -> Iterator[str]:
    """What was attached as text, as every long text that somebody pastes is."""
    attached = message.get("attachments")
    for each in attached if isinstance(attached, list) else ():
        text = each.get("extracted_content") if isinstance(each, Mapping) else None
        if isinstance(text, str) and text.strip():
            name = each.get("file_name")
            yield f"[{name}]\n{text}" if isinstance(name, str) and name else text


def _file_names(message: Mapping[str, Any]) -> Iterator[Any]:
    for field in ("attachments", "files"):
        some = message.get(field)
        yield from (
            (each.get("file_name") for each in some if isinstance(each, Mapping)) if isinstance(some, list) else ()
        )
