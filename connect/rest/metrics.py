"""/metrics: Kafka Connect's metrics, with the names its exporter for Prometheus gives them.

A name of `_COUNTED` and `_COMMITS` is that of the counter in the task, without `_total`.
"""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connect.herder.names import State
from connect.worker.worker import Worker

_LABELS = ("connector", "task")
_COUNTED = {
    "source": {
        "source_record_poll": "Records that a source task has read",
        "source_record_write": "Records that a source task has written to Kafka",
    },
    "sink": {
        "sink_record_read": "Records that a sink task has read from Kafka",
        "sink_record_send": "Records that a sink task was given",
    },
}
_COMMITS = {
    "offset_commit_completion": "Commits of offsets",
    "offset_commit_failure": "Commits of offsets that failed",
}
_ERRORS = {
    "total_record_failures": "Records that could not be processed",
    "total_record_errors": "Failed attempts to process a record",
    "total_records_skipped": "Records that were left out because of an error",
    "total_retries": "Attempts after a failed one",
    "total_errors_logged": "Errors that were logged",
    "deadletterqueue_produce_requests": "Records sent to the dead letter queue",
    "deadletterqueue_produce_failures": "Records that the dead letter queue did not get",
}
_TOTAL = "_total"


class ConnectMetrics(Collector):
    """Reads the worker's counters at each scrape."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        """Return all metrics with their current values."""
        herder = self._worker.herder
        yield GaugeMetricFamily(
            "kafka_connect_worker_connector_count",
            "Connectors of the group",
            value=len(herder.connectors),
        )
        yield GaugeMetricFamily(
            "kafka_connect_worker_task_count", "Tasks of the group", value=len(herder.tasks)
        )
        yield from self._states()
        yield from self._counts()
        yield from own_metrics([self._worker])

    def _states(self) -> Iterator[Metric]:
        connectors = GaugeMetricFamily(
            "kafka_connect_connector_status",
            "1 for the state that a connector is in",
            labels=["connector", "state"],
        )
        tasks = GaugeMetricFamily(
            "kafka_connect_connector_task_status",
            "1 for the state that a task is in",
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
        """Return what the tasks of this worker have counted."""
        tasks = [
            ([task.connector, str(task.task)], counts)
            for task, counts in self._worker.task_counts().items()
        ]
        for kind, names in _COUNTED.items():
            of_kind = [(labels, counts) for labels, counts in tasks if counts.kind == kind]
            for name, about in names.items():
                yield _counter(
                    f"kafka_connect_{kind}_task_{name}",
                    about,
                    [(labels, getattr(counts, name + _TOTAL)) for labels, counts in of_kind],
                )
        for name, about in _COMMITS.items():
            yield _counter(
                f"kafka_connect_connector_task_{name}",
                about,
                [(labels, getattr(counts, name + _TOTAL)) for labels, counts in tasks],
            )
        for name, about in _ERRORS.items():
            yield _counter(
                f"kafka_connect_task_error_{name}",
                about,
                [(labels, getattr(counts.errors, name)) for labels, counts in tasks],
            )
        sinks = [(labels, counts) for labels, counts in tasks if counts.kind == "sink"]
        yield _gauge(
            "kafka_connect_sink_task_partition_count",
            "Partitions that a sink task reads",
            [(labels, counts.partition_count) for labels, counts in sinks],
        )
        yield _gauge(
            "kafka_connect_sink_task_record_lag",
            "Records of the partitions of a sink task that were not put yet",
            [
                (labels, counts.record_lag)
                for labels, counts in sinks
                if counts.record_lag is not None
            ],
        )


def _counter(name: str, about: str, rows: "_Rows") -> Metric:
    return _with_rows(CounterMetricFamily(name, about, labels=_LABELS), rows)


def _gauge(name: str, about: str, rows: "_Rows") -> Metric:
    return _with_rows(GaugeMetricFamily(name, about, labels=_LABELS), rows)


_Rows = Iterable[tuple[list[str], float]]


def _with_rows(
    family: CounterMetricFamily | GaugeMetricFamily, rows: _Rows
) -> CounterMetricFamily | GaugeMetricFamily:
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


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
