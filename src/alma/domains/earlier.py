"""The calls of alma-memory 0.4 on a domain schema, which fill it in step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alma.arguments import renamed

EARLIER_FIELDS = {
    "min_occurrences_for_heuristic": "min_occurrences",
    "id": None,
    "confidence_decay_days": None,
    "created_at": None,
    "updated_at": None,
}
"""The earlier names of a schema's fields; those with None say nothing here."""

with_present_names = renamed(EARLIER_FIELDS)


class EarlierSchema:
    """The calls under other names. What is added changes this object only; `register_schema` keeps it."""

    __slots__ = ()

    @classmethod
    def create(
        cls,
        name: str,
        description: str = "",
        learning_categories: Sequence[str] = (),
        excluded_categories: Sequence[str] = (),
    ) -> Any:
        """A new schema to fill in."""
        fields: dict[str, Any] = {"description": description, "learning_categories": learning_categories or ()}
        return cls(name=name, excluded_categories=excluded_categories or (), **fields)  # type: ignore[call-arg]

    @property
    def id(self: Any) -> str:
        """The name, which identifies a schema."""
        return str(self.name)

    @property
    def min_occurrences_for_heuristic(self: Any) -> int:
        """How often a strategy must occur before it becomes a heuristic."""
        return int(self.min_occurrences)

    def add_entity_type(
        self,
        name: str,
        description: str = "",
        attributes: Sequence[str] | None = None,
        required_attributes: Sequence[str] | None = None,
    ) -> Any:
        """Add an entity type, and return it."""
        lists = {"attributes": attributes or (), "required_attributes": required_attributes or ()}
        return self._added("entity_types", {"name": name, "description": description, **lists})

    def add_relationship_type(self, name: str, description: str, source_type: str, target_type: str) -> Any:
        """Add a relationship type, and return it; `validate` says whether its ends are described."""
        ends = {"source_type": source_type, "target_type": target_type}
        return self._added("relationship_types", {"name": name, "description": description, **ends})

    def add_learning_category(self, category: str) -> None:
        """Let agents learn in a category."""
        self._added("learning_categories", category)

    def add_excluded_category(self: Any, category: str) -> None:
        """Let no agent learn in a category."""
        learned = [each for each in self.learning_categories if each != category]
        object.__setattr__(self, "learning_categories", tuple(learned))
        self._added("excluded_categories", category)

    def is_category_allowed(self: Any, category: str) -> bool:
        """Whether an agent of the domain may learn in a category."""
        return bool(self.scope_of(self.name).is_allowed(category))

    def _added(self: Any, field: str, value: Any) -> Any:
        known = getattr(self, field)
        if value not in known:
            object.__setattr__(self, field, self.checked_list(field, [*known, value]))
        return getattr(self, field)[-1]
