"""Measure this repository's storage in one folder or database; `storage.py` starts it once per round."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import Any

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.sqlite.connections import Durability
from alma.storage.sqlite_local import SQLiteStorage
from measuring import Measurements, Pace, load, save_singly, steps
from places import Place, place_at
from turns import driver_arguments, take_turns, write
from workload import DIMS, NEIGHBOURS, PROJECT, Fact, Floats, Workload

_BATCH_ROWS = 10_000
_BEST_FIRST = (Order("confidence", "desc"),)
_SQLITE_CODE = "from alma.storage.sqlite_local import SQLiteStorage\nSQLiteStorage({target!r}).close()"
_POSTGRES_CODE = "from alma.storage.postgresql import PostgreSQLStorage\nPostgreSQLStorage.from_dsn({target!r}).close()"


class Heuristics:
    """Our storage, filled with heuristics."""

    gets_by_id = True

    def __init__(self, place: Place, durability: Durability = "process") -> None:
        self.place = place
        self.batch_rows = _BATCH_ROWS
        self.notes: list[str] = []
        self._durability = durability
        self._scope = Scope(project_id=PROJECT)

    @property
    def _on_server(self) -> bool:
        return self.place.target.startswith("postgresql://")

    def open(self) -> None:
        self._storage = self._opened()

    def _opened(self) -> StorageBackend:
        if not self._on_server:
            return SQLiteStorage(self.place.target, embedding_dim=DIMS, durability=self._durability)
        from alma.storage.postgresql import PostgreSQLStorage

        return PostgreSQLStorage.from_dsn(self.place.target, embedding_dim=DIMS)

    def close(self) -> None:
        self._storage.close()

    def opening_code(self) -> str:
        code = _POSTGRES_CODE if self._on_server else _SQLITE_CODE
        return code.format(target=self.place.target)

    def record(self, fact: Fact) -> Record:
        return Heuristic(
            id=fact.id,
            agent=fact.agent,
            project_id=PROJECT,
            condition=fact.condition,
            strategy=fact.strategy,
            confidence=fact.confidence,
            occurrence_count=10,
            success_count=7,
            last_validated=fact.moment,
            created_at=fact.moment,
            embedding=Vector(fact.vector),
        )

    def question(self, vector: Floats) -> Any:
        return vector

    def save_many(self, records: list[Record]) -> object:
        return self._storage.save_many(records)

    def save(self, record: Record) -> object:
        return self._storage.save(record)

    def get(self, record_id: str) -> object:
        return self._storage.get(Heuristic, record_id, self._scope)

    def find(self, agent: str) -> object:
        scope = Scope(project_id=PROJECT, agent=agent)
        return self._storage.find(Heuristic, scope, order=_BEST_FIRST, limit=NEIGHBOURS)

    def search(self, agent: str, question: Any) -> Sequence[str]:
        scope = Scope(project_id=PROJECT, agent=agent)
        hits = self._storage.search_vector(Heuristic, question, scope, limit=NEIGHBOURS)
        return [hit.record.id for hit in hits]


class GeneralMemories(Heuristics):
    """Our storage, filled with general memories of the same texts, owners and vectors."""

    def record(self, fact: Fact) -> Record:
        return Memory(
            id=fact.id,
            project_id=PROJECT,
            source_agent=fact.agent,
            title=fact.condition,
            content=fact.strategy,
            tags=("bench", fact.agent),
            importance_score=fact.confidence,
            layer_project=True,
            last_accessed_at=fact.moment,
            created_at=fact.moment,
            updated_at=fact.moment,
            embedding=Vector(fact.vector),
        )


def all_steps(found: Measurements, args: argparse.Namespace) -> Iterator[str]:
    """The measurements of every contender, then those of ours alone."""
    workload = Workload(args.count)
    yield from steps(found, Heuristics(place_at(args.place)), workload, math.inf)
    for _ in _general_memories(found, place_at(args.memory_place), workload):
        yield "extra"
    if args.power_place:
        for _ in _power_singles(found, place_at(args.power_place), workload):
            yield "extra"


def _general_memories(found: Measurements, place: Place, workload: Workload) -> Iterator[str]:
    """Load general memories into a separate store and measure its size."""
    contender, pace = GeneralMemories(place), Pace()
    contender.open()
    yield from load(pace, contender, workload)
    contender.close()
    found.memory_batch_per_second = pace.per_second
    found.memory_bytes_per_memory = place.closed_bytes() / pace.rows


def _power_singles(found: Measurements, place: Place, workload: Workload) -> Iterator[str]:
    """Time single saves that survive a power failure, in a new store."""
    contender, pace = Heuristics(place, durability="power"), Pace()
    contender.open()
    yield from save_singly(pace, contender, workload)
    contender.close()
    found.power_single_per_second = pace.per_second


def main() -> None:
    """Measure, and write the measurements to the given file."""
    parser = driver_arguments(__doc__)
    parser.add_argument("--memory-place", required=True, help="a second place, for general memories")
    parser.add_argument("--power-place", help="a third folder, for the durability that survives a power failure")
    args = parser.parse_args()
    found = Measurements()
    take_turns(all_steps(found, args))
    write(found, args.json)


if __name__ == "__main__":
    main()
