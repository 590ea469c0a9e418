"""The metrics of the proxy, made at each scrape."""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from broker.server.metric_families import counter, gauge


class Numbers(NamedTuple):
    """What a proxy has counted, and what it has now."""

    requests: int = 0
    unknown_requests: int = 0
    lost_connections: int = 0
    connections: int = 0
    brokers: int = 0
    rules: int = 0
    hits: int = 0


class ProxyCollector(Collector):
    """Yields the families of some numbers."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        numbers = self._numbers
        yield counter("millstream_faults_requests", "Requests of clients", numbers.requests)
        yield counter(
            "millstream_faults_unknown_requests",
            "Requests that were passed on unread: of an unknown API or version",
            numbers.unknown_requests,
        )
        yield counter(
            "millstream_faults_lost_connections",
            "Connections that the brokers behind have closed or refused",
            numbers.lost_connections,
        )
        yield gauge(
            "millstream_faults_connections", "Clients that are connected", numbers.connections
        )
        yield gauge("millstream_faults_brokers", "Brokers behind that have a port", numbers.brokers)
        yield gauge("millstream_faults_rules", "Rules that are armed", numbers.rules)
        yield gauge("millstream_faults_hits", "Calls that the armed rules have hit", numbers.hits)


def registry_of(numbers: Numbers) -> CollectorRegistry:
    """Return all metrics."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ProxyCollector(numbers))
    return registry
