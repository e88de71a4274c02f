"""Measure the published alma-memory package in one place.

It runs with the Python of an environment that has that package installed, not with this repository's: the package is
imported as `alma`, too, so it is loaded by name at run time, where no type checker takes it for ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from measuring import Contender, Measurements, steps
from places import Place, place_at
from turns import driver_arguments, take_turns, write
from workload import DIMS, NEIGHBOURS, PROJECT, Fact, Floats, Workload

_BATCH_ROWS = 250
_SQLITE_CODE = "from alma.storage.sqlite_local import SQLiteStorage\nSQLiteStorage({target!r}, embedding_dim={dims})"
_POSTGRES_CODE = (
    "from alma.storage.postgresql import PostgreSQLStorage\nPostgreSQLStorage(**{arguments!r}, auto_migrate={migrate})"
)


class _Published:
    """Shared by both databases; the package has no call that gets a heuristic by id."""

    gets_by_id = False

    def __init__(self, place: Place) -> None:
        self.place = place
        # Small enough for the time limit to take effect; every vector is a transaction of its own anyway.
        self.batch_rows = _BATCH_ROWS
        self.notes: list[str] = []
        self._heuristic: Callable[..., Any] = importlib.import_module("alma.types").Heuristic
        self._storage: Any = None

    def record(self, fact: Fact) -> Any:
        return self._heuristic(
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
            embedding=fact.vector.tolist(),
        )

    def question(self, vector: Floats) -> Any:
        return vector.tolist()

    def save_many(self, records: list[Any]) -> object:
        return self._storage.save_heuristics(records)

    def save(self, record: Any) -> object:
        return self._storage.save_heuristic(record)

    def get(self, record_id: str) -> object:
        raise NotImplementedError("alma-memory has no call that gets a heuristic by its id")

    def find(self, agent: str) -> object:
        return self._storage.get_heuristics(PROJECT, agent=agent, top_k=NEIGHBOURS)

    def search(self, agent: str, question: Any) -> Sequence[str]:
        hits = self._storage.get_heuristics(PROJECT, agent=agent, embedding=question, top_k=NEIGHBOURS)
        return [hit.id for hit in hits]


class PublishedSQLite(_Published):
    """alma-memory on SQLite with FAISS."""

    def open(self) -> None:
        module = importlib.import_module("alma.storage.sqlite_local")
        if not module.FAISS_AVAILABLE:
            raise SystemExit("faiss is not installed, so alma-memory would be measured without its index")
        self._storage = module.SQLiteStorage(self.place.target, embedding_dim=DIMS)

    def close(self) -> None:
        # It opens a connection for every call and has nothing to close.
        self._storage = None

    def opening_code(self) -> str:
        return _SQLITE_CODE.format(target=self.place.target, dims=DIMS)


class PublishedPostgreSQL(_Published):
    """alma-memory on PostgreSQL, with workarounds for what does not work there; each is noted."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._migrate = True
        self._batches = True

    def open(self) -> None:
        storage = importlib.import_module("alma.storage.postgresql").PostgreSQLStorage
        failure = importlib.import_module("alma.storage.migrations.base").MigrationError
        try:
            self._storage = storage(**self._arguments(), auto_migrate=self._migrate)
        except failure as exc:
            self._note(f"opened with auto_migrate=False, because its migration fails: {exc}")
            self._migrate = False
            self._storage = storage(**self._arguments(), auto_migrate=False)

    def close(self) -> None:
        self._storage.close()

    def opening_code(self) -> str:
        return _POSTGRES_CODE.format(arguments=self._arguments(), migrate=self._migrate)

    def save_many(self, records: list[Any]) -> object:
        if self._batches:
            try:
                return self._storage.save_heuristics(records)
            except AttributeError as exc:
                self._note(f"batches saved one by one, because save_heuristics fails: {exc}")
                self._batches = False
        return [self._storage.save_heuristic(record) for record in records]

    def _arguments(self) -> dict[str, Any]:
        url = urlsplit(self.place.target)
        return {
            "host": url.hostname,
            "port": url.port,
            "database": unquote(url.path[1:]),
            "user": url.username,
            "password": unquote(url.password or ""),
            "embedding_dim": DIMS,
        }

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def main() -> None:
    """Measure, and write the measurements to the given file."""
    parser = driver_arguments(__doc__)
    parser.add_argument("--max-seconds", type=float, default=120.0, help="when to stop loading")
    args = parser.parse_args()
    place = place_at(args.place)
    on_server = place.target.startswith("postgresql://")
    contender: Contender = PublishedPostgreSQL(place) if on_server else PublishedSQLite(place)
    found = Measurements()
    take_turns(steps(found, contender, Workload(args.count), args.max_seconds))
    write(found, args.json)


if __name__ == "__main__":
    main()
