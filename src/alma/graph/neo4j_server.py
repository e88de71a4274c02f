"""A database of a server that speaks Bolt and Cypher."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from alma.errors import ConfigurationError, ConflictError, MissingDependencyError, StorageError, UniquenessError
from alma.model.secret import Secret

Result = TypeVar("Result")
Work = Callable[[Any], Result]
_ATTEMPTS = 5
_EXISTS = "EquivalentSchemaRuleAlreadyExists"


class StatementError(StorageError):
    """The server does not know a statement."""


class GraphServer:
    """A database of a graph server; creates the constraints before the first use."""

    def __init__(
        self,
        uri: str,
        username: str,
        password: str | Secret,
        database: str | None,
        timeout_seconds: float,
        constraints: Sequence[str] = (),
        retry_seconds: float | None = None,
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
                max_transaction_retry_time=timeout_seconds if retry_seconds is None else retry_seconds,
                notifications_min_severity="OFF",
            )
        except (ValueError, neo4j.exceptions.ConfigurationError) as exc:
            raise ConfigurationError(
                f"the address of the graph must be like neo4j+s://host or bolt://host: {exc}"
            ) from exc

    def ping(self) -> None:
        """Raise StorageError unless the server answers."""
        self.read(lambda tx: tx.run("RETURN 1 AS one").consume())

    def run(self, statement: str) -> None:
        """Run a statement of the schema, which cannot be part of a transaction."""
        errors = self._neo4j.exceptions
        with self._session() as session:
            try:
                session.run(statement).consume()
            except errors.AuthError:
                raise
            except errors.ClientError as exc:
                if _EXISTS not in (exc.code or ""):
                    raise StatementError(str(exc.message)) from exc

    def read(self, work: Work[Result]) -> Result:
        with self._session() as session:
            made: Result = session.execute_read(work)
            return made

    def write(self, work: Work[Result]) -> Result:
        """Run a transaction, retried after a conflict with another writer."""
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
            raise StorageError(f"the graph server failed: {exc}") from exc

    def _prepare(self) -> None:
        """Create the unique constraints once."""
        if self._ready:
            return
        with self._driver.session(database=self._database) as session:
            for statement in self._constraints:
                session.run(statement).consume()
        self._ready = True

    def close(self) -> None:
        """Close the driver's connections."""
        self._driver.close()
