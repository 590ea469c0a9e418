"""/metrics: Kafka Connect's metrics, with the names its exporter for Prometheus gives them."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connect.herder.names import State
from connect.worker.worker import Worker

_LABELS = ("connector", "task")
_COUNTED = {
    "source": ("source_record_poll_total", "source_record_write_total"),
    "sink": ("sink_record_read_total", "sink_record_send_total"),
}
_COMMITS = ("offset_commit_completion_total", "offset_commit_failure_total")
_ERRORS = (
    "total_record_failures",
    "total_record_errors",
    "total_records_skipped",
    "total_retries",
    "total_errors_logged",
    "deadletterqueue_produce_requests",
    "deadletterqueue_produce_failures",
)


class ConnectMetrics(Collector):
    """Reads the worker's counters at each scrape."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        herder = self._worker.herder
        yield _gauge("kafka_connect_worker_connector_count", len(herder.connectors))
        yield _gauge("kafka_connect_worker_task_count", len(herder.tasks))
        yield from self._states()
        yield from self._counts()

    def _states(self) -> Iterator[Metric]:
        connectors = GaugeMetricFamily(
            "kafka_connect_connector_status",
            "1 for the state it is in",
            labels=["connector", "state"],
        )
        tasks = GaugeMetricFamily(
            "kafka_connect_connector_task_status",
            "1 for the state it is in",
            labels=[*_LABELS, "state"],
        )
        statuses = self._worker.herder.statuses
        for name, status in statuses.connectors.items():
            for state in State:
                connectors.add_metric([name, state.value.lower()], status.state is state)
        for task, status in statuses.tasks.items():
            for state in State:
                labels = [task.connector, str(task.task), state.value.lower()]
                tasks.add_metric(labels, status.state is state)
        yield connectors
        yield tasks

    def _counts(self) -> Iterator[Metric]:
        families: dict[str, CounterMetricFamily] = {}

        def count(name: str, labels: list[str], value: float) -> None:
            name = name.removesuffix("_total")
            family = families.setdefault(name, CounterMetricFamily(name, name, labels=_LABELS))
            family.add_metric(labels, value)

        partitions = GaugeMetricFamily(
            "kafka_connect_sink_task_partition_count", "partitions it reads", labels=_LABELS
        )
        lags = GaugeMetricFamily(
            "kafka_connect_sink_task_record_lag",
            "records of its partitions that were not put yet",
            labels=_LABELS,
        )
        for task, counts in self._worker.task_counts().items():
            labels = [task.connector, str(task.task)]
            for name in _COUNTED[counts.kind]:
                metric = f"kafka_connect_{counts.kind}_task_{name}"
                count(metric, labels, getattr(counts, name))
            for name in _COMMITS:
                count(f"kafka_connect_connector_task_{name}", labels, getattr(counts, name))
            for name in _ERRORS:
                count(f"kafka_connect_task_error_{name}", labels, getattr(counts.errors, name))
            if counts.kind == "sink":
                partitions.add_metric(labels, counts.partition_count)
                if counts.record_lag is not None:
                    lags.add_metric(labels, counts.record_lag)
        yield from families.values()
        yield partitions
        yield lags
        yield from own_metrics([self._worker])


def own_metrics(workers: Iterable[Worker]) -> Iterator[Metric]:
    """Yield the metrics that tasks' own code reports, one family for each name."""
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for worker in workers:
        for counts in worker.task_counts().values():
            for name, labels, value in counts.own_metrics():
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                if name not in families:
                    families[name] = kind(name.removesuffix("_total"), name)
                families[name].add_sample(name, dict(labels), value)
    yield from families.values()


def _gauge(name: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, name)
    family.add_metric([], value)
    return family
