"""Verdicts of the three validators, as they go to `order-validations`."""

from dataclasses import dataclass

from common.process.telemetry import Headers, Metrics, child_headers
from common.processing.outbox import Outbox
from common.registry.wire import EventWriter
from schemas.topics import ORDER_VALIDATIONS


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says about one order: passed, or a code and a reason why not."""

    code: str | None = None
    reason: str | None = None

    @property
    def result(self) -> str:
        return "PASS" if self.code is None else "FAIL"


PASSED = Verdict()


class VerdictPublisher:
    """Publishes the verdicts of one check."""

    def __init__(self, check: str, application: str, writer: EventWriter, metrics: Metrics) -> None:
        self._check = check
        self._application = application
        self._writer = writer
        self._metrics = metrics

    def publish(self, order_id: str, verdict: Verdict, headers: Headers, outbox: Outbox) -> None:
        event = {
            "order_id": order_id,
            "check": self._check,
            "result": verdict.result,
            "code": verdict.code,
            "reason": verdict.reason,
            "validator": self._application,
        }
        value = self._writer.encode(event)
        outbox.send(
            ORDER_VALIDATIONS.name, order_id, value, child_headers(headers, self._application)
        )
        self._metrics.verdicts.labels(verdict.result).inc()
