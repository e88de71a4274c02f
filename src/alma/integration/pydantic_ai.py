"""Pydantic AI: a store of conversations that keeps their messages in ALMA."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alma.errors import MissingDependencyError, NotFoundError
from alma.integration.documents import Change, Document, Documents, Reader
from alma.integration.signals import TaskSignals, Told

try:
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
except ModuleNotFoundError as exc:
    raise MissingDependencyError("pydantic-ai", "pydantic-ai") from exc

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMAConversationStore"]

_RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)
_ENTRIES: TypeAdapter[ConversationEntry] = TypeAdapter(ConversationEntry)
_SAID = ("user-prompt", "text")
_MOST_ENTRIES_READ = 50


class ALMAConversationStore(ConversationStore):
    """A `ConversationStore` of Pydantic AI: `await store.save(await agent.run(prompt, conversation=...))`.

    Each message is a memory of the project, found by what people and models say in it; secrets are masked. What is
    deleted can be restored until a purge.
    """

    def __init__(self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None) -> None:
        self._documents = Documents(alma, "pydantic-ai", "conversation", user_id=user_id, agent=agent)
        self._signals = TaskSignals(alma, agent)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        path = ("record", conversation_id)
        found = await asyncio.to_thread(self._documents.read, lambda reader: reader.get([path]).get(path))
        return None if found is None else _RECORDS.validate_python(found.payload)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        found = await asyncio.to_thread(self._documents.read, lambda reader: reader.within(("record",)))
        records = [_RECORDS.validate_python(each.payload) for each in found]
        kept = [record for record in records if scope is None or record.scope == scope]
        return sorted(kept, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        made = [_entry_document(entry) for entry in new_entries]
        new = {entry.id for entry in new_entries}
        path = ("record", record.conversation_id)
        kept = Document(path, _RECORDS.dump_python(record, mode="json"), [record.conversation_id], embed=False)

        def write(reader: Reader) -> Change[None]:
            _require_revision(reader, record.conversation_id, expected_revision)
            head = ("entry", record.head_id or "")
            if record.head_id is not None and record.head_id not in new and not reader.get([head]):
                raise ConversationConflict(record.conversation_id)
            return Change(None, [*made, kept])

        await asyncio.to_thread(self._documents.change, write)
        if self._signals.are_used:
            await asyncio.to_thread(self._observe, new_entries)

    def _observe(self, entries: Sequence[ConversationEntry]) -> None:
        """Store what new entries tell about the task that the user named before them."""
        told = [each for entry in entries for each in _told(_ENTRIES.dump_python(entry, mode="json"))]
        before = entries[0].parent_id if entries else None
        task = self._documents.read(lambda reader: _last_prompt(reader, before))
        self._signals.observe(told, task)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        def delete(reader: Reader) -> Change[None]:
            _require_revision(reader, conversation_id, expected_revision)
            path = ("record", conversation_id)
            parents = {each.path[1]: each.payload["parent_id"] for each in reader.within(("entry",))}
            others = [each.payload for each in reader.within(("record",)) if each.path != path]
            reached = {*_reached(others, parents)}
            return Change(None, [], [path, *(("entry", each) for each in sorted({*parents} - reached))])

        await asyncio.to_thread(self._documents.change, delete)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        path = ("entry", entry_id)
        found = await asyncio.to_thread(self._documents.read, lambda reader: reader.get([path]).get(path))
        if found is None:
            raise NotFoundError("entry", entry_id)
        return _ENTRIES.validate_python(found.payload)


def _require_revision(reader: Reader, conversation_id: str, expected: str | None) -> None:
    path = ("record", conversation_id)
    stored = reader.get([path]).get(path)
    if (None if stored is None else stored.payload["revision"]) != expected:
        raise ConversationConflict(conversation_id)


def _reached(records: Sequence[Mapping[str, Any]], parents: Mapping[str, str | None]) -> Iterator[str]:
    """The entries in the histories and branches of records."""
    seen: set[str] = set()
    for record in records:
        for tip in (record["head_id"], *record["branches"]):
            entry = tip
            while entry is not None and entry not in seen:
                seen.add(entry)
                yield entry
                entry = parents.get(entry)


def _entry_document(entry: ConversationEntry) -> Document:
    payload = _ENTRIES.dump_python(entry, mode="json")
    # What tools returned is not trusted, and not searched.
    parts = [part for part in payload["message"]["parts"] if part.get("part_kind") in _SAID]
    text = "\n".join(_text(part["content"]) for part in parts).strip()
    speaker = "user" if payload["message"].get("kind") == "request" else "assistant"
    return Document(("entry", entry.id), payload, [text or f"({speaker})"], embed=bool(text), title=speaker)


def _told(entry: Mapping[str, Any]) -> Iterator[Told]:
    """What an entry tells about a task: the prompts of the user, and which calls of tools failed."""
    for part in entry["message"]["parts"]:
        kind = part.get("part_kind")
        if kind == "user-prompt":
            yield Told(_text(part["content"]))
        elif kind == "tool-return":
            yield Told(succeeded={"success": True, "failed": False}.get(part.get("outcome")))
        elif kind == "retry-prompt" and part.get("tool_name"):
            yield Told(succeeded=False)


def _last_prompt(reader: Reader, entry_id: str | None) -> str:
    """What the user said last, up to an entry."""
    for _ in range(_MOST_ENTRIES_READ):
        path = ("entry", entry_id or "")
        found = reader.get([path]).get(path) if entry_id is not None else None
        if found is None:
            return ""
        prompts = [each.prompt for each in _told(found.payload) if each.prompt]
        if prompts:
            return prompts[-1]
        entry_id = found.payload["parent_id"]
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(each for each in content if isinstance(each, str))
