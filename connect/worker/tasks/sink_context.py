"""The `SinkTaskContext`: requests of a sink task to its thread, which performs them next."""

from collections.abc import Iterable, Mapping

from connect.errors.tolerance import Stage
from connect.worker.tasks.reporting import SinkReport
from connect.worker.tasks.steps import Steps
from millstream.connect.connectors import ErrantRecordReporter, TopicPartition
from millstream.connect.data.records import SinkRecord
from millstream.connect.errors import IllegalWorkerStateException


class _Reporter:
    """Reports single records, each as the message that it was converted from."""

    def __init__(self, steps: Steps, report: SinkReport) -> None:
        self._steps = steps
        self._report = report

    def report(self, record: SinkRecord, error: Exception) -> None:
        at = TopicPartition(record.original_topic, record.original_kafka_partition)
        message = self._report.message_of(at, record.original_kafka_offset)
        self._steps.failed_outside(Stage.TASK_PUT, type(self), error, message)


class SinkContext:
    """Owns the assigned partitions and the task's requests. Used only in the task's thread."""

    def __init__(self, configs: Mapping[str, str], steps: Steps, report: SinkReport) -> None:
        self.configs = configs
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.paused: frozenset[TopicPartition] = frozenset()
        self.is_pausing_changed = False
        self.is_commit_requested = False
        self._rewinds: dict[TopicPartition, int] = {}
        self._timeout_ms: int | None = None
        self._reporter = _Reporter(steps, report) if report.takes_single_records else None

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """The reporter of single records; None without a dead letter queue and logging."""
        return self._reporter

    def assignment(self) -> frozenset[TopicPartition]:
        return self.assigned

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._rewinds.update({TopicPartition(*at): offset for at, offset in offsets.items()})

    def timeout(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms

    def pause(self, *partitions: TopicPartition) -> None:
        self._require(partitions)
        self.paused |= frozenset(partitions)
        self.is_pausing_changed = True

    def resume(self, *partitions: TopicPartition) -> None:
        self._require(partitions)
        self.paused -= frozenset(partitions)
        self.is_pausing_changed = True

    def _require(self, partitions: Iterable[TopicPartition]) -> None:
        if not self.assigned.issuperset(partitions):
            raise IllegalWorkerStateException(
                "SinkTasks may not pause or resume partitions that are not currently assigned to "
                "them."
            )

    def request_commit(self) -> None:
        self.is_commit_requested = True

    def take_rewinds(self) -> dict[TopicPartition, int]:
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def take_timeout_ms(self) -> int | None:
        timeout_ms, self._timeout_ms = self._timeout_ms, None
        return timeout_ms

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        gone = frozenset(partitions)
        self.assigned -= gone
        self.paused -= gone
