"""Talking to a server that speaks Bolt: transactions that are tried again, and errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from alma.errors import ConfigurationError, ConflictError, MissingDependencyError, StorageError, UniquenessError
from alma.model.secret import Secret

Result = TypeVar("Result")
Work = Callable[[Any], Result]

_ATTEMPTS = 5


class GraphServer:
    """A database of a server; `constraints` are made sure of before the first use."""

    def __init__(
        self,
        uri: str,
        username: str,
        password: str | Secret,
        database: str | None,
        timeout_seconds: float,
        constraints: Sequence[str],
    ) -> None:
        try:
            import neo4j
        except ImportError as exc:
            raise MissingDependencyError("neo4j", "neo4j") from exc
        self._neo4j = neo4j
        self._database = database
        self._constraints = constraints
        self._ready = False
        secret = Secret(password)
        try:
            self._driver = neo4j.GraphDatabase.driver(
                uri,
                auth=(username, secret.reveal()) if username or secret else None,
                connection_timeout=timeout_seconds,
                connection_acquisition_timeout=timeout_seconds,
                max_transaction_retry_time=timeout_seconds,
            )
        except (ValueError, neo4j.exceptions.ConfigurationError) as exc:
            raise ConfigurationError(
                f"the address of the graph must be like neo4j+s://host or bolt://host: {exc}"
            ) from exc

    def read(self, work: Work[Result]) -> Result:
        with self._session() as session:
            made: Result = session.execute_read(work)
            return made

    def write(self, work: Work[Result]) -> Result:
        """Another writer may have got there first: then again, with what it wrote in sight."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._write_once(work)
            except ConflictError as exc:
                if isinstance(exc, UniquenessError):
                    raise
        return self._write_once(work)

    def _write_once(self, work: Work[Result]) -> Result:
        with self._session() as session:
            made: Result = session.execute_write(work)
            return made

    @contextmanager
    def _session(self) -> Iterator[Any]:
        errors = self._neo4j.exceptions
        try:
            self._prepare()
            with self._driver.session(database=self._database) as session:
                yield session
        except (errors.ConstraintError, errors.TransientError) as exc:
            raise ConflictError(f"another writer changed the graph: {exc.message}") from exc
        except errors.AuthError as exc:
            raise ConfigurationError("the graph server refuses this username and password") from exc
        except (errors.ServiceUnavailable, errors.SessionExpired) as exc:
            raise StorageError(f"the graph server cannot be reached: {exc}") from exc
        except (errors.Neo4jError, errors.DriverError) as exc:
            raise StorageError(f"the graph server could not do that: {exc}") from exc

    def _prepare(self) -> None:
        """Make sure, once, that no two nodes have one key."""
        if self._ready:
            return
        with self._driver.session(database=self._database) as session:
            for statement in self._constraints:
                session.run(statement).consume()
        self._ready = True

    def close(self) -> None:
        """Close the driver's connections."""
        self._driver.close()
