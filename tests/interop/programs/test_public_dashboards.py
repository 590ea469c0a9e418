"""Every metric that Strimzi's dashboards and alert rules ask for is on our brokers' `/metrics`.

The names are those in the queries of strimzi-kafka.json, strimzi-kraft.json and the rules for
Kafka, of strimzi/strimzi-kafka-operator at 8541da1 (packaging/examples/metrics).
"""

import re
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from millstream.testing import LocalCluster
from tests.lib.replicated_load import Load
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parent.parent.parent.parent

BROKERS = {
    "kafka_cluster_partition_atminisr": {"topic", "partition"},
    "kafka_cluster_partition_replicascount": {"topic", "partition"},
    "kafka_cluster_partition_underminisr": {"topic", "partition"},
    "kafka_log_log_size": {"topic", "partition"},
    "kafka_log_logmanager_offlinelogdirectorycount": set(),
    "kafka_network_socketserver_networkprocessoravgidle_percent": set(),
    "kafka_server_brokertopicmetrics_bytesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_bytesout_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_messagesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalproducerequests_total": {"topic"},
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": set(),
    "kafka_server_kafkaserver_linux_disk_read_bytes": set(),
    "kafka_server_kafkaserver_linux_disk_write_bytes": set(),
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_underminisrpartitioncount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_server_socket_server_metrics_connection_count": {"listener", "networkProcessor"},
    "process_open_fds": set(),
}
QUORUM = {
    "kafka_controller_controllerstats_uncleanleaderelections_total": set(),
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_server_raftchannelmetrics_incoming_byte_total": set(),
    "kafka_server_raftchannelmetrics_outgoing_byte_total": set(),
    "kafka_server_raftchannelmetrics_request_total": set(),
    "kafka_server_raftchannelmetrics_response_total": set(),
    "kafka_server_raftmetrics_append_records_rate": set(),
    "kafka_server_raftmetrics_commit_latency_avg": set(),
    "kafka_server_raftmetrics_current_epoch": set(),
    "kafka_server_raftmetrics_current_leader": set(),
    "kafka_server_raftmetrics_current_state": {"current_state"},
    "kafka_server_raftmetrics_current_vote": set(),
    "kafka_server_raftmetrics_fetch_records_rate": set(),
    "kafka_server_raftmetrics_high_watermark": set(),
    "kafka_server_raftmetrics_log_end_offset": set(),
}
ACTIVE_CONTROLLER = {"kafka_controller_kafkacontroller_offlinepartitionscount": set()}
ELSEWHERE = {
    "container_cpu_usage_seconds_total": "Kubernetes' cAdvisor has it",
    "container_last_seen": "Kubernetes' cAdvisor has it",
    "container_memory_usage_bytes": "Kubernetes' cAdvisor has it",
    "kubelet_volume_stats_available_bytes": "Kubernetes' kubelet has it",
    "kubelet_volume_stats_capacity_bytes": "Kubernetes' kubelet has it",
    "jvm_gc_collection_seconds_count": "there is no JVM: objects are freed when unused",
    "jvm_gc_collection_seconds_sum": "there is no JVM: objects are freed when unused",
    "jvm_memory_used_bytes": "there is no JVM: process_resident_memory_bytes has the memory",
    "jvm_threads_current": "there is no JVM: one loop serves all requests",
}
"""The names without data, and why."""

Page = dict[str, list[dict[str, str]]]
"""By the name of a value, the labels of each."""


def page_of(cluster: LocalCluster, node_id: int) -> Page:
    with urllib.request.urlopen(cluster.node(node_id).http_url + "/metrics") as answer:
        text = answer.read().decode()
    found: Page = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name].append(dict(sample.labels))
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False) as started:
        started.create_topic("orders", 3)
        with Load(started, "orders") as load:
            load.goes_on()
        yield started


def test_a_broker_has_every_name_of_the_dashboards(cluster: LocalCluster) -> None:
    for node_id in cluster.broker_ids:
        found = page_of(cluster, node_id)
        for name, labels in {**BROKERS, **QUORUM}.items():
            assert name in found, name
            assert found[name][0].keys() == labels, name
        for name in ELSEWHERE:
            assert name not in found, "it has data: take it into the lists above"
    pages = [page_of(cluster, node_id) for node_id in cluster.broker_ids]
    for name in ACTIVE_CONTROLLER:
        assert sum(name in page for page in pages) == 1


def test_the_reference_has_every_name(cluster: LocalCluster) -> None:
    reference = (ROOT / "docs" / "metrics.md").read_text()
    for name in page_of(cluster, 1):
        short = re.sub("_(count|sum|bucket)$", "", name)
        assert f"`{name}`" in reference or f"`{short}`" in reference, name


def test_traffic_is_shown_by_topic(cluster: LocalCluster) -> None:
    def topics(name: str) -> set[str]:
        pages = (page_of(cluster, node_id) for node_id in cluster.broker_ids)
        return {labels["topic"] for page in pages for labels in page[name]}

    with Load(cluster, "orders") as load:
        load.goes_on()
        for name in ("bytesin", "messagesin", "totalproducerequests"):
            assert topics(f"kafka_server_brokertopicmetrics_{name}_total") >= {"orders", ""}


def test_request_times_have_the_quantiles_of_kafka(cluster: LocalCluster) -> None:
    def is_there() -> bool:
        found = page_of(cluster, 1)["kafka_network_requestmetrics_totaltimems"]
        return {"Produce", "FetchFollower"} <= {labels["request"] for labels in found}

    with Load(cluster, "orders"):
        until(is_there)
    found = page_of(cluster, 1)
    parts = "total", "requestqueue", "local", "remote", "throttle", "responsequeue", "responsesend"
    for part in parts:
        name = f"kafka_network_requestmetrics_{part}timems"
        quantiles = {labels["quantile"] for labels in found[name] if labels["request"] == "Produce"}
        assert quantiles == {"0.50", "0.75", "0.95", "0.98", "0.99", "0.999"}
        assert {"request": "Produce"} in found[f"{name}_count"]
    answered = {"request": "Produce", "error": "NONE"}
    assert answered in found["kafka_network_requestmetrics_errors_total"]
