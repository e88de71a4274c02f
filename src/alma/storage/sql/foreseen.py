"""Foreseen fields: what will be asked about the records that searches find is read while these are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from alma.model.query import And, In, Predicate
from alma.model.record import RecordSpec
from alma.storage.primitives import Query

Row = Sequence[Any]


class Foreseen:
    """Some columns of the records of a kind that were found so far, by the scope in which they were.

    A search selects so many columns of its own before them; the second of these is the key, which is not read twice.
    """

    def __init__(
        self, spec: RecordSpec, names: Sequence[str], columns: Callable[[Sequence[str]], str], own: int
    ) -> None:
        self.names = tuple(names)
        self._key = spec.key
        self._key_first = names[0] == spec.key and len(names) > 1
        self.columns = columns(names[1:] if self._key_first else names)
        self._own = own
        self._rows: dict[Predicate, dict[str, Row]] = {}

    def found(self, where: Predicate, rows: Sequence[Row]) -> None:
        """Keep what a search selected of records that fulfil its predicate."""
        if scope := _scope_of(where):
            self._rows.setdefault(scope, {}).update(zip(map(itemgetter(1), rows), rows, strict=True))

    def split(self, query: Query, names: Sequence[str]) -> tuple[dict[str, Row], list[str]] | None:
        """The rows that answer a question already and the keys of the others; None for a question of another kind."""
        scope, asked = _scope_of(query.where), _asked(query, self._key)
        if scope is None or asked is None or self.names != tuple(names):
            return None
        known, own = self._rows.get(scope, {}), self._own
        if self._key_first:
            found: dict[str, Row] = {key: (key, *known[key][own:]) for key in asked if key in known}
        else:
            found = {key: known[key][own:] for key in asked if key in known}
        return found, [key for key in asked if key not in found] if len(found) < len(asked) else []


def _scope_of(where: Predicate) -> Predicate | None:
    """The scope of a question, the first of its two parts."""
    return where.parts[0] if isinstance(where, And) and len(where.parts) == 2 else None


def _asked(query: Query, key: str) -> Sequence[str] | None:
    """The keys that a question asks for, where it asks for nothing else."""
    if query.order or query.limit is not None or query.after is not None or not isinstance(query.where, And):
        return None
    wanted = query.where.parts[-1]
    return wanted.values if isinstance(wanted, In) and wanted.field == key else None
