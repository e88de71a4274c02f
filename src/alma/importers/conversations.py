"""Conversations exported from ChatGPT and Claude: a session for each, and a memory for every turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, Rejected, Row, RowRefused, Skipped
from alma.importers.records import IMPORT, build_memory, first, mapping, moment, named, time_fields
from alma.model.workspace import Session


@dataclass(frozen=True, slots=True)
class Turn:
    """A message: speaker, text, time and details."""

    id: str
    speaker: str
    text: str
    said_at: object
    details: Mapping[str, Any]


class ConversationExport(Importer):
    """A session with the conversation's title and times, and its turns in order."""

    file_in_zip = "conversations.json"
    title_fields: tuple[str, ...]
    id_fields: tuple[str, ...]
    created_fields: tuple[str, ...]
    changed_fields: tuple[str, ...]

    @abstractmethod
    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | Skipped]:
        """The messages in order; messages that are not part of the dialogue are skipped."""

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        legacy_id = named(self.id_fields[0], first(data, self.id_fields))
        begun = moment(self.created_fields[0], first(data, self.created_fields), options.zone)
        changed = moment(self.changed_fields[0], first(data, self.changed_fields), options.zone)
        session = self._session(legacy_id, data, options, begun, changed)
        yield Item(session, changed_at=changed)
        said = list(self.turns(data))
        yield from (turn for turn in said if isinstance(turn, Skipped))
        is_dated = (begun or changed) is not None
        yield from self._memories(row, session, [turn for turn in said if isinstance(turn, Turn)], options, is_dated)

    def _session(
        self,
        legacy_id: str,
        data: Mapping[str, Any],
        options: ImportOptions,
        begun: datetime | None,
        changed: datetime | None,
    ) -> Session:
        ended = changed or begun
        return Session(
            id=self.derived_id(legacy_id),
            user_id=options.user_id,
            project_id=options.project_id,
            agent=options.agent,
            name=str(first(data, self.title_fields) or ""),
            summary=data["summary"] if isinstance(data.get("summary"), str) and data["summary"] else None,
            metadata={"external_id": legacy_id},
            context_json={IMPORT: {"system": self.name}},
            ended_at=ended,
            is_active=False,
            **time_fields(begun or changed, ended, active=True),
        )

    def _memories(
        self, row: Row, session: Session, turns: Sequence[Turn], options: ImportOptions, is_dated: bool
    ) -> Iterator[Found]:
        last = session.created_at
        for number, turn in enumerate(turns):
            try:
                said_at = moment("the time of the message", turn.said_at, options.zone)
                # A turn without a time follows the turn before it.
                last = created = said_at or last + timedelta(microseconds=1)
                # Without any time in the conversation, the turns have no date.
                is_dated = is_dated or said_at is not None
                memory = build_memory(
                    options,
                    system=self.name,
                    speaker=turn.speaker,
                    said_at=created if is_dated else None,
                    created_at=created,
                    id=self.derived_id(session.id, turn.id),
                    external_id=turn.id[:200],
                    session_id=session.id,
                    memory_type="conversation",
                    content=turn.text,
                    context_json={"position": number, "conversation": session.name, **turn.details},
                )
                yield Item(memory)
            except (RowRefused, ValidationError) as exc:
                yield Rejected(f"{row.where}, message {number + 1}", turn.id, str(exc))


_SPEAKERS = {"user": "user", "assistant": "assistant"}
_SAID = ("text", "multimodal_text")


class ChatGPT(ConversationExport):
    """ChatGPT: `conversations.json`, alone or in the archive; the current branch of the message tree is used."""

    name = "chatgpt"
    key = "id"
    fields = frozenset({"id", "conversation_id", "title", "mapping", "current_node", "create_time", "update_time"})
    title_fields = ("title",)
    id_fields = ("id", "conversation_id")
    created_fields = ("create_time",)
    changed_fields = ("update_time",)

    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | Skipped]:
        nodes = data.get("mapping")
        if not isinstance(nodes, Mapping):
            raise RowRefused("the conversation has no mapping of its messages")
        for node in _branch(nodes, data.get("current_node")):
            message = node.get("message")
            if isinstance(message, Mapping):
                yield _turn(message, str(message.get("id") or node.get("id")))


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """The nodes from the root to the current one; cycles are cut."""
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
    """If no current node is given: the leaf with the latest message."""
    leaves = [key for key, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")]
    return max(leaves, key=lambda key: (_time(nodes[key]), key), default=None)


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, Mapping) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _turn(message: Mapping[str, Any], message_id: str) -> Turn | Skipped:
    author, content = _inside(message, "author"), _inside(message, "content")
    metadata = _inside(message, "metadata")
    role, kind = author.get("role"), content.get("content_type")
    if role not in _SPEAKERS:
        return Skipped(f"{role or 'unknown'} messages")
    if metadata.get("is_visually_hidden_from_conversation"):
        return Skipped("hidden messages")
    if message.get("recipient") not in (None, "all"):
        return Skipped("calls of tools")
    if kind not in (None, *_SAID):
        return Skipped(f"{kind} messages")
    text = _text(content)
    if not text.strip():
        return Skipped("messages without text")
    details = {"model": metadata["model_slug"]} if isinstance(metadata.get("model_slug"), str) else {}
    return Turn(message_id, _SPEAKERS[role], text, message.get("create_time"), details)


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "")
    said = [part if isinstance(part, str) else _spoken(part) for part in parts]
    return "\n".join(text for text in said if text.strip())


def _spoken(part: Any) -> str:
    """The text of a part that is not plain text, such as transcribed speech."""
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _inside(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


_CLAUDE_SPEAKERS = {"human": "user", "user": "user", "assistant": "assistant"}


class Claude(ConversationExport):
    """Claude: `conversations.json`, alone or in the archive."""

    name = "claude"
    key = "uuid"
    fields = frozenset({"uuid", "name", "chat_messages", "created_at", "updated_at", "account"})
    title_fields = ("name",)
    id_fields = ("uuid",)
    created_fields = ("created_at",)
    changed_fields = ("updated_at",)

    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | Skipped]:
        messages = data.get("chat_messages")
        if not isinstance(messages, list):
            raise RowRefused("the conversation has no chat_messages")
        for number, message in enumerate(messages):
            if isinstance(message, Mapping):
                yield _claude_turn(message, str(message.get("uuid") or number))
            else:
                yield Skipped("messages that are not objects")


def _claude_turn(message: Mapping[str, Any], message_id: str) -> Turn | Skipped:
    sender = message.get("sender")
    if sender not in _CLAUDE_SPEAKERS:
        return Skipped(f"{sender or 'unknown'} messages")
    text = "\n\n".join(part for part in (_claude_text(message), *_pasted(message)) if part.strip())
    files = [name for name in _file_names(message) if name]
    if not text.strip():
        return Skipped("messages without text")
    return Turn(
        message_id, _CLAUDE_SPEAKERS[str(sender)], text, message.get("created_at"), {"files": files} if files else {}
    )


def _claude_text(message: Mapping[str, Any]) -> str:
    """The text of a message, without tool calls and results."""
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
    """Text attachments, which is how Claude stores long pasted texts."""
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
