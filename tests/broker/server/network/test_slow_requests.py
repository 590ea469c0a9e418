"""Which requests become spans, and what is in them."""

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker.server.network.connection import Connection
from broker.server.network.slow_requests import SlowRequests, slow_requests
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.metadata import MetadataRequest
from common.process.traces import Recorder

LIMIT_SECONDS = 0.1
CONNECTION = cast(Connection, SimpleNamespace(peer=SimpleNamespace(host="10.0.0.7")))
METADATA = encode_request(ApiKey.METADATA, 12, 1, "desk", MetadataRequest())[4:]
FETCH = encode_request(ApiKey.FETCH, 12, 1, "desk", FetchRequest())[4:]


class Watched:
    """A watch whose time goes on as told, and the spans that it has made."""

    def __init__(self) -> None:
        self._now = 50.0
        self._exporter = InMemorySpanExporter()
        recorder = Recorder("broker-1", SimpleSpanProcessor(self._exporter))
        self.watch = SlowRequests(LIMIT_SECONDS, lambda: self._now, recorder).watch

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def answer(self, frame: bytes, seconds: float, *, at_once: bool = True) -> Any:
        """Have a frame answered after a time; return the answer."""

        def steps() -> Generator[Any, Any, Any]:
            yield "waiting"
            self._now += seconds
            return ["later"]

        def answer_frame(connection: Connection, frame: memoryview) -> Any:
            if not at_once:
                return steps()
            self._now += seconds
            return ["parts"]

        made = self.watch(answer_frame, CONNECTION, memoryview(frame))
        if isinstance(made, list):
            return made
        assert isinstance(made, Generator)
        assert next(made) == "waiting"
        with pytest.raises(StopIteration) as ended:
            next(made)
        return ended.value.value


def test_a_request_at_the_limit_is_a_span_with_its_client() -> None:
    watched = Watched()
    assert watched.answer(METADATA, LIMIT_SECONDS + 0.001) == ["parts"]
    (span,) = watched.spans
    assert span.name == "Metadata"
    assert span.parent is None
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.client.id": "desk",
        "messaging.kafka.api.version": 12,
        "network.peer.address": "10.0.0.7",
    }
    assert span.start_time is not None
    assert span.end_time is not None
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(0.101, abs=0.05)


def test_a_faster_request_is_none() -> None:
    watched = Watched()
    watched.answer(METADATA, LIMIT_SECONDS / 2)
    watched.answer(METADATA, LIMIT_SECONDS / 2, at_once=False)
    assert watched.spans == ()


def test_what_is_answered_later_counts_until_then_unless_its_client_waits_on_purpose() -> None:
    watched = Watched()
    assert watched.answer(METADATA, 1.0, at_once=False) == ["later"]
    assert watched.answer(FETCH, 1.0, at_once=False) == ["later"]
    watched.answer(FETCH, 1.0)
    assert [span.name for span in watched.spans] == ["Metadata", "Fetch"]


@pytest.mark.parametrize("frame", [b"", b"\0\3\0", METADATA[:9], b"\x7f\xff" * 9])
def test_a_frame_that_is_no_request_is_no_span(frame: bytes) -> None:
    watched = Watched()
    assert watched.answer(frame, 1.0) == ["parts"]
    assert watched.spans == ()


def test_without_an_exporter_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_EXPORTER", raising=False)
    assert slow_requests(-1, 1, lambda: 0.0) is None
    with pytest.raises(KafkaError, match=r"slow\.request\.trace\.ms needs OTEL_TRACES_EXPORTER"):
        slow_requests(100, 1, lambda: 0.0)
