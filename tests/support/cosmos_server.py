"""A small server that speaks the protocol of Azure Cosmos DB as its official client does, and fails when told to.

Containers are split over several ranges of partition keys, as in the service: queries over partitions are planned by
the server and joined by the client. Numbers are doubles.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from tests.support import cosmos_sql
from tests.support.http_server import LocalServer, SilentHandler

KEY = base64.b64encode(b"the key of the tests" * 3).decode()
_LARGEST = 2 * 1024 * 1024
_MOST_IN_A_BATCH = 100
_MOST_IN_A_PAGE = 1000
_EXACT = 1 << 53
Json = Any


@dataclass
class Failure:
    """An answer instead of the proper one; with `executes` the request is executed and its answer is lost."""

    status: int
    times: int = 1
    when: Callable[[Request], bool] = lambda request: True
    executes: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A request: what is done, in which container, with which body."""

    verb: str
    path: str
    headers: dict[str, str]
    body: Json

    @property
    def steps(self) -> list[str]:
        return [unquote(step) for step in self.path.strip("/").split("/") if step]

    @property
    def container(self) -> str | None:
        return self.steps[3] if len(self.steps) > 3 else None

    def has(self, header: str) -> bool:
        return self.headers.get(header, "").lower() == "true"

    @property
    def what(self) -> str:
        """query, plan, batch, create, upsert, replace, patch, delete, read, or what is read besides documents."""
        if self.has("x-ms-cosmos-is-query-plan-request"):
            return "plan"
        if self.has("x-ms-documentdb-isquery"):
            return "query"
        if self.has("x-ms-cosmos-is-batch-request"):
            return "batch"
        if self.verb == "POST":
            return "upsert" if self.has("x-ms-documentdb-is-upsert") else "create"
        return {"GET": "read", "PUT": "replace", "DELETE": "delete", "PATCH": "patch"}[self.verb]


class Answer(Exception):
    """An answer of the server; raised for those that are errors."""

    def __init__(self, status: int, body: Json = None, headers: dict[str, str] | None = None, sub: int = 0) -> None:
        self.status = status
        self.body = body if body is not None else {"code": str(status), "message": f"answered {status}"}
        self.headers = {**({"x-ms-substatus": str(sub)} if sub else {}), **(headers or {})}


@dataclass
class Collection:
    """A container."""

    properties: dict[str, Any]
    documents: dict[tuple[str, str], Json] = field(default_factory=dict)

    @property
    def path(self) -> list[str]:
        return str(self.properties["partitionKey"]["paths"][0]).strip("/").split("/")

    def partition_of(self, document: Json) -> Any:
        value = document
        for step in self.path:
            value = value.get(step) if isinstance(value, dict) else None
        return value


class CosmosServer(LocalServer):
    """One account with one key, for as long as the with statement lasts."""

    def __init__(self, ranges: int = 2) -> None:
        super().__init__(_Handler)
        self.databases: dict[str, dict[str, Collection]] = {}
        self.failures: list[Failure] = []
        self.requests: Counter[str] = Counter()
        self.received: list[Request] = []
        self.executed: Callable[[Request], object] = lambda request: None
        self._ranges = ranges
        self._lock = threading.RLock()
        self._number = 0

    def fail(self, status: int, times: int = 1, **options: Any) -> Failure:
        """Answer this to the next requests that the options choose."""
        failure = Failure(status, times, **options)
        self.failures.append(failure)
        return failure

    def copy(self, database: str, name: str) -> None:
        """Make a database like another."""
        with self._lock:
            self.databases[name] = {
                container: Collection(held.properties, dict(held.documents))
                for container, held in self.databases[database].items()
            }

    def documents(self, database: str, container: str) -> list[Json]:
        """The living documents of a container."""
        held = self.databases[database][container].documents.values()
        return [each for each in held if not each.get("alma", {}).get("deleted")]

    # ------------------------------------------------------------------ requests

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests[f"{request.what} {request.container or ''}".strip()] += 1
            self.received.append(request)
            failure = self._failure_for(request)
            if failure is not None and not failure.executes:
                raise Answer(failure.status, headers=failure.headers)
            self._require_signature(request)
            answer = self._performed(request)
            self.executed(request)
            if failure is not None:
                raise Answer(failure.status, headers=failure.headers)
            return answer

    def _failure_for(self, request: Request) -> Failure | None:
        for failure in self.failures:
            if failure.times and failure.when(request):
                failure.times -= 1
                return failure
        return None

    def _require_signature(self, request: Request) -> None:
        steps = request.steps
        kinds = steps[-1] if len(steps) % 2 else (steps[-2] if steps else "")
        link = "/".join(steps[:-1] if len(steps) % 2 else steps)
        date = request.headers.get("x-ms-date", "").lower()
        text = f"{request.verb.lower()}\n{kinds.lower()}\n{link}\n{date}\n\n"
        digest = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        if unquote(request.headers.get("authorization", "")) != f"type=master&ver=1.0&sig={digest}":
            raise Answer(
                401, {"code": "Unauthorized", "message": "The input authorization token can't serve the request."}
            )

    def _performed(self, request: Request) -> Answer:
        steps = request.steps
        match steps:
            case []:
                return Answer(200, self._account())
            case ["dbs"]:
                return self._database_list(request)
            case ["dbs", name]:
                self._database(name)
                return Answer(200, {"id": name, "_rid": name, "_self": f"dbs/{name}"})
            case ["dbs", name, "colls"]:
                return self._containers(request, self._database(name))
            case ["dbs", name, "colls", container]:
                return Answer(200, self._container(name, container).properties)
            case ["dbs", name, "colls", container, "pkranges"]:
                return self._partition_ranges(request, container)
            case ["dbs", name, "colls", container, "docs"]:
                return self._on_documents(request, self._container(name, container))
            case ["dbs", name, "colls", container, "docs", key]:
                return self._on_document(request, self._container(name, container), key)
        raise Answer(404)

    def _account(self) -> Json:
        place = [{"name": "Here", "databaseAccountEndpoint": self.url}]
        return {
            "id": "tests",
            "_rid": "tests",
            "_self": "",
            "writableLocations": place,
            "readableLocations": place,
            "enableMultipleWriteLocations": False,
            "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        }

    def _database(self, name: str) -> dict[str, Collection]:
        if name not in self.databases:
            raise Answer(404, {"code": "NotFound", "message": "Owner resource does not exist"})
        return self.databases[name]

    def _container(self, database: str, name: str) -> Collection:
        containers = self._database(database)
        if name not in containers:
            raise Answer(404, {"code": "NotFound", "message": "Owner resource does not exist"})
        return containers[name]

    def _database_list(self, request: Request) -> Answer:
        if request.what == "create":
            name = request.body["id"]
            if name in self.databases:
                raise Answer(409)
            self.databases[name] = {}
            return Answer(201, {"id": name, "_rid": name})
        return Answer(200, {"Databases": [{"id": name} for name in self.databases], "_count": len(self.databases)})

    def _containers(self, request: Request, containers: dict[str, Collection]) -> Answer:
        if request.what == "create":
            name = request.body["id"]
            if name in containers:
                raise Answer(409)
            made = {**request.body, "_rid": uuid.uuid4().hex, "_self": f"{request.path}/{name}", "_etag": '"0"'}
            containers[name] = Collection(made)
            return Answer(201, made)
        found = [each.properties for each in containers.values()]
        return Answer(200, {"DocumentCollections": found, "_count": len(found)})

    def _partition_ranges(self, request: Request, container: str) -> Answer:
        if request.headers.get("if-none-match") == '"ranges"':
            return Answer(304, {}, {"etag": '"ranges"'})
        ends = ["", *(f"{256 * number // self._ranges:02X}" for number in range(1, self._ranges)), "FF"]
        ranges = [
            {
                "id": str(number),
                "_rid": f"{container}{number}",
                "minInclusive": low,
                "maxExclusive": high,
                "parents": [],
            }
            for number, (low, high) in enumerate(pairwise(ends))
        ]
        return Answer(
            200, {"_rid": container, "PartitionKeyRanges": ranges, "_count": len(ranges)}, {"etag": '"ranges"'}
        )

    # ------------------------------------------------------------------ documents

    def _on_documents(self, request: Request, container: Collection) -> Answer:
        match request.what:
            case "plan":
                return Answer(200, self._planned(request.body["query"]))
            case "query":
                return self._queried(request, container)
            case "batch":
                return self._batch(request, container)
            case "create" | "upsert":
                status, document = self._put(container, request.body, request.what, None)
                return Answer(status, document, {"etag": document["_etag"]})
        raise Answer(405)

    def _on_document(self, request: Request, container: Collection, key: str) -> Answer:
        partition = json.loads(request.headers["x-ms-documentdb-partitionkey"])[0]
        match = request.headers.get("if-match")
        if request.what == "read":
            document = self._held(container, partition, key)
            return Answer(200, document, {"etag": document["_etag"]})
        if request.what == "delete":
            self._remove(container, partition, key, match)
            return Answer(204, {})
        if request.body["id"] != key or container.partition_of(request.body) != partition:
            raise Answer(400, {"code": "BadRequest", "message": "id and partition key cannot be changed"})
        status, document = self._put(container, request.body, "replace", match)
        return Answer(status, document, {"etag": document["_etag"]})

    def _held(self, container: Collection, partition: Any, key: str) -> Json:
        document = container.documents.get((json.dumps(partition), key))
        if document is None:
            raise Answer(404, {"code": "NotFound", "message": "Entity with the specified id does not exist"})
        return document

    def _put(self, container: Collection, document: Json, how: str, match: str | None) -> tuple[int, Json]:
        self._require_valid(container, document)
        place = (json.dumps(container.partition_of(document)), document["id"])
        held = container.documents.get(place)
        if how == "create" and held is not None:
            raise Answer(409, {"code": "Conflict", "message": "Entity with the specified id already exists"})
        if how == "replace" and held is None:
            raise Answer(404)
        if match is not None and (held is None or held["_etag"] != match):
            raise Answer(
                412, {"code": "PreconditionFailed", "message": "One of the specified pre-condition is not met"}
            )
        self._number += 1
        system = {"_rid": f"r{self._number:09d}", "_etag": f'"{self._number:08x}"', "_ts": int(time.time())}
        container.documents[place] = {**_doubles(document), **system, "_self": "self", "_attachments": "attachments/"}
        return (201 if held is None else 200), container.documents[place]

    def _require_valid(self, container: Collection, document: Json) -> None:
        key = document.get("id")
        if not isinstance(key, str) or not key or any(letter in key for letter in "/\\?#") or len(key) > 1023:
            raise Answer(400, {"code": "BadRequest", "message": f"The input name {key!r} is invalid"})
        if len(json.dumps(document, ensure_ascii=False).encode()) > _LARGEST:
            raise Answer(413, {"code": "RequestEntityTooLarge", "message": "Request size is too large"})
        if not isinstance(container.partition_of(document), str):
            raise Answer(400, {"code": "BadRequest", "message": "PartitionKey extracted from document is missing"})
        policy = container.properties.get("vectorEmbeddingPolicy")
        vector = document.get("embedding")
        if vector is not None and policy and len(vector) != policy["vectorEmbeddings"][0]["dimensions"]:
            raise Answer(400, {"code": "BadRequest", "message": "the vector has another length than the policy says"})

    def _remove(self, container: Collection, partition: Any, key: str, match: str | None) -> None:
        held = self._held(container, partition, key)
        if match is not None and held["_etag"] != match:
            raise Answer(412)
        del container.documents[json.dumps(partition), key]

    def _batch(self, request: Request, container: Collection) -> Answer:
        partition = json.loads(request.headers["x-ms-documentdb-partitionkey"])[0]
        if len(request.body) > _MOST_IN_A_BATCH or len(json.dumps(request.body)) > _LARGEST:
            raise Answer(413, {"code": "RequestEntityTooLarge", "message": "Batch request is too large"})
        before = dict(container.documents)
        results: list[Json] = []
        for number, operation in enumerate(request.body):
            try:
                results.append(self._operated(container, partition, operation))
            except Answer as failed:
                container.documents = before
                results = [{"statusCode": 424, "requestCharge": 0}] * len(request.body)
                results[number] = {"statusCode": failed.status, "requestCharge": 1}
                return Answer(207, results)
        return Answer(200, results)

    def _operated(self, container: Collection, partition: Any, operation: Json) -> Json:
        match = operation.get("ifMatch")
        if operation["operationType"] == "Delete":
            self._remove(container, partition, operation["id"], match)
            return {"statusCode": 204, "requestCharge": 1}
        if operation["operationType"] == "Read":
            return {"statusCode": 200, "resourceBody": self._held(container, partition, operation["id"])}
        body = operation["resourceBody"]
        if container.partition_of(body) != partition:
            raise Answer(400)
        status, document = self._put(container, body, operation["operationType"].lower(), match)
        return {"statusCode": status, "requestCharge": 1, "eTag": document["_etag"], "resourceBody": document}

    # ------------------------------------------------------------------ queries

    def _planned(self, text: str) -> Json:
        try:
            return cosmos_sql.plan(text, [])
        except cosmos_sql.Refused as exc:
            raise Answer(400, {"code": "BadRequest", "message": f"Message: {exc}"}) from None

    def _queried(self, request: Request, container: Collection) -> Answer:
        try:
            query = cosmos_sql.parsed(request.body["query"])
        except cosmos_sql.Refused as exc:
            raise Answer(400, {"code": "BadRequest", "message": f"Message: {exc}"}) from None
        partition = request.headers.get("x-ms-documentdb-partitionkey")
        chosen = request.headers.get("x-ms-documentdb-partitionkeyrangeid")
        if partition is None and chosen is None:
            if not request.has("x-ms-documentdb-query-enablecrosspartition"):
                raise Answer(400, {"code": "BadRequest", "message": "Cross partition query is required but disabled"})
            if query.needs_plan:
                info = json.dumps(self._planned(request.body["query"]))
                body = {"code": "BadRequest", "message": "a plan is needed", "additionalErrorInfo": info}
                raise Answer(400, body, sub=1004)
        documents = [
            document
            for (place, _), document in container.documents.items()
            if (partition is None or json.loads(place) == json.loads(partition)[0])
            and (chosen is None or zlib.crc32(place.encode()) % self._ranges == int(chosen))
        ]
        parameters = {each["name"]: _doubles(each["value"]) for each in request.body.get("parameters", ())}
        return self._page(request, cosmos_sql.run(query, documents, parameters))

    def _page(self, request: Request, found: list[Json]) -> Answer:
        start = int(request.headers.get("x-ms-continuation") or 0)
        page = found[start : start + _MOST_IN_A_PAGE]
        more = start + len(page) < len(found)
        headers = {"x-ms-continuation": str(start + len(page))} if more else {}
        return Answer(200, {"_rid": "r", "Documents": page, "_count": len(page)}, headers)


def _doubles(value: Json) -> Json:
    """A JSON value after a service whose numbers are doubles and which writes 1.0 as 1."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 1e21 else number
    if isinstance(value, dict):
        return {name: _doubles(each) for name, each in value.items()}
    return [_doubles(each) for each in value]


class _Handler(SilentHandler):
    owner: CosmosServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path.partition("?")[0], headers, json.loads(data) if data else None)
        try:
            answer = self.owner.answer(request)
        except Answer as error:
            answer = error
        body = b"" if answer.status in (204, 304) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        usual = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "x-ms-request-charge": f"{1 + len(body) / 1000:.2f}",
            "x-ms-activity-id": str(uuid.uuid4()),
        }
        for name, value in {**usual, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _handle  # noqa: N815 - the base class wants these names
