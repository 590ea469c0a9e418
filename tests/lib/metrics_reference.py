"""The metrics of every program, collected from the objects that make its `/metrics` page.

`page_text` is the text of docs/metrics.md. A family is found whether or not it has values: in a
registry, or of a collector whose families are made at a scrape.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector

from bench.broker import hot_path
from broker.proxy.proxy_metrics import Numbers, ProxyCollector
from broker.server.broker_metrics import BrokerCollector, ClientMetricsCollector
from broker.server.clock import SystemClock
from broker.server.quorum.quorum_metrics import QuorumCollector
from broker.server.share.share_metrics_page import ShareCollector
from common.process.telemetry import Metrics as ServiceMetrics
from connect.rest.metrics import ConnectMetrics
from lag.facts import Look
from lag.probe.figures import Figures
from lag.server import Looking
from millstream.connect.connectors import TopicPartition
from mirror import metrics as mirrored
from mirror.dedicated import front
from rest_proxy.probes import Metrics as RestProxyMetrics
from schemas.registry.rest.app import Metrics as RegistryMetrics
from spark_analytics.dashboard.feed import Feed
from spark_analytics.jobs.metrics import JobMetrics
from streams.telemetry import Metrics as StreamsMetrics

_START = """# Metrics

Every program answers `/metrics` in Prometheus' text format, beside `/health/live` and
`/health/ready`. The addresses are those of the pages that `millstream up` prints; a broker's is
its setting `http.listener`.

A broker has the names that Strimzi's rules give to Apache Kafka's metrics,
`kafka_<group>_<type>_<name>`, so public dashboards and alert rules for Apache Kafka work. A rate
of Kafka's is a counter here: Prometheus computes the rate. A summary has a `_count`, and where it
says so quantiles of the last five minutes.

A broker shows at most 500 topics and 1,000 partitions with numbers of their own;
`millstream_metrics_topics_left_out` and `millstream_metrics_partitions_left_out` say how many are
only in the sums.

This page is made from the code: `REWRITE=1 python -m pytest tests/test_metrics_reference.py`
writes it.
"""


class Family(NamedTuple):
    """A row of the page."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str


def families_of(collectors: Iterable[Any]) -> list[Family]:
    """Return the families of collectors, in order of their names."""
    found = {}
    for collector in collectors:
        # A metric of the client library knows its labels; so does a family made at a scrape.
        own = getattr(collector, "_labelnames", None)
        for family in collector.collect():
            labels = own if own is not None else getattr(family, "_labelnames", ())
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = Family(name, family.type, tuple(labels), family.documentation)
    return [found[name] for name in sorted(found)]


def of_registry(registry: Any) -> list[Family]:
    """Return the families of a registry."""
    return families_of(list(registry._collector_to_names))


def programs(folder: Path) -> Iterator[tuple[str, list[Family]]]:
    """Yield each program with its metrics; a node of this process works in the folder."""
    node = hot_path._Node(str(folder))
    try:
        quorum, broker = node._node._quorum, node._node._broker
        clock = SystemClock()
        yield (
            "A node",
            families_of(
                [
                    ProcessCollector(registry=CollectorRegistry()),
                    QuorumCollector(quorum, clock.now_ms, clock.timestamp_ms),
                ]
            ),
        )
        yield "A broker, as well", families_of([BrokerCollector(broker)])
        yield "A broker's share groups", families_of([ShareCollector(broker.shares)])
        yield "A broker to which clients push", families_of([_client_metrics(broker)])
    finally:
        node.close()
    nothing: Any = SimpleNamespace(instances={}, registry=None, is_leader=False)
    nothing.registry = SimpleNamespace(subjects=dict)
    yield "The schema registry", of_registry(RegistryMetrics(nothing, nothing)._registry)
    yield "The REST proxy", of_registry(RestProxyMetrics(nothing)._registry)
    yield "A worker of Connect", families_of([ConnectMetrics(_worker())])
    yield "The mirror", _of_mirror()
    yield "A service of the pipeline", of_registry(ServiceMetrics().registry)
    looking = Looking(lambda: Look(0, {}, {}, {}), 10)
    yield "The lag monitor", of_registry(looking.registry)
    probed = CollectorRegistry()
    Figures(probed)
    yield "The lag monitor with --probe", of_registry(probed)
    yield "The proxy with faults", families_of([ProxyCollector(Numbers())])
    yield "Streams", of_registry(StreamsMetrics().registry)
    yield "A Spark job", of_registry(JobMetrics().registry)
    dashboard = CollectorRegistry()
    Feed(folder / "none", dashboard)
    yield "The dashboard", of_registry(dashboard)


def _client_metrics(broker: Any) -> ClientMetricsCollector:
    telemetry = broker.telemetry
    telemetry.forwarder = SimpleNamespace(sent_count=0, dropped_count=0, stop=list)
    return ClientMetricsCollector(telemetry)


def _worker() -> Any:
    herder = SimpleNamespace(
        connectors={}, tasks={}, statuses=SimpleNamespace(connectors={}, tasks={})
    )
    return SimpleNamespace(herder=herder, task_counts=dict)


def _of_mirror() -> list[Family]:
    flow: Any = SimpleNamespace(source="", target="", remote_topic=str)
    at = TopicPartition("orders", 0)
    own = [
        *mirrored.metrics(flow, {at: mirrored.PartitionMetrics()}, 0),
        *mirrored.checkpoint_metrics(flow, {("group", at): mirrored.Gauge()}),
    ]
    rows = {each.name: _mirrored(each.name, tuple(each.labels)) for each in own}
    return [*families_of([front._Metrics([])]), *(rows[name] for name in sorted(rows))]


def _mirrored(name: str, labels: tuple[str, ...]) -> Family:
    words = {"_min": "the least", "_max": "the greatest", "_avg": "the mean"}
    short = name.partition("connector_")[2]
    about = mirrored.MEANINGS.get(short)
    if about is None:
        about = (
            f"{mirrored.MEANINGS[short[:-4]].removesuffix(', the last one')}, {words[short[-4:]]}"
        )
    return Family(name, "counter" if name.endswith("_total") else "gauge", labels, about)


def page_text(found: Iterable[tuple[str, list[Family]]]) -> str:
    """Return the page."""
    text = _START
    for title, families in found:
        text += f"\n## {title}\n\n| name | kind | labels | what it says |\n|---|---|---|---|\n"
        for name, kind, labels, about in families:
            named = ", ".join(f"`{label}`" for label in labels)
            text += f"| `{name}` | {kind} | {named} | {about} |\n"
    return text
