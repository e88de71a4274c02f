"""Objects of programs written for alma-memory 0.4 that have the named methods of its stores, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend, Transaction
from alma.storage.in_memory import InMemoryStorage

LESSONS: tuple[type[Record], ...] = (Heuristic, Outcome, DomainKnowledge, AntiPattern)
Encode = Callable[[list[str]], Iterable[Vector]]
_MOST = 10_000
_READ: Mapping[type[Record], tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        Heuristic: ("get_heuristics", {"min_confidence": 0.0}),
        Outcome: ("get_outcomes", {"success_only": False}),
        DomainKnowledge: ("get_domain_knowledge", {}),
        AntiPattern: ("get_anti_patterns", {}),
    }
)


def has_only_named_methods(storage: object) -> bool:
    """Whether it is not a store of ours, but lessons can be read from it by the named methods."""
    named = (callable(getattr(storage, name, None)) for name, _ in _READ.values())
    return not isinstance(storage, StorageBackend) and all(named)


def store_of(
    storage: Any, project_id: str, agent: str | None = None, kinds: Iterable[type[Record]] = LESSONS
) -> StorageBackend:
    """The store itself, or a copy in memory of what one with named methods alone has of a project."""
    if not has_only_named_methods(storage):
        return storage  # type: ignore[no-any-return]
    copy = InMemoryStorage()
    for cls in kinds:
        copy.save_many(_read(storage, cls, project_id, agent))
    return copy


def _read(storage: Any, cls: type[Record], project_id: str, agent: str | None) -> list[Any]:
    """At most 10,000 records, without their vectors, which are those of another model."""
    name, options = _READ[cls]
    found = getattr(storage, name)(project_id=project_id, agent=agent, top_k=_MOST, **options)
    return [record.replace(embedding=None) for record in found]


class NamedMethodsStorage(InMemoryStorage):
    """A copy in memory of a store with named methods alone, brought up to date before it is searched."""

    def __init__(self, source: Any, embedding_dim: int, embedding_model: str, encode: Encode) -> None:
        super().__init__(embedding_dim, embedding_model)
        self._source = source
        self._encode = encode
        self._copied: dict[tuple[str, str | None, str | None], dict[tuple[type[Record], str], Record]] = {}

    def refresh(self, project_id: str, agents: Iterable[str], user_id: str | None) -> None:
        """Copy what the source has now of these agents and this user, where it differs from the last copy."""
        for agent in agents:
            found = [record for cls in LESSONS for record in _read(self._source, cls, project_id, agent)]
            self._copy((project_id, agent, None), found)
        if user_id is not None:
            found = [each.replace(embedding=None) for each in self._source.get_user_preferences(user_id=user_id)]
            self._copy((project_id, None, user_id), found)

    def _copy(self, place: tuple[str, str | None, str | None], records: list[Any]) -> None:
        before, found = self._copied.get(place, {}), {(type(record), str(record.key)): record for record in records}
        if found == before:
            return
        new = [record for key, record in found.items() if before.get(key) != record]
        vectors = self._encode([record.embedded_text() for record in new])
        embedded = [record.replace(embedding=vector) for record, vector in zip(new, vectors, strict=True)]

        def change(tx: Transaction) -> None:
            for cls, key in before.keys() - found.keys():
                tx.delete(cls, [key], Scope.everywhere())
            tx.save(*embedded)

        self.write(change)
        self._copied[place] = found
