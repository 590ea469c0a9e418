"""All metrics of a node in Prometheus' text format.

The Prometheus client, and the modules that use it, are imported at the first scrape, to save the
memory of an idle broker.
"""

from broker.server.broker import Broker
from broker.server.clock import SystemClock
from broker.server.quorum.quorum import Quorum


def prometheus_text(broker: Broker | None, quorum: Quorum) -> bytes:
    """Return all metrics of a node in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    from broker.server.broker_metrics import BrokerCollector, ClientMetricsCollector
    from broker.server.quorum.quorum_metrics import QuorumCollector
    from broker.server.share.share_metrics_page import ShareCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    clock = SystemClock()
    registry.register(QuorumCollector(quorum, clock.now_ms, clock.timestamp_ms))
    if broker is not None:
        registry.register(BrokerCollector(broker))
        registry.register(ShareCollector(broker.shares))
        if broker.telemetry.is_advertised:
            registry.register(ClientMetricsCollector(broker.telemetry))
    return generate_latest(registry)
