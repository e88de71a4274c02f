"""Spans and metrics of memory operations, as exporters receive them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from alma import ALMA, AsyncALMA
from alma.errors import NotFoundError
from alma.model.scope import Scope
from alma.telemetry import DURATION, QUERY_TEXT, RECORD_COUNT, RECORD_ID, STORE_ID, capture_query_text

SHOP = Scope(project_id="shop")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    """What the program's provider of metrics collects."""
    made = InMemoryMetricReader()
    # A program sets its provider once; other tests have none.
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", MeterProvider([made], shutdown_on_exit=False))
    return made


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    """The program's provider of spans."""
    made = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made)
    return made


@pytest.fixture
def spans(provider: TracerProvider) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    capture_query_text(None)


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", embedding_provider="mock") as opened:
        yield opened


def _only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    exporter.clear()
    return span


def test_each_operation_on_a_memory_is_a_span(alma: ALMA, spans: InMemorySpanExporter) -> None:
    memory = alma.journal.create("Releases are on Tuesday", project_id="shop")
    created = _only(spans)
    assert created.name == "create_memory"
    assert created.attributes == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.provider.name": "alma",
        STORE_ID: "shop",
        RECORD_ID: memory.id,
        RECORD_COUNT: 1,
    }
    alma.journal.update(memory.id, {"content": "Releases are on Monday"}, SHOP)
    assert (_only(spans).attributes or {})[RECORD_ID] == memory.id
    found = alma.journal.search("When are releases?", SHOP)
    searched = _only(spans)
    assert (searched.name, (searched.attributes or {})[RECORD_COUNT]) == ("search_memory", len(found))
    alma.journal.delete(memory.id, SHOP)
    deleted = _only(spans)
    assert (deleted.name, (deleted.attributes or {})[RECORD_COUNT]) == ("delete_memory", 1)


def test_learning_and_retrieving_are_spans_of_the_project(alma: ALMA, spans: InMemorySpanExporter) -> None:
    learned = alma.learn("ana", "Pack the parcel", "success", "weigh it first")
    upserted = _only(spans)
    assert (upserted.name, dict(upserted.attributes or {})[RECORD_ID]) == ("upsert_memory", learned.outcome.id)
    alma.retrieve("Pack the parcel", "ana")
    retrieved = dict(_only(spans).attributes or {})
    assert (retrieved[STORE_ID], QUERY_TEXT in retrieved) == ("shop", False)
    preference = alma.add_user_preference("ana", "style", "short")
    assert dict(_only(spans).attributes or {})[RECORD_ID] == preference.id
    alma.forget("ana", older_than_days=1, dry_run=True)
    assert spans.get_finished_spans() == ()
    alma.forget("ana", older_than_days=1)
    assert _only(spans).name == "delete_memory"


def test_the_text_of_a_query_is_recorded_on_request_only(
    alma: ALMA, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    alma.retrieve("Where is the parcel?", "ana")
    assert (_only(spans).attributes or {})[QUERY_TEXT] == "Where is the parcel?"
    capture_query_text(False)
    alma.journal.search("parcel", SHOP)
    assert QUERY_TEXT not in (_only(spans).attributes or {})


def test_an_error_is_recorded_and_raised(alma: ALMA, spans: InMemorySpanExporter) -> None:
    with pytest.raises(NotFoundError):
        alma.journal.update("no-such-id", {"content": "x"}, SHOP)
    failed = _only(spans)
    assert (failed.attributes or {})["error.type"] == "NotFoundError"
    assert not failed.status.is_ok
    with pytest.raises(TypeError, match="missing"):
        alma.journal.search()  # type: ignore[call-arg]


async def _retrieved(path: Path) -> None:
    tracer = trace.get_tracer("the program")
    async with AsyncALMA.quickstart(path, "shop", embedding_provider="mock") as memory:
        with tracer.start_as_current_span("a turn"):
            await memory.retrieve("Pack the parcel", "ana")


def test_a_span_belongs_to_the_span_of_an_asynchronous_program(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    asyncio.run(_retrieved(tmp_path / "a.db"))
    inner, outer = spans.get_finished_spans()
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_durations_are_measured_by_operation(alma: ALMA, reader: InMemoryMetricReader) -> None:
    alma.retrieve("Pack the parcel", "ana")
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = [
        each for resource in data.resource_metrics for scope in resource.scope_metrics for each in scope.metrics
    ]
    assert (metric.name, metric.unit) == (DURATION, "s")
    assert isinstance(metric.data, Histogram)
    assert "search_memory" in {(point.attributes or {})["gen_ai.operation.name"] for point in metric.data.data_points}


def test_spans_reach_a_collector_over_http(alma: ALMA, provider: TracerProvider) -> None:
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    processor = SimpleSpanProcessor(OTLPSpanExporter(f"http://127.0.0.1:{server.server_port}/v1/traces"))
    provider.add_span_processor(processor)
    alma.retrieve("Pack the parcel", "ana")
    processor.shutdown()
    server.shutdown()
    server.server_close()
    (span,) = ExportTraceServiceRequest.FromString(bodies[0]).resource_spans[0].scope_spans[0].spans
    sent = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
    assert (span.name, sent[STORE_ID], sent[RECORD_COUNT]) == ("search_memory", "shop", 0)


def test_opentelemetry_is_neither_imported_nor_needed(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None  # not installed
from alma import ALMA
with ALMA.quickstart("memory://", embedding_provider="mock") as alma:
    alma.learn("ana", "Pack the parcel", "success", "weigh it first")
    alma.retrieve("Pack the parcel", "ana")
print([name for name in sys.modules if name.startswith("opentelemetry.")])
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
