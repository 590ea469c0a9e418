"""Spans: made when what they are about is committed, and tied to each other by the events."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from common.process import traces
from common.process.telemetry import Headers, child_headers
from common.process.traces import (
    TRACEPARENT,
    Operation,
    Recorder,
    UnknownExporterError,
    make_recorder,
)

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SENT = Operation("send", "order-validations", "fraud", key=b"k-1")
ROOT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(traces, "recorder", Recorder("fraud", SimpleSpanProcessor(exporter)))
    return exporter


def recorder() -> Recorder:
    assert traces.recorder is not None
    return traces.recorder


def made_of(traceparent: str) -> Headers:
    return child_headers([(TRACEPARENT, traceparent.encode())], "fraud")


def ids(span: ReadableSpan) -> tuple[int, int, int]:
    """Return trace, span, and the span it is below, 0 for none."""
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    return context.trace_id, context.span_id, 0 if parent is None else parent.span_id


def test_an_event_that_is_committed_is_a_span_below_what_it_was_made_of(
    exporter: InMemorySpanExporter,
) -> None:
    recorder().begin_batch()
    headers = made_of(ROOT)
    assert exporter.get_finished_spans() == ()
    recorder().finish(headers, SENT)
    (span,) = exporter.get_finished_spans()
    own = int(headers[0][1].split(b"-")[2], 16)
    assert ids(span) == (int(TRACE_ID, 16), own, 0x00F067AA0BA902B7)
    assert span.name == "send order-validations"
    assert span.kind is SpanKind.PRODUCER
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "order-validations",
        "messaging.consumer.group.name": "fraud",
        "messaging.kafka.message.key": "k-1",
    }
    assert span.resource.attributes["service.name"] == "fraud"
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time


def test_work_that_makes_no_event_is_a_span_of_its_own_each_time(
    exporter: InMemorySpanExporter,
) -> None:
    copied = Operation("send", "a.orders", partition=2, offset=7)
    for named in (ROOT, ROOT.encode()):
        recorder().tell_below([("other", "x"), (TRACEPARENT, named)], copied, 1)
    first, second = exporter.get_finished_spans()
    assert first.name == "send a.orders"
    assert ids(first)[0] == ids(second)[0] == int(TRACE_ID, 16)
    assert ids(first)[2] == ids(second)[2] == 0x00F067AA0BA902B7
    assert ids(first)[1] != ids(second)[1]
    assert "messaging.consumer.group.name" not in dict(first.attributes or {})


@pytest.mark.parametrize("named", [b"", b"\xff", "00-xyz", None, 7, ROOT + "x", ROOT.upper()])
def test_a_header_that_names_no_span_makes_none(
    exporter: InMemorySpanExporter, named: object
) -> None:
    recorder().tell_below([(TRACEPARENT, named)], SENT, 1)
    assert exporter.get_finished_spans() == ()


def test_what_is_not_committed_is_no_span_and_made_again_it_is_the_same_one(
    exporter: InMemorySpanExporter,
) -> None:
    first = made_of(ROOT)
    recorder().forget()
    recorder().finish(first, SENT)
    assert exporter.get_finished_spans() == ()
    again = made_of(ROOT)
    assert again == first
    recorder().finish(again, SENT)
    recorder().finish(again, SENT)
    assert len(exporter.get_finished_spans()) == 1


def test_an_event_without_a_trace_is_no_span(exporter: InMemorySpanExporter) -> None:
    recorder().finish([], SENT)
    recorder().finish([(TRACEPARENT, ROOT.encode())], SENT)
    assert exporter.get_finished_spans() == ()


def test_a_post_begins_a_trace_or_joins_its_clients(exporter: InMemorySpanExporter) -> None:
    recorder().tell_request(ROOT, is_new=True, begun_ns=1, attributes={})
    recorder().tell_request(ROOT, is_new=False, begun_ns=1, attributes={})
    new, joined = exporter.get_finished_spans()
    assert ids(new) == (int(TRACE_ID, 16), 0x00F067AA0BA902B7, 0)
    trace_id, own, parent = ids(joined)
    assert (trace_id, parent) == (int(TRACE_ID, 16), 0x00F067AA0BA902B7)
    assert own != parent


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    assert make_recorder("fraud", {}) is None
    assert make_recorder("fraud", {"OTEL_TRACES_EXPORTER": "none"}) is None
    with pytest.raises(UnknownExporterError, match="zipkin"):
        make_recorder("fraud", {"OTEL_TRACES_EXPORTER": "zipkin"})


def test_spans_go_to_the_console_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    made = make_recorder("fraud", {"OTEL_TRACES_EXPORTER": "console"})
    assert made is not None
    made.tell_request(ROOT, is_new=True, begun_ns=1, attributes={"order.id": "o"})
    made.shut_down()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("span {")
    assert TRACE_ID in line


def test_what_is_known_of_a_record_is_said() -> None:
    handled = Operation("process", "orders", "search", partition=2, offset=7, is_tombstone=True)
    assert handled.kind == "CONSUMER"
    assert handled.attributes() == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.consumer.group.name": "search",
        "messaging.destination.partition.id": "2",
        "messaging.kafka.offset": 7,
        "messaging.kafka.message.tombstone": True,
    }
