"""contextual_memory_pc2: a row is a context with tags and an embedding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from alma.importers.base import Found, Importer, ImportOptions, Item, Row, RowRefused
from alma.importers.records import build_memory, mentioned_session
from alma.importers.values import json_object, mapping, maybe_named, moment, named, tags, text_of, vector


class ContextualMemory(Importer):
    """context_id → the id of a memory; context_data → its content; embedding → its vector; the rest by name."""

    name = "contextual_memory_pc2"
    key = "context_id"
    fields = frozenset(
        {"context_id", "session_id", "context_data", "embedding", "created_at", "expires_at", "source_agent", "tags"}
    )

    def __init__(self) -> None:
        self._last: Item | None = None

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under is not None and not row.listed:
            data.setdefault("context_id", row.under)
        context_id = named("context_id", data.get("context_id"))
        content = json_object("context_data", data.get("context_data"))
        if not content:
            raise RowRefused("context_data is missing")
        session_id = maybe_named("session_id", data.get("session_id"))
        created = moment("created_at", data.get("created_at"), options.zone)
        memory = build_memory(
            options,
            system=self.name,
            id=context_id,
            external_id=context_id,
            session_id=session_id,
            memory_type=maybe_named("memory_type", data.get("memory_type")) or "context",
            content=text_of(content),
            content_json=content,
            source_agent=maybe_named("source_agent", data.get("source_agent")),
            user_id=maybe_named("user_id", data.get("user_id")),
            tags=tags(data.get("tags")),
            created_at=created,
            expires_at=moment("expires_at", data.get("expires_at"), options.zone),
            **_priority(data),
        )
        embedding = vector(data.get("embedding"))
        model = maybe_named("embedding_model", data.get("embedding_model")) or options.embedding_model or self.name
        if session_id is not None:
            yield self._session(session_id, options, created)
        yield Item(memory, {} if embedding is None else {model: embedding})

    def _session(self, session_id: str, options: ImportOptions, created: datetime | None) -> Item:
        """The session that a row names; rows of a session mostly follow each other, so the last one is cached."""
        if self._last is None or self._last.record.key != session_id:
            self._last = mentioned_session(session_id, options, self.name, created)
        return self._last


def _priority(data: Mapping[str, Any]) -> dict[str, Any]:
    return {} if data.get("priority") is None else {"priority": data["priority"]}
