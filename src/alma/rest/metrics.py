"""Prometheus metrics: request counts, durations, errors and open streams."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one service; labels are routes, never values from a request."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        on = self._registry
        self.count = 0
        self._requests = Counter(
            "alma_requests_total", "Requests answered.", ("method", "route", "status"), registry=on
        )
        self._seconds = Histogram(
            "alma_request_seconds", "Request duration.", ("method", "route"), buckets=_SECONDS, registry=on
        )
        self._errors = Counter("alma_errors_total", "Error responses by code.", ("code",), registry=on)
        self.running = Gauge("alma_requests_running", "Requests in progress.", registry=on)
        self.streams = Gauge("alma_event_streams", "Open event streams.", registry=on)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        self.count += 1
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def failed(self, code: str) -> None:
        """Count an error response by its code."""
        self._errors.labels(code).inc()

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)
