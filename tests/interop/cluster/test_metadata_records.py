"""Apache Kafka's own metadata image, given the records that our controller writes.

Random administration makes logs; Kafka replays each, and the snapshot that our image gives, and
must find the same cluster in both.
"""

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from broker.metadata.snapshot import snapshot_records
from common.kafka.protocol.records.metadata import encode_metadata_record
from tests.broker.metadata.test_controller_machine import ClusterMachine
from tests.broker.metadata.test_image import rich_cluster
from tests.lib.apache_kafka import kafka_libs
from tests.lib.controlled_cluster import ControlledCluster
from tests.lib.java import JAVA, java_program

pytestmark = pytest.mark.interop

HISTORY_COUNT = 60


def history(cluster: ControlledCluster) -> str:
    log = ",".join(record.hex() for record in cluster.log)
    records = snapshot_records(cluster.image)
    return f"{log} {','.join(encode_metadata_record(record).hex() for record in records)}"


def random_histories() -> list[str]:
    histories: list[str] = []

    class Recorded(ClusterMachine):
        def teardown(self) -> None:
            histories.append(history(self.cluster))

    run_state_machine_as_test(
        Recorded,
        settings=settings(
            max_examples=HISTORY_COUNT,
            stateful_step_count=40,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return histories


def test_kafka_finds_the_same_cluster_in_our_logs_and_our_snapshots() -> None:
    if shutil.which("javac") is None:
        pytest.skip("this Java cannot compile")
    histories = [history(rich_cluster()), *random_histories()]
    assert len(histories) > HISTORY_COUNT
    replayed = subprocess.run(
        java_program(kafka_libs(), JAVA / "ReplayMetadata.java", "-Xmx512m"),
        input="\n".join(histories),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.splitlines() == ["equal"] * len(histories)
