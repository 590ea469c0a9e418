"""The folder of an older release: it goes on, and is brought to all new features while it runs.

`golden/older_release.hex` is the folder of one node, packed: of a release without share groups,
streams groups and `kraft.version`. The node was killed with a transaction open.
"""

import io
import tarfile
from itertools import islice
from pathlib import Path

import confluent_kafka
import pytest

from broker.cli import features
from broker.cli.admin_settings import admin_settings
from broker.metadata.features import FEATURES_AT_FORMAT, KRAFT_VERSION
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import describe_features
from millstream.processes.cluster_layout import free_ports
from tests.lib.our_node import our_node
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

FOLDER = Path(__file__).parents[2] / "golden" / "older_release.hex"
GROUPS = ("classic", "consumer")
PATIENCE_SECONDS = 30


def unpack(folder: Path) -> None:
    packed = bytes.fromhex(FOLDER.read_text())
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as found:
        found.extractall(folder, filter="data")


def configure(folder: Path, ports: list[int], quorum: str) -> None:
    lines = (
        "process.roles=broker,controller",
        "node.id=1",
        f"listeners=PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}",
        "controller.listener.names=CONTROLLER",
        quorum,
        f"log.dirs={folder}/data",
        "group.initial.rebalance.delay.ms=0",
        # The node was killed: its registration is replaced once its session has ended.
        "broker.session.timeout.ms=500",
        "broker.heartbeat.interval.ms=100",
    )
    (folder / "server.properties").write_text("\n".join(lines) + "\n")


def read_on(bootstrap: str, protocol: str) -> str:
    """Return the next value that a group has not read."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{protocol}-readers",
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(PATIENCE_SECONDS)
    assert message is not None
    assert message.error() is None, message.error()
    consumer.commit(asynchronous=False)
    consumer.close()
    return (message.value() or b"").decode()


def produce_after_the_open_transaction(bootstrap: str, value: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "open"}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("orders", value)
    producer.commit_transaction(PATIENCE_SECONDS)


def levels(bootstrap: str) -> dict[str, int]:
    with AdminClient(admin_settings(bootstrap, None, None)) as client:
        found, _ = describe_features(client, None)
    return {level.name: level.finalized for level in found}


def test_an_older_folder_goes_on_and_gets_all_features(tmp_path: Path) -> None:
    unpack(tmp_path)
    ports = list(islice(free_ports(), 2))
    configure(tmp_path, ports, f"controller.quorum.voters=1@127.0.0.1:{ports[1]}")
    newest = {**FEATURES_AT_FORMAT, KRAFT_VERSION: 1}
    with our_node(tmp_path) as bootstrap:
        assert levels(bootstrap) != newest
        for protocol in GROUPS:
            assert read_on(bootstrap, protocol) == "second-0"
        produce_after_the_open_transaction(bootstrap, "third-0")
        upgrade = ["--bootstrap-server", bootstrap, "upgrade", "--feature"]
        for name, level in newest.items():
            until(lambda change=f"{name}={level}": features.main([*upgrade, change]) == 0)
        assert levels(bootstrap) == newest
        for protocol in GROUPS:
            assert read_on(bootstrap, protocol) == "third-0"
    configure(tmp_path, ports, f"controller.quorum.bootstrap.servers=127.0.0.1:{ports[1]}")
    with our_node(tmp_path) as bootstrap:
        assert levels(bootstrap) == newest
        produce_after_the_open_transaction(bootstrap, "fourth-0")
        for protocol in GROUPS:
            assert read_on(bootstrap, protocol) == "fourth-0"
