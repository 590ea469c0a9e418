"""Spans of what becomes of an order, for OpenTelemetry: from the POST to payment, mail and index.

They are off, and cost nothing, unless `OTEL_TRACES_EXPORTER` is `console` (to standard error) or
`otlp` (to where `OTEL_EXPORTER_OTLP_ENDPOINT` says), which needs `millstream[tracing]`. An event
carries in its `traceparent` the id of the span that made it, and that id is derived, not drawn
(`telemetry`): so a span is told after the fact, when the event is committed, with the id that its
event has had all along, and an event that is made again after a crash is the same span again.

A span begins with the batch its record came in and ends with the commit. What was not committed is
no span. Work that makes no event, as that of a connector or of the mirror, is a span of its own
below the one that its record names.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from common.process import clock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

EXPORTER_VARIABLE = "OTEL_TRACES_EXPORTER"
TRACEPARENT = "traceparent"
"""The header of an event that carries the trace context."""
TRACEPARENT_SHAPE = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_MOST_PENDING = 100_000
"""Events that are being made at a time; more belong to no batch that will be committed."""

Headers = Iterable[tuple[str, bytes]]


class UnknownExporterError(Exception):
    """`OTEL_TRACES_EXPORTER` names something else than console, otlp or none."""


Attribute = str | int | bool


class Operation(NamedTuple):
    """What was done with one record, in the words of OpenTelemetry's conventions for messaging.

    They are version 1.44 of github.com/open-telemetry/semantic-conventions, docs/messaging. The
    span that sends carries the context of its record, so it is a producer's.
    """

    name: str
    """send or process; it is the type of the operation, too."""
    topic: str
    group: str | None = None
    key: bytes | None = None
    partition: int | None = None
    offset: int | None = None
    is_tombstone: bool = False

    @property
    def kind(self) -> str:
        """The kind of the span."""
        return "PRODUCER" if self.name == "send" else "CONSUMER"

    def attributes(self) -> dict[str, Attribute]:
        """Return the attributes of the span; what is not known is left out."""
        known: dict[str, Attribute | None] = {
            "messaging.system": "kafka",
            "messaging.operation.name": self.name,
            "messaging.operation.type": self.name,
            "messaging.destination.name": self.topic,
            "messaging.consumer.group.name": self.group,
            "messaging.destination.partition.id": _text(self.partition),
            "messaging.kafka.offset": self.offset,
            "messaging.kafka.message.key": (
                None if self.key is None else self.key.decode(errors="replace")
            ),
            "messaging.kafka.message.tombstone": self.is_tombstone or None,
        }
        return {name: value for name, value in known.items() if value is not None}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


class Recorder:
    """Keeps what each pending event was made of, and makes a span of it when it is committed."""

    def __init__(self, service: str, processor: "SpanProcessor") -> None:
        from opentelemetry.sdk.resources import Resource

        self._processor = processor
        self._resource = Resource.create(
            {"service.name": service, "service.namespace": "millstream"}
        )
        self._parents: dict[bytes, bytes] = {}
        self._begun_ns = 0

    def begin_batch(self) -> None:
        self._begun_ns = clock.timestamp_ns()

    def note(self, parent: bytes, child: bytes) -> None:
        """Take note that an event with one traceparent is made of one with another."""
        if len(self._parents) >= _MOST_PENDING:
            self._parents.clear()
        self._parents[child] = parent

    def forget(self) -> None:
        """Drop the pending events: they were not committed."""
        self._parents.clear()

    def finish(self, headers: Headers, operation: "Operation", begun_ns: int | None = None) -> None:
        """Make the span of what was done with a record, if it belongs to a trace.

        It began at `begun_ns`, or with the batch.
        """
        for header, value in headers:
            if header == TRACEPARENT and (parent := self._parents.pop(value, None)) is not None:
                self._tell(
                    value.decode(),
                    parent.decode(),
                    f"{operation.name} {operation.topic}",
                    self._begun_ns if begun_ns is None else begun_ns,
                    operation.attributes(),
                    operation.kind,
                )

    def tell_below(
        self, headers: Iterable[tuple[str, object]], operation: "Operation", begun_ns: int
    ) -> None:
        """Make a span below the one that a record names, if it names one."""
        named = next((value for header, value in headers if header == TRACEPARENT), None)
        parent = named.decode(errors="replace") if isinstance(named, bytes) else named
        if isinstance(parent, str) and TRACEPARENT_SHAPE.fullmatch(parent):
            own = parent[:36] + clock.random_hex(8) + parent[52:]
            name = f"{operation.name} {operation.topic}"
            self._tell(own, parent, name, begun_ns, operation.attributes(), operation.kind)

    def tell_served(self, name: str, seconds: float, attributes: "Mapping[str, Attribute]") -> None:
        """Make a span of a request that was just served and belongs to no trace."""
        traceparent = f"00-{clock.random_hex(16)}-{clock.random_hex(8)}-01"
        begun_ns = clock.timestamp_ns() - round(seconds * 1e9)
        self._tell(traceparent, None, name, begun_ns, attributes)

    def tell_request(
        self, traceparent: str, *, is_new: bool, begun_ns: int, attributes: Mapping[str, str]
    ) -> None:
        """Make the span of a POST: the first of a trace that is new, else below its client's."""
        name = "orders POST"
        if is_new:
            self._tell(traceparent, None, name, begun_ns, attributes)
        else:
            own = traceparent[:36] + clock.random_hex(8) + traceparent[52:]
            self._tell(own, traceparent, name, begun_ns, attributes)

    def _tell(
        self,
        traceparent: str,
        parent: str | None,
        name: str,
        begun_ns: int,
        attributes: Mapping[str, Attribute],
        kind: str = "SERVER",
    ) -> None:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanKind

        self._processor.on_end(
            ReadableSpan(
                name,
                context=_context(traceparent),
                parent=None if parent is None else _context(parent),
                resource=self._resource,
                attributes=attributes,
                kind=SpanKind[kind],
                start_time=begun_ns,
                end_time=clock.timestamp_ns(),
            )
        )

    def shut_down(self) -> None:
        """Send what is left."""
        self._processor.shutdown()


def _context(traceparent: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16) | 1),
    )


def make_recorder(service: str, environment: Mapping[str, str] | None = None) -> Recorder | None:
    """Return the recorder of this service's spans, None if the environment asks for none.

    Raises UnknownExporterError, and ImportError without `millstream[tracing]`.
    """
    name = (os.environ if environment is None else environment).get(EXPORTER_VARIABLE, "")
    if name in {"", "none"}:
        return None
    if name not in _PROCESSORS:
        raise UnknownExporterError(f"{EXPORTER_VARIABLE}={name}: there are console, otlp and none")
    return Recorder(service, _PROCESSORS[name]())


def _console() -> "SpanProcessor":
    import sys

    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    return SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr, formatter=_one_line))


def _one_line(span: "ReadableSpan") -> str:
    return f"span {span.to_json(indent=None)}\n"


def _otlp() -> "SpanProcessor":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())


_PROCESSORS: Mapping[str, Callable[[], "SpanProcessor"]] = {"console": _console, "otlp": _otlp}

recorder: Recorder | None = None
"""That of this process, which is one service."""


def configure(service: str) -> None:
    """Have this process record spans, if its environment asks for that."""
    global recorder
    recorder = make_recorder(service)


@contextmanager
def recorded(service: str) -> Iterator[None]:
    """Have this process record spans until the block ends, if its environment asks for that."""
    configure(service)
    try:
        yield
    finally:
        if recorder is not None:
            recorder.shut_down()
