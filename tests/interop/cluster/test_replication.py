"""Three real brokers keep every record three times, byte for byte, whichever of them dies."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from crc32c import crc32c

from broker.cli.admin_settings import admin_settings
from common.kafka.admin import client as our_client
from common.kafka.admin.configs import Resource, ResourceType, alter
from millstream.launch import program_command, program_environment
from millstream.testing import LocalCluster
from tests.lib.replicated_load import Load, Partition, are_equal, consumed
from tests.lib.scraped_metrics import metrics_of
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "kept", 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result()
        yield started


def is_all_in_sync(cluster: LocalCluster) -> bool:
    return all(len(Partition(cluster, TOPIC, n).isr) == 3 for n in range(PARTITIONS))


@pytest.mark.parametrize("fault", ["killed", "stopped", "wiped"])
def test_a_leader_goes_under_load_and_everything_is_kept(cluster: LocalCluster, fault: str) -> None:
    with Load(cluster, TOPIC) as load:
        leader = Partition(cluster, TOPIC, 0).leader
        if fault == "stopped":
            cluster.stop(leader)
        else:
            cluster.kill(leader)
        load.goes_on()
        if fault == "wiped":
            cluster.wipe(leader)
        cluster.start(leader)
        load.goes_on()
    until(lambda: is_all_in_sync(cluster))
    assert load.acknowledged <= set(consumed(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    until(lambda: are_equal(cluster, cluster.broker_ids, TOPIC, PARTITIONS))


# --- replicas compared by millstream replica-verification ---


def create(cluster: LocalCluster, topic: str, *replicas: list[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = NewTopic(topic, len(replicas), replica_assignment=list(replicas))
    admin.create_topics([wanted])[topic].result()


def fill(cluster: LocalCluster, topic: str, count: int) -> None:
    """Produce so many records of 10 kB, each in a batch of its own."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 1}
    )
    for number in range(count):
        producer.produce(topic, b"%d" % number + b"x" * 10_000)
    assert producer.flush(60) == 0


@contextmanager
def verification(cluster: LocalCluster, topic: str) -> Iterator[IO[str]]:
    """Compare a topic's replicas from its beginning; gives what is said of them."""
    where = ("--broker-list", cluster.bootstrap_servers, "--topics-include", topic)
    how = ("--time", "-2", "--report-interval-ms", "200", "--max-wait-ms", "100")
    command = program_command("broker", "replica-verification", *where, *how)
    with subprocess.Popen(
        command, env=program_environment(), stdout=subprocess.PIPE, text=True
    ) as tool:
        try:
            assert tool.stdout is not None
            yield tool.stdout
        finally:
            tool.send_signal(signal.SIGINT)
        assert tool.wait(60) == 130


def test_replicas_are_compared_while_a_broker_is_down(cluster: LocalCluster) -> None:
    create(cluster, "absent", [1, 2, 3])
    create(cluster, "absent.alone", [3])
    fill(cluster, "absent", 20)
    cluster.kill(3)
    until(lambda: Partition(cluster, "absent", 0).isr == [1, 2])
    with verification(cluster, "absent.*") as said:
        assert "not compared, for they have no leader: absent.alone-0" in next(iter(said))
        away = next(line for line in said if "could not be asked" in line)
        assert away.strip().endswith(
            "broker 3 could not be asked, not compared are its replicas of absent-0"
        )
        assert next(lag for line in said if (lag := lag_said(line)))[0] == 0
        cluster.start(3)
        assert any("broker 3 answers again" in line for line in said)


def lag_said(line: str) -> tuple[int, int] | None:
    """Give how far a report says the replicas are apart, and where."""
    found = re.search(
        r"max lag is (\d+) for partition \S+ at offset (\d+) among 1 partitions", line
    )
    return None if found is None else (int(found[1]), int(found[2]))


def test_a_replica_that_lags_is_told_of_until_it_has_caught_up(cluster: LocalCluster) -> None:
    create(cluster, "lagging", [1, 2, 3])
    with our_client.AdminClient(admin_settings(cluster.bootstrap_servers)) as client:

        def throttle(rate: str | None, replicas: str | None) -> None:
            broker, topic = (
                Resource(ResourceType.BROKER, "1"),
                Resource(ResourceType.TOPIC, "lagging"),
            )
            alter(
                client,
                {
                    broker: {"leader.replication.throttled.rate": rate},
                    topic: {"leader.replication.throttled.replicas": replicas},
                },
            )

        cluster.kill(3)
        until(lambda: Partition(cluster, "lagging", 0).isr == [1, 2])
        fill(cluster, "lagging", 300)
        throttle("1", "0:1")
        cluster.start(3)
        with verification(cluster, "lagging") as said:
            behind, offset = next(lag for line in said if (lag := lag_said(line)))
            assert 0 < behind == 300 - offset
            assert lag_of(cluster, 3, "lagging") > 0
            throttle(None, None)
            assert any(lag_said(line) == (0, 300) for line in said)
    until(lambda: lag_of(cluster, 3, "lagging") == 0)


def lag_of(cluster: LocalCluster, broker_id: int, topic: str) -> float:
    """Give what a broker's metrics say of its replica of a topic's only partition."""
    (lag,) = (
        value
        for name, value in metrics_of(cluster, broker_id).items()
        if "consumerlag" in name and f'topic="{topic}"' in name
    )
    return lag


def test_a_replica_that_holds_something_else_is_told_of(cluster: LocalCluster) -> None:
    create(cluster, "differing", [1, 2, 3])
    fill(cluster, "differing", 3)
    until(lambda: are_equal(cluster, cluster.broker_ids, "differing", 1))
    cluster.stop(3)
    (file,) = cluster.node(3).data_folder.glob("differing-0/*.log")
    spoil_first_batch(file)
    cluster.start(3)
    until(lambda: Partition(cluster, "differing", 0).isr == [1, 2, 3])
    with verification(cluster, "differing") as said:
        line = next(line for line in said if "checksum" in line)
        assert re.search(
            r"partition differing-0 has unmatched checksum at offset 0; "
            r"replica 1's checksum (\d+); replica 3's checksum (?!\1)\d+$",
            line,
        )
        # The others are equal, and it goes on to the end.
        assert any(lag_said(line) == (0, 3) for line in said)


def spoil_first_batch(file: Path) -> None:
    """Change a byte of a record, and the checksum so that it is right."""
    data = bytearray(file.read_bytes())
    end = 12 + int.from_bytes(data[8:12], "big")
    data[end - 2] ^= 1
    data[17:21] = crc32c(bytes(data[21:end])).to_bytes(4, "big")
    file.write_bytes(data)
