"""Client metrics (KIP-714) with librdkafka: on the broker's page, and at an OTLP endpoint."""

import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import confluent_kafka
import cramjam
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from broker.cli.client_metrics import main as client_metrics
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from common.kafka.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.trace_collector import running_collector
from tests.lib.waiting import until


class Collector:
    """An OTLP endpoint that keeps what it is sent."""

    def __init__(self) -> None:
        bodies: list[bytes] = []
        self.bodies = bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def page_of(broker: LocalBroker) -> str:
    with urllib.request.urlopen(f"{broker.http_url}/metrics") as answer:
        return str(answer.read().decode())


def advertised(bootstrap: str) -> set[int]:
    with RawConnection(bootstrap) as connection:
        answer = connection.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest())
    assert isinstance(answer, ApiVersionsResponse)
    return {row.api_key for row in answer.api_keys} & {71, 72}


def test_a_client_pushes_what_is_subscribed_to_the_page_and_to_the_endpoint(
    collector: Collector,
) -> None:
    with LocalBroker(**{"client.telemetry.otlp.endpoint": collector.url}) as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        wanted = "org.apache.kafka.producer.connection."
        assert not client_metrics(
            [*at, "--alter", "--name", "all", "--metrics", wanted, "--interval", "100"]
        )
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "log_level": 0}
        )
        producer.produce("orders", b"1")
        producer.flush()
        until(lambda: 'creation_total{client_id="shop"' in page_of(broker))
        until(lambda: bool(collector.bodies))
        assert "request_latency" not in page_of(broker)
        del producer
    (resource,) = ExportMetricsServiceRequest.FromString(collector.bodies[0]).resource_metrics
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert attributes["client_id"] == "shop"
    assert "rdkafka" in attributes["client_software_version"]


def test_telemetry_is_advertised_while_there_is_a_subscription() -> None:
    with LocalBroker() as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        assert advertised(broker.bootstrap_servers) == set()
        assert not client_metrics([*at, "--alter", "--name", "x", "--metrics", "org."])
        until(lambda: advertised(broker.bootstrap_servers) == {71, 72})
        assert not client_metrics([*at, "--delete", "--name", "x"])
        until(lambda: advertised(broker.bootstrap_servers) == set())


def subscribed(connection: RawConnection, instance_id: bytes) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    answer = connection.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
    assert isinstance(answer, GetTelemetrySubscriptionsResponse)
    return answer


@pytest.mark.parametrize(
    ("codec", "metrics"),
    [
        (0, b"no OTLP"),
        (4, b"no zstd"),
        (4, bytes(cramjam.zstd.compress(bytes(2**21)))),
        (1, bytes(cramjam.gzip.compress(bytes(2**24)))),
    ],
    ids=["not OTLP", "not zstd", "2 MiB", "16 MiB"],
)
def test_a_push_that_cannot_be_read_is_an_invalid_record(codec: int, metrics: bytes) -> None:
    with LocalBroker() as broker, RawConnection(broker.bootstrap_servers) as connection:
        told = subscribed(connection, bytes(16))
        push = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            compression_type=codec,
            metrics=metrics,
        )
        answer = connection.ask(ApiKey.PUSH_TELEMETRY, 0, push)
        assert isinstance(answer, PushTelemetryResponse)
        assert answer.error_code == ErrorCode.INVALID_RECORD
        again = subscribed(connection, told.client_instance_id)
        assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_slow_request_is_a_span_at_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_collector() as collector:
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with LocalBroker(**{"slow.request.trace.ms": "200"}) as broker:
            broker.faults.delay("Produce", ms=300).once()
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": broker.bootstrap_servers, "client.id": "desk"}
            )
            producer.produce("orders", b"1")
            producer.flush()
            until(lambda: "Produce" in {span.name for _, span in collector.spans})
    (service, span) = next(each for each in collector.spans if each[1].name == "Produce")
    assert service == "broker-1"
    assert span.end_time_unix_nano - span.start_time_unix_nano >= 200_000_000
    clients = {one.key: one.value.string_value for one in span.attributes}
    assert clients["messaging.client.id"] == "desk"
