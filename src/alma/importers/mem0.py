"""Mem0: the result of `get_all()`, a list or an object with results and relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alma.importers.base import Found, Importer, ImportOptions, Item, Row, RowRefused
from alma.importers.records import IMPORT, build_memory, entity_items, mentioned_session
from alma.importers.values import first, json_object, mapping, maybe_named, moment, named, tags, text_of, vector

_TEXTS = ("memory", "data", "text", "content")


class Mem0(Importer):
    """Memories with user, agent, run, metadata, hash and times; relations become entities and relationships."""

    name = "mem0"
    key = "id"
    fields = frozenset(
        {"id", "memory", "hash", "metadata", "user_id", "agent_id", "run_id", "created_at", "updated_at"}
    )

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        if row.under in ("relations", "graph"):
            yield from self._relation(data, options)
            return
        if row.under is not None and not row.listed:
            data.setdefault("id", row.under)
        yield from self._memory({**_payload(data), **data}, options)

    def _memory(self, data: Mapping[str, Any], options: ImportOptions) -> Iterator[Found]:
        legacy_id = named("id", data.get("id"))
        created = moment("created_at", data.get("created_at"), options.zone)
        changed = moment("updated_at", data.get("updated_at"), options.zone)
        run = maybe_named("run_id", data.get("run_id"))
        metadata = json_object("metadata", data.get("metadata")) or {}
        details = {"system": self.name, **({"hash": data["hash"]} if data.get("hash") else {})}
        if run is not None:
            yield mentioned_session(run, options, self.name, created)
        memory = build_memory(
            options,
            system=self.name,
            id=self.derived_id(legacy_id),
            external_id=legacy_id[:200],
            user_id=maybe_named("user_id", data.get("user_id")),
            source_agent=maybe_named("agent_id", data.get("agent_id")),
            session_id=run,
            content=text_of(first(data, _TEXTS)),
            category=_category(metadata),
            tags=tags(data.get("categories")),
            context_json={IMPORT: details, **({"metadata": metadata} if metadata else {})},
            created_at=created,
            updated_at=changed or created,
            expires_at=moment("expiration_date", data.get("expiration_date"), options.zone),
        )
        embedding = vector(data.get("embedding") or data.get("vector"))
        model = options.embedding_model or self.name
        yield Item(memory, {} if embedding is None else {model: embedding}, changed_at=changed)

    def _relation(self, data: Mapping[str, Any], options: ImportOptions) -> Iterator[Found]:
        ends = first(data, ("source",)), first(data, ("target", "destination"))
        relation = first(data, ("relationship", "relation", "relation_type"))
        if None in (*ends, relation):
            raise RowRefused("a relation needs source, relationship and target")
        yield from entity_items(self, str(ends[0]), str(relation), str(ends[1]), options)


def _payload(data: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a row dumped from Mem0's vector store."""
    inside = data.get("payload")
    return dict(inside) if isinstance(inside, Mapping) else {}


def _category(metadata: Mapping[str, Any]) -> str | None:
    found = metadata.get("category")
    return found[:200] if isinstance(found, str) and found else None
