"""Google ADK: a memory service that keeps events and memories of users in ALMA."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from alma.clock import new_id
from alma.errors import MissingDependencyError
from alma.integration.documents import Document, Documents, Kept

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
except ModuleNotFoundError as exc:
    raise MissingDependencyError("google-adk", "google-adk") from exc

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from alma.core import ALMA

__all__ = ["ALMAMemoryService"]

_MOST = 10


class ALMAMemoryService(BaseMemoryService):
    """A memory service of Google ADK: `Runner(..., memory_service=ALMAMemoryService(memory))`.

    Events are memories of the project, apart for each application and user; secrets in them are masked. An event that
    is added again is stored once; one that was deleted is not added again. A search answers by meaning and by words.
    """

    def __init__(self, alma: ALMA, *, agent: str | None = None) -> None:
        self._documents = Documents(alma, "google-adk", "event", agent=agent)

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events that have content."""
        folder = (app_name, user_id)
        about = {"session_id": session_id, **(custom_metadata or {})}
        made = [
            _document(
                (*folder, event.id),
                event.content,
                event.author,
                datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
                about,
            )
            for event in events
            if event.content and event.content.parts
        ]
        await asyncio.to_thread(self._documents.put_new, made)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories; one with a known id replaces the stored one."""
        made = [
            _document(
                (app_name, user_id, each.id or new_id()),
                each.content,
                each.author,
                each.timestamp,
                {**each.custom_metadata, **(custom_metadata or {})},
            )
            for each in memories
        ]
        await asyncio.to_thread(self._documents.put, made)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The relevant memories, best first."""
        found = await asyncio.to_thread(self._documents.relevant, query, (app_name, user_id), _MOST)
        return SearchMemoryResponse(memories=[_entry(each) for each in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory; it can be restored until a purge."""
        if memory_id:
            await asyncio.to_thread(self._documents.put, [], [(app_name, user_id, memory_id)])


def _document(
    path: tuple[str, ...], content: Any, author: str | None, timestamp: str | None, about: Mapping[str, object]
) -> Document:
    shown = content.model_dump(mode="json", exclude_none=True)
    payload = {"content": shown, "author": author, "timestamp": timestamp, "custom_metadata": dict(about)}
    # What tools returned is not trusted, and not searched.
    text = "\n".join(part.text for part in content.parts or [] if part.text and not part.thought)
    return Document(path, payload, [text or "(event without text)"], embed=bool(text), title=author or "")


def _entry(kept: Kept) -> MemoryEntry:
    return MemoryEntry.model_validate({"id": kept.path[-1], **kept.payload})
