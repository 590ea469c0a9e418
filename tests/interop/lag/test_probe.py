"""The probe on a cluster: messages through every broker, and what it sees when one dies."""

from collections.abc import Iterator

import pytest

from millstream.testing import LocalCluster
from tests.interop.lag.test_lag import is_ready, numbers, served
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

PREFIX = "kminion_end_to_end_"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False) as started:
        yield started


def by_partition(url: str, name: str) -> dict[str, float]:
    found = numbers(url).get(f"{PREFIX}{name}", [])
    return {labels["partition_id"]: value for labels, value in found}


def test_messages_go_through_every_broker(cluster: LocalCluster) -> None:
    with served(cluster, "--probe") as url:
        until(lambda: is_ready(url))
        until(lambda: len(by_partition(url, "messages_received_total")) == 3)
        until(lambda: numbers(url)[f"{PREFIX}offset_commits_total"][0][1] > 0)
        leaders = {
            value
            for labels, value in numbers(url)["kafka_topic_partition_leader"]
            if labels["topic"] == "millstream-probe"
        }
        assert leaders == set(map(float, cluster.broker_ids))
        assert by_partition(url, "produce_latency_seconds_count").keys() == {"0", "1", "2"}
        assert by_partition(url, "roundtrip_latency_seconds_count").keys() == {"0", "1", "2"}
        assert sum(by_partition(url, "messages_lost_total").values()) == 0


def test_when_a_broker_dies_the_probe_goes_on(cluster: LocalCluster) -> None:
    with served(cluster, "--probe") as url:
        until(lambda: len(by_partition(url, "messages_received_total")) == 3)
        cluster.kill(3)
        before = by_partition(url, "messages_received_total")
        until(
            lambda: all(
                count > before[partition] + 2
                for partition, count in by_partition(url, "messages_received_total").items()
            )
        )
        cluster.start(3)
