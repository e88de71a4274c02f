"""Strands Agents: a memory store that keeps its entries in ALMA."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from alma.clock import new_id
from alma.errors import MissingDependencyError
from alma.integration.documents import Document, Documents, Kept
from alma.model.common import checked_name, checked_whole

try:
    from strands.memory.types import AddMessagesContext, MemoryEntry, MemoryStore, Metadata, SearchOptions
    from strands.types.content import Message
except ModuleNotFoundError as exc:
    raise MissingDependencyError("strands-agents", "strands") from exc

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig

    from alma.core import ALMA

__all__ = ["ALMAMemoryStore"]

_MOST = 10


class ALMAMemoryStore(MemoryStore):
    """A memory store of Strands: `Agent(..., memory_manager=MemoryManager(stores=[ALMAMemoryStore(memory)]))`.

    Entries are memories of the project; secrets in them are masked. A search answers by meaning and by words, and finds
    nothing where nothing is relevant. With `extraction` the manager passes the conversation, and what the user and
    the model say is stored.
    """

    def __init__(
        self,
        alma: ALMA,
        *,
        name: str = "alma",
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        agent: str | None = None,
    ) -> None:
        self.name = checked_name("strands", "name", name)
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._documents = Documents(alma, "strands", "note", agent=agent)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The entries that are relevant to the query, best first."""
        most = (options or {}).get("max_search_results") or self.max_search_results or _MOST
        limit = checked_whole("strands", "max_search_results", most, 1, 100)
        found = await asyncio.to_thread(self._documents.relevant, query, (self.name,), limit)
        return [_entry(each) for each in found]

    async def add(self, content: str, metadata: Metadata | None = None) -> str:
        """Store an entry; returns its id."""
        path = (self.name, new_id())
        document = Document(path, {"content": content, "metadata": metadata or {}}, [content])
        await asyncio.to_thread(self._documents.put, [document])
        return path[-1]

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Store what the user and the model say in messages."""
        said = [(message["role"], text) for message in messages if (text := _text(message))]
        documents = [
            Document((self.name, new_id()), {"content": text, "metadata": {"role": role}}, [text], title=role)
            for role, text in said
        ]
        await asyncio.to_thread(self._documents.put, documents)


def _text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text")).strip()


def _entry(kept: Kept) -> MemoryEntry:
    metadata = {**kept.payload["metadata"], "id": kept.path[-1], "score": kept.score}
    return MemoryEntry(content=kept.payload["content"], metadata=metadata)
