"""The metrics of the streaming job."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class JobMetrics:
    """The metrics of one job; /metrics shows `registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.events = Counter("millstream_analytics_events", "Records read", registry=self.registry)
        self.repeated = Counter(
            "millstream_analytics_repeated_events",
            "Records that had been counted before",
            registry=self.registry,
        )
        self.set_aside = Counter(
            "millstream_analytics_set_aside", "Records that are no events", registry=self.registry
        )
        self.published = Counter(
            "millstream_analytics_published", "Rows sent to the topic", registry=self.registry
        )
        self.restarts = Counter(
            "millstream_analytics_query_restarts",
            "Starts of the query after a failure",
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "millstream_analytics_batch_seconds",
            "Time from a micro-batch's start to its commit",
            registry=self.registry,
            buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 30),
        )
        self.is_source_reachable = Gauge(
            "millstream_analytics_source_reachable", "1 when Kafka answers", registry=self.registry
        )
