"""Walks along the relationships of memories on the Neo4j server that the projection fills."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, TypeVar

from alma.closeable import Closeable
from alma.graph.neo4j_nodes import edge_type
from alma.graph.neo4j_server import GraphServer
from alma.graph.walks import Along
from alma.model.relations import SYMMETRIC
from alma.model.scope import Scope
from alma.model.secret import Secret
from alma.storage.traversal import Direction

_log = logging.getLogger("alma.graph")

T = TypeVar("T")
_SCOPED = ("user_id", "project_id", "session_id")
# Arrows of one step: all relations in the direction of the walk, symmetric ones also against it.
_ARROWS = {"out": ("-[r{}]->", "<-[r{}]-"), "in": ("<-[r{}]-", "-[r{}]->"), "both": ("-[r{}]-", None)}


class Neo4jWalks(Closeable):
    """Proposes what a walk reaches, one query for each step of it.

    A server that fails or does not answer in time is not asked again for `retry_after_seconds`.
    """

    name: ClassVar[str] = "neo4j"

    def __init__(
        self,
        uri: str,
        username: str = "neo4j",
        password: str | Secret = "",
        database: str | None = None,
        timeout_seconds: float = 2.0,
        retry_after_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = GraphServer(uri, username, password, database, timeout_seconds, retry_seconds=0.0)
        self._timeout_seconds = timeout_seconds
        self._retry_after_seconds = retry_after_seconds
        self._clock = clock
        self._down_until = float("-inf")

    def around(
        self, start_id: str, scope: Scope, along: Along, direction: Direction, max_depth: int, limit: int
    ) -> Sequence[str] | None:
        queries = list(_steps(scope, along, direction))
        given = {
            **{name: getattr(scope, name) for name in _SCOPED},
            "relations": None if along.relations is None else sorted(along.relations),
            "strength": along.min_strength,
        }

        def walk(tx: Any) -> list[str]:
            reached, frontier = {start_id: None}, [start_id]
            for _ in range(max_depth):
                rows = [row for query in queries for row in tx.run(query, {**given, "ids": frontier})]
                frontier = list(dict.fromkeys(row["id"] for row in rows if row["id"] not in reached))
                reached |= dict.fromkeys(frontier)
                if not frontier or len(reached) > limit:
                    break
            return [key for key in reached if key != start_id]

        return self._answered(walk)

    def among(self, user_id: str, relations: Collection[str]) -> tuple[int, Sequence[str]] | None:
        types = _types(relations)
        edges = (
            f"MATCH (a:Memory)-[r{types}]->(b:Memory) WHERE a.user_id = $user AND b.user_id = $user "
            "AND r.id IS NOT NULL AND r.relation IN $relations RETURN r.id AS id"
        )
        memories = "MATCH (m:Memory) WHERE m.user_id = $user RETURN count(m) AS number"
        given = {"user": user_id, "relations": sorted(relations)}

        def read(tx: Any) -> tuple[int, list[str]]:
            number = next(iter(tx.run(memories, given)))["number"]
            return int(number), [row["id"] for row in tx.run(edges, given)]

        return self._answered(read)

    def close(self) -> None:
        """Close the connections to the server."""
        self._server.close()

    # ------------------------------------------------------------------ a server that may be down

    def _answered(self, work: Callable[[Any], T]) -> T | None:
        """The server's answer, or None after the timeout."""
        if self._clock() < self._down_until:
            return None
        answers: SimpleQueue[T | Exception] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._server.read(work))
            except Exception as exc:  # noqa: BLE001 - whatever fails, the store walks alone
                answers.put(exc)

        # The driver has no timeout for an answer, so that a server which hangs would hold its caller.
        threading.Thread(target=ask, name="alma-graph-walk", daemon=True).start()
        try:
            answer = answers.get(timeout=self._timeout_seconds)
        except Empty:
            answer = TimeoutError(f"no answer within {self._timeout_seconds:g} seconds")
        if not isinstance(answer, Exception):
            return answer
        self._pause(str(answer))
        return None

    def _pause(self, problem: str) -> None:
        self._down_until = self._clock() + self._retry_after_seconds
        _log.warning("the graph server does not answer, so the store walks alone", extra={"error": problem})


def _steps(scope: Scope, along: Along, direction: Direction) -> Iterator[str]:
    """The queries for what is one relationship away from the memories `$ids`."""
    forth, back = _ARROWS[direction]
    yield _step(forth, along.relations, scope)
    symmetric = SYMMETRIC if along.relations is None else SYMMETRIC & along.relations
    if back is not None and symmetric:
        yield _step(back, symmetric, scope)


def _step(arrow: str, relations: Collection[str] | None, scope: Scope) -> str:
    inside = [f"b.{name} = ${name}" for name in _SCOPED if getattr(scope, name) is not None]
    # A computed relationship (TEMPORAL_BEFORE between notes of a session) has no id and is not stored.
    where = ["a.id IN $ids", "r.id IS NOT NULL", "r.strength >= $strength", *inside]
    if relations is not None:
        where.append("($relations IS NULL OR r.relation IN $relations)")
    types = "" if relations is None else _types(relations)
    return f"MATCH (a:Memory){arrow.format(types)}(b:Memory) WHERE {' AND '.join(where)} RETURN DISTINCT b.id AS id"


def _types(relations: Collection[str]) -> str:
    return ":" + "|".join(sorted({edge_type(each) for each in relations}))
