"""OpenTelemetry: a span and a duration for each operation on memory, with the `gen_ai.memory.*` conventions.

Only the API package is needed (extra `otel`), and it is used only if the program has a provider of it: without
one, a call costs one look-up. Query texts are recorded only on request, by `capture_query_text` or
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span

MemoryOperation = Literal["search_memory", "create_memory", "update_memory", "upsert_memory", "delete_memory"]

STORE_ID = "gen_ai.memory.store.id"
RECORD_ID = "gen_ai.memory.record.id"
RECORD_COUNT = "gen_ai.memory.record.count"
QUERY_TEXT = "gen_ai.memory.query.text"
OPERATION_NAME = "gen_ai.operation.name"
DURATION = "gen_ai.client.operation.duration"
_PROVIDER = {"gen_ai.provider.name": "alma"}
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# The bounds that the conventions recommend for this metric.
_BOUNDS = [0.01 * 2**power for power in range(14)]

P = ParamSpec("P")
R = TypeVar("R")
Ids = Callable[[Any], Sequence[str] | int]

_requested: bool | None = None


def capture_query_text(capture: bool | None = True) -> None:
    """Record the text of queries in spans, or not; None leaves it to the environment variable."""
    global _requested
    _requested = capture


def traced(
    operation: MemoryOperation, found: Ids, *, query: str | None = None, record: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a method that performs an operation on memory.

    `found` gives the ids of the affected records from the result, or their number; `query` and `record` name the
    arguments that hold the query and the id of the record. A dry run is not an operation.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(*args: P.args, **options: P.kwargs) -> R:
            if not _is_recorded():
                return method(*args, **options)
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError:
                return method(*args, **options)
            if given.get("dry_run"):
                return method(*args, **options)
            with _span(operation, _before(given, query, record)) as span:
                result = method(*args, **options)
                span.set_attributes(_after(found(result)))
            return result

        return call

    return decorate


def _is_recorded() -> bool:
    """Whether the program has a provider; those of the API itself record nothing."""
    trace, metrics = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.metrics")
    if trace is None or metrics is None:
        return False
    kinds = type(trace.get_tracer_provider()).__module__, type(metrics.get_meter_provider()).__module__
    return not all(each.startswith(("opentelemetry.trace", "opentelemetry.metrics")) for each in kinds)


def _before(given: Mapping[str, Any], query: str | None, record: str | None) -> dict[str, str]:
    """Attributes known before the operation: the store, which is the project, the record and the query."""
    values = {
        STORE_ID: _project(given),
        RECORD_ID: given.get(record or ""),
        QUERY_TEXT: given.get(query or "") if _captures() else None,
    }
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _project(given: Mapping[str, Any]) -> object:
    within = given.get("scope") or given.get("self")
    return getattr(within, "project_id", None) or given.get("fields", {}).get("project_id")


def _after(found: Sequence[str] | int) -> dict[str, str | int]:
    if isinstance(found, int):
        return {RECORD_COUNT: int(found)}
    return {RECORD_COUNT: len(found), **({RECORD_ID: found[0]} if len(found) == 1 else {})}


def _captures() -> bool:
    return os.environ.get(_CAPTURE, "").lower() in ("true", "1") if _requested is None else _requested


@contextmanager
def _span(operation: MemoryOperation, attributes: Mapping[str, str]) -> Iterator[Span]:
    from opentelemetry import trace

    measured = {OPERATION_NAME: operation, **_PROVIDER}
    started = time.perf_counter()
    tracer = trace.get_tracer("alma", sys.modules["alma"].__version__)
    try:
        with tracer.start_as_current_span(operation, attributes={**measured, **attributes}) as span:
            try:
                yield span
            except Exception as exc:
                measured["error.type"] = type(exc).__name__
                span.set_attribute("error.type", type(exc).__name__)
                raise
    finally:
        _duration().record(time.perf_counter() - started, measured)


def _duration() -> Histogram:
    from opentelemetry.metrics import get_meter_provider

    return _histogram_of(get_meter_provider())


@functools.lru_cache(maxsize=4)
def _histogram_of(provider: Any) -> Histogram:
    """The histogram of a provider: a program may install its provider after the first operation."""
    meter = provider.get_meter("alma")
    said = "Duration of operations on memory."
    histogram: Histogram = meter.create_histogram(DURATION, "s", said, explicit_bucket_boundaries_advisory=_BOUNDS)
    return histogram
