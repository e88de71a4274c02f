"""Azure Cosmos DB: the store in documents, with vector search by the service."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from alma.errors import ConfigurationError, MissingDependencyError, StorageError
from alma.model.governance import default_settings
from alma.model.secret import Secret
from alma.storage.base import DEFAULT_MODEL, Backend, Capability, StorageBackend, Transaction
from alma.storage.records import USUAL_DIMENSIONS, described

try:
    from alma.storage.cosmos.account import Account, Charges
    from alma.storage.cosmos.backend import CosmosBackend, new_state
    from alma.storage.cosmos.documents import TABLES, container_of, require_storable
    from alma.storage.cosmos.log import LOG, STATE, CommitLog, Turn
    from alma.storage.cosmos.view import View
except ImportError as exc:  # pragma: no cover - depends on what is installed
    raise MissingDependencyError("azure-cosmos", "azure") from exc

CONTAINERS = (*(container_of(table) for table in TABLES), LOG)
KEY_VARIABLE = "AZURE_COSMOS_KEY"
_FORM = "azure://ACCOUNT.documents.azure.com/DATABASE"
_SCHEMES = {"azure": "https", "azure+http": "http"}
_ACROSS_PARTITIONS = (
    "Cosmos DB has no transactions across partitions: a commit is one document of the container alma-journal, from "
    "which the others are written, so writers take turns, and other programs may see a commit in part; give the "
    "account strong consistency if several machines write"
)


class AzureCosmosStorage(StorageBackend):
    """A store in one database of an Azure Cosmos DB account (API for NoSQL)."""

    storage_type = "azure"

    def __init__(
        self,
        endpoint: str,
        key: str | Secret,
        database_name: str = "alma-memory",
        embedding_dim: int = 384,
        create_if_not_exists: bool = True,
        embedding_model: str = DEFAULT_MODEL,
        lease_seconds: float = 15.0,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        """`lease_seconds` is how long a writer may be silent before another takes its turn; `client_options` are
        passed to the CosmosClient, for example `connection_verify`.
        """
        super().__init__(embedding_dim, embedding_model)
        _require_text("azure.endpoint", endpoint, f"the address of the account, https://{_FORM.split('/')[2]}:443/")
        secret = key.reveal() if isinstance(key, Secret) else key
        _require_text("azure.key", secret, "a key of the account")
        _require_text("azure.database", database_name, "the name of the database")
        self._settings = (endpoint, Secret(secret), database_name, dict(client_options or {}))
        self._lease_seconds = lease_seconds
        self._logs: dict[int, CommitLog] = {}
        self._closed = False
        account, charges = self._log.account, Charges()
        if create_if_not_exists:
            account.create_missing(CONTAINERS, embedding_dim)
        else:
            account.require(CONTAINERS)
        self._log.create_head({**new_state(), "policy_dims": embedding_dim}, charges)
        self._store = self._log.store
        self._policy_dims = int(self._log.head(charges)[STATE]["policy_dims"])
        self._furnish(charges)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `azure` section describes."""
        settings = described(config)
        azure = settings.azure
        return cls(
            azure.endpoint or "",
            azure.key or "",
            azure.database,
            embedding_dim=settings.embedding_dim or USUAL_DIMENSIONS,
        )

    @classmethod
    def from_url(cls, url: str, embedding_dim: int = 384, **options: Any) -> Self:
        """The store behind azure://ACCOUNT.documents.azure.com/DATABASE, with the key in AZURE_COSMOS_KEY or before
        the host as :KEY@.
        """
        parts = urlsplit(url)
        database = unquote(parts.path.strip("/"))
        key = unquote(parts.password or "") or os.environ.get(KEY_VARIABLE, "")
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ConfigurationError(f"the address of a Cosmos DB store must be like {_FORM}")
        if not key:
            raise ConfigurationError(f"Cosmos DB needs the key of the account: set {KEY_VARIABLE}")
        port = f":{parts.port}" if parts.port else ""
        endpoint = f"{_SCHEMES[parts.scheme]}://{parts.hostname}{port}/"
        return cls(endpoint, key, database or "alma-memory", embedding_dim=embedding_dim, **options)

    @property
    def _log(self) -> CommitLog:
        """The log as this process reads it: a fork must not go on over its parent's connections."""
        here = os.getpid()
        if here not in self._logs:
            endpoint, key, database, options = self._settings
            log = CommitLog(Account(endpoint, key.reveal(), database, options), self._lease_seconds)
            log.store = getattr(self, "_store", "")
            self._logs[here] = log
        return self._logs[here]

    def _furnish(self, charges: Charges) -> None:
        """Complete what a writer left, and write the documented settings into a new store."""
        if self._log.begun(charges) != (0, []):
            return
        with self.transaction() as tx:
            backend = tx.backend
            if isinstance(backend, CosmosBackend) and backend.view.number == 0:
                backend.insert(default_settings()[0].spec, default_settings())

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({Capability.SERVER, Capability.NATIVE_VECTORS, Capability.VECTOR_INDEX})

    @property
    def notes(self) -> tuple[str, ...]:
        if self.embedding_dim == self._policy_dims:
            return (_ACROSS_PARTITIONS,)
        return (
            _ACROSS_PARTITIONS,
            f"the containers were made for vectors of {self._policy_dims} dimensions, so those of "
            f"{self.embedding_dim} are compared by the client: export the store and import it into a new database",
        )

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Backend]:
        if self._closed:
            raise StorageError(f"the store {self._settings[2]} at {self._settings[0]} was closed")
        charges = Charges()
        try:
            if write:
                with self._turn(charges) as turn:
                    backend = self._backend(View(self._log.account, self._log, charges, turn))
                    yield backend
                    self._commit(turn, backend.view)
            else:
                yield self._backend(View(self._log.account, self._log, charges, None))
        finally:
            charges.log("a transaction" if write else "a snapshot")

    @contextmanager
    def _turn(self, charges: Charges) -> Iterator[Turn]:
        turn = self._log.turn(charges)
        try:
            yield turn
        finally:
            turn.release()

    def _backend(self, view: View) -> CosmosBackend:
        return CosmosBackend(view, self.embedding_dim, self.embedding_model, writable=view.writable)

    def _commit(self, turn: Turn, view: View) -> None:
        writes = view.writes()
        for write in writes:
            if write.after is not None:
                require_storable(write.table, write.after)
        if writes or view.state != turn.state:
            turn.commit(writes, view.state)

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, str]]:
        with self.snapshot() as tx:
            backend = tx.backend
            if tx.writable or not isinstance(backend, CosmosBackend):
                yield tx, self.generation()
            else:
                yield tx, self._generation_of(backend.view.number)

    def _generation(self) -> str:
        return self._generation_of(self._log.begun(Charges())[0])

    def _generation_of(self, number: int) -> str:
        return f"{self._store}:{number}"

    def _scrub(self) -> None:
        """Empty the log of commits. The stubs of deleted documents hold an id and its owner for a day."""
        self._log.scrub(Charges())

    def properties(self, table: str) -> dict[str, Any]:
        """The properties of the container of a table: its partition key and its policies."""
        return self._log.account.properties(container_of(table))

    def close(self) -> None:
        self._closed = True
        log = self._logs.pop(os.getpid(), None)
        if log is not None:
            log.account.close()


def _require_text(key: str, value: Any, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{key} is missing: give {what}")
