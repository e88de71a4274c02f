"""The knowledge graph of the MCP reference server "memory": entities with observations, and relations between them.

Every entity and every relation is a memory. Calls answer as those of the reference server, in its order and with its
duplicates; `load` and `dump` exchange its file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from alma.clock import new_id
from alma.errors import NotFoundError, ValidationError
from alma.integration.documents import BY_ID, Change, Document, Documents, Path, Reader
from alma.model.fields import JsonObject

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["KnowledgeGraph", "checked_file"]

R = TypeVar("R")
_ENTITY, _RELATION = "entity", "relation"
_FIELDS = {_ENTITY: ("name", "entityType", "observations"), _RELATION: ("from", "to", "relationType")}


class KnowledgeGraph:
    """The graph of a project; the methods are the tools of the reference server, with its JSON."""

    def __init__(self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None) -> None:
        self._documents = Documents(alma, "server-memory", "knowledge", user_id=user_id, agent=agent)

    # ------------------------------------------------------------------ the nine tools

    def create_entities(self, entities: Sequence[JsonObject]) -> list[JsonObject]:
        """Add the entities whose names are new; returns them."""
        return self._add(_ENTITY, entities, lambda entity: entity["name"])

    def create_relations(self, relations: Sequence[JsonObject]) -> list[JsonObject]:
        """Add the relations that are new; returns them."""
        return self._add(_RELATION, relations, _ends)

    def add_observations(self, observations: Sequence[JsonObject]) -> list[JsonObject]:
        """Add observations to entities; an unknown entity is an error, and nothing is added."""
        asked = self._clean(observations)

        def add(graph: _Graph) -> list[JsonObject]:
            return [{"entityName": each["entityName"], "addedObservations": graph.observe(each)} for each in asked]

        return self._change(add)

    def delete_entities(self, entity_names: Sequence[str]) -> None:
        """Delete entities with their relations."""
        names = set(self._clean(entity_names))

        def delete(graph: _Graph) -> None:
            graph.delete(lambda kind, each: each["name"] in names if kind == _ENTITY else _touches(each, names))

        self._change(delete)

    def delete_observations(self, deletions: Sequence[JsonObject]) -> None:
        """Delete observations from entities."""
        asked = self._clean(deletions)

        def delete(graph: _Graph) -> None:
            for each in asked:
                graph.forget(each)

        self._change(delete)

    def delete_relations(self, relations: Sequence[JsonObject]) -> None:
        """Delete relations."""
        gone = {_ends(each) for each in self._clean(relations)}
        self._change(lambda graph: graph.delete(lambda kind, each: kind == _RELATION and _ends(each) in gone))

    def read_graph(self) -> JsonObject:
        """All entities and relations, in the order in which they were added."""
        return self._documents.read(_Graph).shown()

    def search_nodes(self, query: str) -> JsonObject:
        """The entities with this text in name, type or observations, and the relations from or to them."""
        sought = query.lower()
        return self._chosen(
            lambda each: any(
                sought in text.lower() for text in (each["name"], each["entityType"], *each["observations"])
            )
        )

    def open_nodes(self, names: Sequence[str]) -> JsonObject:
        """The entities with these names, and the relations from or to them."""
        return self._chosen(lambda each: each["name"] in names)

    # ------------------------------------------------------------------ memory.json

    def load(self, file: str | FilePath) -> tuple[int, int]:
        """Add what a file of the reference server has and the graph has not; returns how many of each.

        A line that is neither an entity nor a relation is refused with its number, and then nothing is added.
        """
        read = checked_file(file)
        entities = self.create_entities([each for kind, each in read if kind == _ENTITY])
        relations = self.create_relations([each for kind, each in read if kind == _RELATION])
        return len(entities), len(relations)

    def dump(self) -> str:
        """The text of the reference server's file."""
        graph = self._documents.read(_Graph)
        lines = ({"type": kind, **each} for kind, each in graph.each())
        return "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)

    # ------------------------------------------------------------------ internals

    def _add(self, kind: str, given: Sequence[JsonObject], key: Callable[[JsonObject], object]) -> list[JsonObject]:
        asked = [{name: each[name] for name in _FIELDS[kind]} for each in self._clean(given)]
        # The ids are the same each time the change is planned, and sorted as the entries are.
        first = new_id()

        def add(graph: _Graph) -> list[JsonObject]:
            known = {key(each) for each in graph.of(kind)}
            new = [each for each in asked if key(each) not in known]
            graph.add({(kind, f"{first}{place:06d}"): each for place, each in enumerate(new)})
            return new

        return self._change(add)

    def _change(self, change: Callable[[_Graph], R]) -> R:
        def plan(reader: Reader) -> Change[R]:
            graph = _Graph(reader)
            result = change(graph)
            return Change(result, [_document(path, graph.nodes[path]) for path in graph.changed], graph.gone)

        return self._documents.change(plan)

    def _chosen(self, is_chosen: Callable[[JsonObject], bool]) -> JsonObject:
        graph = self._documents.read(_Graph)
        entities = [each for each in graph.of(_ENTITY) if is_chosen(each)]
        names = {each["name"] for each in entities}
        return {"entities": entities, "relations": [each for each in graph.of(_RELATION) if _touches(each, names)]}

    def _clean(self, given: Sequence[Any]) -> list[Any]:
        """Arguments without secrets, as what they are compared with."""
        clean: list[Any] = self._documents.masked(list(given))
        return clean


class _Graph:
    """The graph as it was read, and what a change does to it."""

    def __init__(self, reader: Reader) -> None:
        found = sorted(reader.within(order=BY_ID), key=lambda each: each.path)
        self.nodes = {each.path: each.payload for each in found}
        self.changed: dict[Path, None] = {}
        self.gone: list[Path] = []

    def each(self) -> Iterator[tuple[str, JsonObject]]:
        return ((path[0], node) for path, node in self.nodes.items())

    def of(self, kind: str) -> list[JsonObject]:
        return [node for each, node in self.each() if each == kind]

    def shown(self) -> JsonObject:
        return {"entities": self.of(_ENTITY), "relations": self.of(_RELATION)}

    def add(self, nodes: Mapping[Path, JsonObject]) -> None:
        self.nodes |= nodes
        self.changed |= dict.fromkeys(nodes)

    def observe(self, asked: JsonObject) -> list[str]:
        path = self._entity(asked["entityName"])
        if path is None:
            raise NotFoundError("entity", asked["entityName"])
        known = self.nodes[path]["observations"]
        new = [text for text in asked["contents"] if text not in known]
        if new:
            self.add({path: {**self.nodes[path], "observations": [*known, *new]}})
        return new

    def forget(self, asked: JsonObject) -> None:
        path = self._entity(asked["entityName"])
        if path is None:
            return
        left = [text for text in self.nodes[path]["observations"] if text not in asked["observations"]]
        if left != self.nodes[path]["observations"]:
            self.add({path: {**self.nodes[path], "observations": left}})

    def delete(self, is_gone: Callable[[str, JsonObject], bool]) -> None:
        self.gone += [path for path, node in self.nodes.items() if is_gone(path[0], node)]

    def _entity(self, name: str) -> Path | None:
        return next((path for path, node in self.nodes.items() if path[0] == _ENTITY and node["name"] == name), None)


def _ends(relation: JsonObject) -> tuple[str, ...]:
    return tuple(relation[name] for name in _FIELDS[_RELATION])


def _touches(relation: JsonObject, names: Iterable[str]) -> bool:
    return relation["from"] in names or relation["to"] in names


def _document(path: Path, node: JsonObject) -> Document:
    if path[0] == _RELATION:
        text = f"{node['from']} {node['relationType']} {node['to']}"
        return Document(path, node, [text])
    text = "\n".join((f"{node['name']} ({node['entityType']})", *node["observations"]))
    return Document(path, node, [text], title=node["name"])


# ---------------------------------------------------------------------- the file


def checked_file(file: str | FilePath) -> list[tuple[str, JsonObject]]:
    """The entities and relations in a file of the reference server."""
    # As the reference server: other line breaks than LF are part of a text.
    lines = enumerate(_text_of(file).split("\n"), 1)
    return [_parsed(number, line) for number, line in lines if line.strip()]


def _text_of(file: str | FilePath) -> str:
    try:
        return FilePath(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ValidationError("memory.json", None, str(file), f"cannot be read: {exc}") from None


def _parsed(number: int, line: str) -> tuple[str, JsonObject]:
    try:
        read = json.loads(line)
    except ValueError as exc:
        raise ValidationError("memory.json", f"line {number}", line[:80], f"is not JSON: {exc}") from None
    kind = read.get("type") if isinstance(read, dict) else None
    if kind not in _FIELDS:
        raise ValidationError("memory.json", f"line {number}", line[:80], "must be of the type entity or relation")
    node = {name: read.get(name) for name in _FIELDS[kind]}
    for name, value in node.items():
        texts = value if name == "observations" and isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise ValidationError("memory.json", f"line {number}", value, f"needs {name} as text")
    return kind, node
