"""The MCP memory server's `memory.json`: a knowledge graph with one entity or relation per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alma.importers.base import Found, Importer, ImportOptions, Row, RowRefused
from alma.importers.records import entity_memory, relation_item
from alma.importers.values import mapping, structured, text_of

_UNDER = {"entities": "entity", "relations": "relation"}


class McpMemory(Importer):
    """Entities become memories with their observations, and relations become relationships."""

    name = "mcp-memory"
    fields = frozenset({"type", "name", "entityType", "observations", "from", "to", "relationType"})
    # A relation may come before its entities.
    stages = ("entity", "relation")

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        what = data.get("type") or _UNDER.get(row.under or "")
        if what not in _UNDER.values():
            if stage == self.stages[0]:
                raise RowRefused(f"it is neither an entity nor a relation but {what!r}")
            return
        if what != stage:
            return
        if what == "entity":
            observations = [text_of(each) for each in _listed(data, "observations")]
            kind = data.get("entityType")
            yield entity_memory(
                self, str(data.get("name") or ""), options, str(kind) if kind else "entity", observations
            )
        else:
            ends = [data.get(name) for name in ("from", "relationType", "to")]
            if any(not isinstance(end, str) or not end for end in ends):
                raise RowRefused("a relation needs from, relationType and to")
            yield relation_item(self, str(ends[0]), str(ends[1]), str(ends[2]))


def _listed(data: Mapping[str, Any], name: str) -> list[Any]:
    found = structured(name, data.get(name))
    if found is None:
        return []
    if not isinstance(found, list):
        raise RowRefused(f"{name} must be a list")
    return found
