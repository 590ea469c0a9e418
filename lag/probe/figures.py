"""The metrics of the probe, with the names of kminion."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PREFIX = "kminion_end_to_end_"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Figures:
    """Counts what became of the messages."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, about: str) -> Counter:
            return Counter(f"{_PREFIX}{name}", about, ["partition_id"], registry=registry)

        def seconds(name: str, about: str, label: str) -> Histogram:
            return Histogram(
                f"{_PREFIX}{name}_seconds", about, [label], registry=registry, buckets=_SECONDS
            )

        self.produced = counter("messages_produced", "Messages that were sent")
        self.failed = counter("messages_produced_failed", "Messages that were not acknowledged")
        self.received = counter("messages_received", "Messages that came back in time")
        self.lost = counter("messages_lost", "Acknowledged messages that did not come back in time")
        self.under_way = Gauge(
            f"{_PREFIX}messages_produced_in_flight",
            "Messages that are under way",
            registry=registry,
        )
        self.commits = Counter(
            f"{_PREFIX}offset_commits", "Commits of offsets that succeeded", registry=registry
        )
        self.failed_commits = Counter(
            f"{_PREFIX}offset_commits_failed", "Commits of offsets that failed", registry=registry
        )
        self.produce_seconds = seconds(
            "produce_latency", "Time until all replicas in sync had a message", "partition_id"
        )
        self.roundtrip_seconds = seconds(
            "roundtrip_latency", "Time until a message came back", "partition_id"
        )
        self.commit_seconds = Histogram(
            f"{_PREFIX}offset_commit_latency_seconds",
            "Time until offsets were committed",
            registry=registry,
            buckets=_SECONDS,
        )
