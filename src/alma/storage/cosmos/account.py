"""The connection to a Cosmos DB account: containers, requests and their charges, and errors as sentences."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from alma.errors import ConfigurationError, StorageError
from alma.storage.cosmos.documents import Container, Document
from alma.storage.cosmos.queries import Condition

T = TypeVar("T")
_log = logging.getLogger("alma.storage.azure_cosmos")

_CHARGE = "x-ms-request-charge"
_THROTTLE_RETRIES = 9
_THROTTLE_SECONDS = 30
_MOST_IN_A_BATCH = 100
_LARGEST_BATCH = 1_500_000
# Missing, exists already, changed since.
_REFUSED = (404, 409, 412)
# Answers that leave open whether the request was executed.
_UNDECIDED = (408, 449, 500, 502, 503, 504)

INDEXING: Document = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}, {"path": "/embedding/*"}],
}

Put = tuple[Document, str | None]
"""A document to write, and the entity tag of the one that it replaces; None for a new one."""


class Refused(Exception):
    """A document is not in the state that a write expects: it exists, is missing or has changed."""


class Charges:
    """The request units that one transaction used."""

    def __init__(self) -> None:
        self.units = 0.0
        self.requests = 0

    def add(self, what: str, container: str, headers: Mapping[str, Any]) -> None:
        units = float(headers.get(_CHARGE) or 0.0)
        self.units += units
        self.requests += 1
        _log.debug("Cosmos DB charged %.2f request units: %s in %s", units, what, container, extra=_facts(units))

    def log(self, what: str) -> None:
        if self.requests:
            message = "%s used %.2f request units in %d requests"
            _log.info(message, what, self.units, self.requests, extra=_facts(self.units))


def _facts(units: float) -> dict[str, float]:
    return {"request_units": units}


def indexing_policy(embeds: bool) -> Document:
    """The documented indexing policy, with a DiskANN index where documents have embeddings."""
    vectors = {"vectorIndexes": [{"path": "/embedding", "type": "diskANN"}]} if embeds else {}
    return {**INDEXING, **vectors}


def vector_policy(dims: int) -> Document:
    """The documented vector embedding policy."""
    path = {"path": "/embedding", "dataType": "float32", "dimensions": dims, "distanceFunction": "cosine"}
    return {"vectorEmbeddings": [path]}


class Account:
    """One database of an account, and the requests to it."""

    def __init__(self, endpoint: str, key: str, database: str, options: Mapping[str, Any]) -> None:
        self.endpoint = endpoint
        self._name = database
        retries = {"retry_throttle_total": _THROTTLE_RETRIES, "retry_throttle_backoff_max": _THROTTLE_SECONDS}
        with self.translated():
            self._client = CosmosClient(endpoint, credential=key, **{**retries, **options})
            self._database = self._client.get_database_client(database)
        self._containers: dict[str, ContainerProxy] = {}

    def close(self) -> None:
        self._client.close()

    # ------------------------------------------------------------------ database and containers

    def create_missing(self, containers: Sequence[Container], dims: int) -> None:
        """Create the database and those of the containers that it lacks."""
        with self.translated():
            self._client.create_database_if_not_exists(self._name)
            known = {each["id"] for each in self._database.list_containers()}
            for container in containers:
                if container.name not in known:
                    self._create(container, dims)

    def _create(self, container: Container, dims: int) -> None:
        vectors: dict[str, Any] = {"vector_embedding_policy": vector_policy(dims)} if container.embeds else {}
        _log.info("creating the Cosmos DB container %s", container.name)
        self._database.create_container_if_not_exists(
            container.name,
            PartitionKey(container.partition_path),
            indexing_policy=indexing_policy(container.embeds),
            # Only the stubs of deleted documents have a time to live.
            default_ttl=-1,
            **vectors,
        )

    def require(self, containers: Sequence[Container]) -> None:
        """Refuse a database that lacks containers."""
        with self.translated():
            known = {each["id"] for each in self._database.list_containers()}
        missing = [each.name for each in containers if each.name not in known]
        if missing:
            raise ConfigurationError(
                f"the Cosmos DB database {self._name!r} at {self.endpoint} lacks {len(missing)} containers "
                f"({', '.join(missing[:3])} …): open it once with create_if_not_exists=True, or create them"
            )

    def properties(self, container: Container) -> Document:
        """The properties of a container: partition key and policies."""
        with self.translated():
            return dict(self._proxy(container).read())

    def _proxy(self, container: Container) -> ContainerProxy:
        if container.name not in self._containers:
            self._containers[container.name] = self._database.get_container_client(container.name)
        return self._containers[container.name]

    # ------------------------------------------------------------------ requests

    def query(
        self,
        container: Container,
        condition: Condition,
        charges: Charges,
        *,
        select: str = "*",
        order: str = "",
        top: int | None = None,
        partition: str | None = None,
    ) -> list[Any]:
        """The answers to a query, in one partition or in all."""
        if partition is not None:
            condition = condition.also(f"c.{container.partition_path[1:]} = @partition", partition=partition)
        text, parameters = condition.query(select, order, top)
        where: dict[str, Any] = (
            {"enable_cross_partition_query": True} if partition is None else {"partition_key": partition}
        )
        with self.translated():
            hook = partial(_note, charges, "query", container.name)
            pages = self._proxy(container).query_items(text, parameters=parameters, response_hook=hook, **where)
            return list(pages)

    def read(self, container: Container, key: str, partition: str, charges: Charges) -> Document:
        """A document that exists."""
        with self.translated():
            hook = partial(_note, charges, "read", container.name)
            return dict(self._proxy(container).read_item(key, partition_key=partition, response_hook=hook))

    def create(self, container: Container, document: Document, charges: Charges) -> str:
        """Write a document that must be new; returns its entity tag. Raises Refused if it exists."""
        with self.translated(), _refusing():
            hook = partial(_note, charges, "create", container.name)
            return str(self._proxy(container).create_item(document, response_hook=hook)["_etag"])

    def replace(self, container: Container, document: Document, etag: str, charges: Charges) -> str:
        """Overwrite a document that still has this entity tag; returns the next one. Raises Refused if it has not."""
        with self.translated(), _refusing():
            hook = partial(_note, charges, "replace", container.name)
            written = self._proxy(container).replace_item(
                document["id"],
                document,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                response_hook=hook,
            )
            return str(written["_etag"])

    def batch(self, container: Container, partition: str, puts: Sequence[Put], charges: Charges) -> None:
        """Write documents of one partition together; raises Refused if one of them is not in the expected state."""
        self._batch(container, partition, [_operation(*put) for put in puts], charges)

    def delete(self, container: Container, partition: str, ids: Sequence[str], charges: Charges) -> None:
        """Delete documents of one partition together."""
        self._batch(container, partition, [("delete", (key,)) for key in ids], charges)

    def _batch(self, container: Container, partition: str, operations: list[Any], charges: Charges) -> None:
        with self.translated(), _refusing():
            hook = partial(_note, charges, "batch", container.name)
            self._proxy(container).execute_item_batch(operations, partition_key=partition, response_hook=hook)

    # ------------------------------------------------------------------ errors

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the client's errors."""
        try:
            yield
        except CosmosHttpResponseError as exc:
            kind = Unanswered if exc.status_code in _UNDECIDED else StorageError
            raise kind(self._sentence(exc)) from exc
        except (ServiceRequestError, ServiceResponseError) as exc:
            raise Unanswered(
                f"Cosmos DB does not answer at {self.endpoint} ({_reason(exc)}): check azure.endpoint and the network"
            ) from exc
        except AzureError as exc:
            raise StorageError(f"Cosmos DB at {self.endpoint}: {_reason(exc)}") from exc
        except ValueError as exc:
            # The client parses the endpoint and decodes the key.
            raise ConfigurationError(
                f"azure.endpoint or azure.key is not valid ({exc}): copy both from the keys page of the account"
            ) from exc

    def _sentence(self, exc: CosmosHttpResponseError) -> str:
        match exc.status_code:
            case 401 | 403:
                return f"Cosmos DB at {self.endpoint} refuses the key ({exc.status_code}): check azure.key"
            case 404:
                return (
                    f"the Cosmos DB database {self._name!r} at {self.endpoint} or a container of it does not exist: "
                    f"check azure.database, or open it with create_if_not_exists=True"
                )
            case 413:
                return "a request was larger than Cosmos DB takes: write fewer or shorter records at once"
            case 429:
                return (
                    f"Cosmos DB at {self.endpoint} throttles (429), also after {_THROTTLE_RETRIES} retries: repeat "
                    f"later, or give the database {self._name!r} more request units per second"
                )
        return f"Cosmos DB at {self.endpoint} answered {exc.status_code}: {_reason(exc)}"


class Unanswered(StorageError):
    """The service did not answer, so what became of the request is unknown."""


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except CosmosBatchOperationError as exc:
        if exc.status_code in _REFUSED:
            raise Refused from exc
        raise
    except CosmosHttpResponseError as exc:
        if exc.status_code in _REFUSED:
            raise Refused from exc
        raise


def _note(charges: Charges, what: str, container: str, headers: Mapping[str, Any], *_: Any) -> None:
    charges.add(what, container, headers)


def _reason(exc: BaseException) -> str:
    """The first line of an error, without the identifiers of the request."""
    lines = str(exc).splitlines()
    return lines[0] if lines else type(exc).__name__


def _operation(document: Document, etag: str | None) -> tuple[Any, ...]:
    if etag is None:
        return ("create", (document,))
    return ("replace", (document["id"], document), {"if_match_etag": etag})


def batches(items: Sequence[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in groups that the service takes as one batch."""
    group: list[T] = []
    size = 0
    for item in items:
        added = size_of(item)
        if group and (len(group) == _MOST_IN_A_BATCH or size + added > _LARGEST_BATCH):
            yield group
            group, size = [], 0
        group.append(item)
        size += added
    if group:
        yield group


def patiently(work: Callable[[], Any], seconds: float, errors: tuple[type[Exception], ...]) -> Any:
    """The result of the work, repeated after these errors until the time is over."""
    until = time.monotonic() + seconds
    pause = 0.05
    while True:
        try:
            return work()
        except errors:
            if time.monotonic() + pause > until:
                raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
