"""Spans of a server process as a collector gets them, by OTLP over HTTP."""

import json
import queue
import signal
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http.traces import Traces
from rankpolicy.types import MissingDependencyError
from tests.service.test_end_to_end import Server
from tests.waits import LONGEST_WAIT

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector():
    """The address of a collector, and the bodies that it was sent."""
    bodies: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_collector_gets_a_span_of_every_request(collector, tmp_path, monkeypatch):
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    address, bodies = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    server = Server(tmp_path, config='traces = true\nlist_seconds = 60\n[policies.any]\nkind = "uniform"\n')
    try:
        for path, body in (
            ("/v1/rank", {"query": "q", "items": [{"id": "a"}]}),
            ("/v1/ubi/queries", {"user_query": "q"}),
        ):
            headers = {"content-type": "application/json", "traceparent": PARENT, "x-request-id": f"mine{path}"}
            request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
            with suppress(urllib.error.HTTPError):  # there is no policy for hits of a search engine
                urllib.request.urlopen(request).close()
    finally:
        server.end(signal.SIGTERM)  # what waits is sent then
    spans = {}
    while len(spans) < 2:
        document = trace_service.ExportTraceServiceRequest.FromString(bodies.get(timeout=LONGEST_WAIT))
        (resource,) = document.resource_spans
        assert "rankpolicy" in str(resource.resource)
        spans |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
    span = spans["POST /v1/rank"]
    assert span.trace_id.hex() == PARENT.split("-")[1]
    assert span.parent_span_id.hex() == PARENT.split("-")[2]
    assert span.end_time_unix_nano > span.start_time_unix_nano
    attributes = {entry.key: entry.value for entry in span.attributes}
    assert attributes["http.response.status_code"].int_value == 200
    assert attributes["http.request.header.x-request-id"].string_value == "mine/v1/rank"
    refused = {entry.key: entry.value for entry in spans["POST /v1/ubi/queries"].attributes}
    assert refused["http.response.status_code"].int_value == 422


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.trace", None)
    with pytest.raises(MissingDependencyError, match=r"OpenTelemetry.*rankpolicy\[otel\]"):
        Traces()
    assert not ServiceConfig().traces
