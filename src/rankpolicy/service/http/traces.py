"""A span of OpenTelemetry per request, sent as the environment variables OTEL_... say."""

from __future__ import annotations

import time
from typing import Any

from rankpolicy.optional import require
from rankpolicy.service.http.bodies import REQUEST_ID, Scope

_INSTALL = "Spans of OpenTelemetry"


class Traces:
    """Spans of requests, children of the span that the caller names in ``traceparent``.

    The exporter sends them in a thread of its own; where its queue is full, spans are dropped and no request waits.
    """

    def __init__(self) -> None:
        trace, self._propagate = require("opentelemetry.trace", _INSTALL), require("opentelemetry.propagate", _INSTALL)
        sdk, export = (require(f"opentelemetry.sdk.trace{part}", _INSTALL) for part in ("", ".export"))
        exporter = require("opentelemetry.exporter.otlp.proto.http.trace_exporter", _INSTALL).OTLPSpanExporter()
        resources = require("opentelemetry.sdk.resources", _INSTALL)
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first.
        named = resources.Resource({"service.name": "rankpolicy"}).merge(resources.OTELResourceDetector().detect())
        self._provider = sdk.TracerProvider(resource=named, shutdown_on_exit=False)
        self._provider.add_span_processor(export.BatchSpanProcessor(exporter))
        self._tracer, self._kind = self._provider.get_tracer("rankpolicy"), trace.SpanKind.SERVER
        self._failed = trace.Status(trace.StatusCode.ERROR)

    def add(self, scope: Scope, route: str, request_id: bytes, status: int, seconds: float) -> None:
        """The span of a request that has just been answered; ``route`` is its path as metrics name it."""
        end = time.time_ns()
        headers: dict[str, Any] = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        attributes = {
            "http.request.method": scope["method"],
            "http.route": route,
            "http.response.status_code": status,
            f"http.request.header.{REQUEST_ID.decode()}": request_id.decode(),
        }
        span = self._tracer.start_span(
            f"{scope['method']} {route}",
            context=self._propagate.extract(headers),
            kind=self._kind,
            attributes=attributes,
            start_time=end - round(1e9 * seconds),
        )
        if status >= 500:
            span.set_status(self._failed)
        span.end(end)

    def stop(self) -> None:
        """Send what waits. Not for the event loop."""
        self._provider.shutdown()
