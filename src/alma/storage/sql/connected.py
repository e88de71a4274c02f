"""A transaction on an open connection: three ways to run a statement, and what is said with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from alma.model.governance import Attribution
from alma.model.query import Predicate
from alma.model.record import RecordSpec
from alma.storage.sql.statements import Dialect
from alma.storage.transaction import Transaction

_MOST_CONDITIONS = 64


class Connected(Transaction):
    """A transaction on an open connection."""

    # From how many ids on it is cheaper to ask for the newest stored one before asking for each.
    worth_a_look = 32

    def __init__(
        self, dialect: Dialect, by: Attribution, embedding_dim: int, embedding_model: str, *, writable: bool
    ) -> None:
        super().__init__(by, embedding_dim, embedding_model, writable=writable)
        self.dialect = dialect
        self.names = dialect.names
        self._conditions: dict[tuple[str, int], tuple[Predicate, str, dict[str, Any]]] = {}

    @abstractmethod
    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Run a statement and fetch every row."""

    @abstractmethod
    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        """Run a statement; returns how many rows it touched."""

    @abstractmethod
    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with positional parameters once for each row."""

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write new rows; a database may know a faster way to write many."""
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {self.placeholders(len(columns))}", rows)

    def placeholders(self, count: int) -> str:
        """So many positional parameters in brackets, for `run_many`."""
        return f"({', '.join([self.names.mark] * count)})"

    @abstractmethod
    def _among(self, name: str) -> str:
        """The condition that a column is in the list bound to this name."""

    @abstractmethod
    def _listed(self, keys: Sequence[str]) -> Any:
        """A list of ids as a parameter of `_among`."""

    def condition_of(self, spec: RecordSpec, where: Predicate) -> tuple[str, dict[str, Any]]:
        """The SQL and parameters of a predicate, written once for as long as the same object is asked for."""
        key = (spec.kind, id(where))
        known = self._conditions.get(key)
        if known is None:
            if len(self._conditions) >= _MOST_CONDITIONS:
                self._conditions.clear()
            known = self._conditions[key] = (where, *self.dialect.kind(spec).condition(where))
        return known[1], known[2]

    def _all_newer(self, table: str, column: str, keys: Collection[str]) -> bool:
        """Whether all of these ids sort behind every stored one, as ids made by the clock do: then none exists yet."""
        if len(keys) < self.worth_a_look:
            return False
        newest = self.rows(f'SELECT max("{column}") FROM "{table}"', {})[0][0]
        return newest is None or min(keys) > newest
