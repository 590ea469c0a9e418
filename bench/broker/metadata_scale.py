"""The growth of the metadata with the partitions: 10,000 and 100,000 of them.

`python -m bench metadata-scale`. One node does the work of every node (write, replay, take and load
a snapshot), timed in CPU seconds of this process, so that a busy machine changes little. Then a
quorum of three voters and a broker that joins late runs in the simulator, on a network with a
latency of 1-4 ms: the bytes on that network, and the simulated time.
"""

import gc
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from broker.metadata.features import SUPPORTED_FEATURES
from broker.metadata.image import MetadataImage
from broker.model import OffsetAndEpoch
from broker.raft.config import RaftConfig
from broker.raft.node import RaftNode
from broker.raft.output import Envelope
from broker.records.build import build_batch
from broker.server.quorum.metadata_machine import MetadataMachine
from broker.server.quorum.quorum import Quorum
from broker.server.quorum.raft.partition_raft_log import metadata_log_config
from common.kafka.protocol.layout import parse_versions
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.records.metadata import PartitionRecord, encode_metadata_record
from common.kafka.protocol.structs import encode_struct
from tests.lib.quorum_nodes import CLUSTER_ID, ask, open_quorum, run
from tests.sim import quorum_node
from tests.sim.network import Weather
from tests.sim.quorum_cluster import QuorumSimulation
from tests.sim.quorum_node import SimulatedNode

TOPIC_COUNTS = (10, 100)
PARTITIONS_PER_TOPIC = 1_000
BROKERS = 3
SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "1000000000000",
    "broker.session.timeout.ms": "2000000000",
}
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    for topic_count in TOPIC_COUNTS:
        print(f"{topic_count * PARTITIONS_PER_TOPIC:,} partitions, one replica each")
        with tempfile.TemporaryDirectory() as folder:
            run(partial(measure_node, Path(folder), topic_count))
        measure_quorum(topic_count)
    return 0


def resident_mb() -> float:
    """Return the resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def bytes_of_logs(folder: Path) -> int:
    """Return the size of all segments below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.log"))


# One node.


async def register(quorum: Quorum, broker_id: int) -> None:
    """Register a broker for the placement of partitions."""
    features = [
        Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
        for name, (lowest, highest) in SUPPORTED_FEATURES.items()
    ]
    registered = await ask(
        quorum,
        BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=broker_id.to_bytes(16, "big"),
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9_000 + broker_id)],
            features=features,
            log_dirs=[b"directory" + broker_id.to_bytes(7, "big")],
        ),
        4,
    )
    await ask(
        quorum,
        BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=registered.broker_epoch,
            current_metadata_offset=quorum.applied_offset - 1,
        ),
        1,
    )


async def measure_node(folder: Path, topic_count: int) -> None:
    """Measure the creation of topics, a restart, and a snapshot."""
    partition_count = topic_count * PARTITIONS_PER_TOPIC
    before_mb = resident_mb()
    quorum = open_quorum(folder, SETTINGS, rules=None)
    quorum.start()
    for broker_id in range(1, BROKERS + 1):
        await register(quorum, broker_id)
    began = time.process_time()
    for number in range(topic_count):
        topic = CreatableTopic(
            name=f"topic-{number}", num_partitions=PARTITIONS_PER_TOPIC, replication_factor=1
        )
        answer = await ask(quorum, CreateTopicsRequest(topics=[topic]), 7)
        assert answer.topics[0].error_code == 0, answer
    took = time.process_time() - began
    log_bytes = bytes_of_logs(folder)
    print(
        f"  create {took:.2f} s CPU; log {log_bytes / 1e6:.1f} MB, "
        f"{log_bytes / partition_count:.0f} bytes a partition; "
        f"image {resident_mb() - before_mb:.0f} MB resident"
    )
    image = quorum.image
    quorum.begin_stop()
    measure_restart(folder, image)


def measure_restart(folder: Path, expected: MetadataImage) -> None:
    """Replay the log, take a snapshot a slice at a time, load it."""
    began = time.process_time()
    quorum = open_quorum(folder, SETTINGS, rules=None)
    quorum.start()
    print(f"  replay {time.process_time() - began:.2f} s CPU")
    assert quorum.image == expected
    snapshots, slices = quorum.snapshots, [time.process_time()]
    snapshots.begin(0, 0)
    while snapshots.is_writing:
        slices.append(time.process_time())
        snapshots.advance(0, 0)
    slices.append(time.process_time())
    longest = max(after - before for before, after in pairwise(slices))
    log = quorum.raft.log
    (snapshot_id,) = log.snapshot_ids()
    data = log.read_snapshot(snapshot_id, 0, 1 << 30)
    quorum.begin_stop()
    print(
        f"  snapshot {slices[-1] - slices[0]:.2f} s CPU in {len(slices) - 2} slices, the longest "
        f"{longest * 1000:.0f} ms; {len(data) / 1e6:.1f} MB"
    )
    machine = MetadataMachine()
    began = time.process_time()
    machine.load_snapshot(snapshot_id, data)
    print(f"  load the snapshot {time.process_time() - began:.2f} s CPU")


# A quorum in the simulator.


class CalmQuorum(QuorumSimulation):
    """Three voters and a broker without faults; counts the bytes on the network."""

    def __init__(self) -> None:
        seed = next(
            seed
            for seed in range(1_000)
            if len((drawn := QuorumSimulation(seed)).voters) == 3 and len(drawn.node_ids) > 3
        )
        quorum_node.LOG_CONFIG = metadata_log_config()
        super().__init__(seed)
        self.has_faults = False
        self.network.weather = Weather()
        self.sent_bytes = self.sent_count = 0
        for node in self.nodes.values():
            node.config = _with_default_sizes(node.config)
            node.send = self._send

    def _send(self, envelope: Envelope) -> None:
        message = envelope.message
        self.sent_count += 1
        self.sent_bytes += len(encode_struct(message, parse_versions(message.__versions__).last))
        self.network.send(envelope)

    def wait_until(self, is_true: Callable[[], bool]) -> int:
        """Run until a condition is true; return the simulated milliseconds."""
        began_ms = self.scheduler.now_ms
        while not is_true():
            self.scheduler.run_until(self.scheduler.now_ms + 1)
        return self.scheduler.now_ms - began_ms


def _with_default_sizes(config: RaftConfig) -> RaftConfig:
    return replace(config, fetch_max_bytes=1 << 20, snapshot_max_bytes=1 << 20)


def running(node: SimulatedNode) -> RaftNode:
    """Return the Raft node of a process that runs."""
    assert node.node is not None, "the process does not run"
    return node.node


def measure_quorum(topic_count: int) -> None:
    """Commit the partitions with three voters, then let a broker join, by log and by snapshot."""
    quorum = CalmQuorum()
    voters = [quorum.nodes[voter] for voter in quorum.voters]
    joining = quorum.nodes[quorum.node_ids[3]]
    for node in voters:
        quorum.start(node)
    quorum.wait_until(lambda: any(running(node).is_leader for node in voters))
    leader = next(node for node in voters if running(node).is_leader)
    driver = leader.driver
    assert driver is not None, "the leader does not run"
    values = [
        (None, encode_metadata_record(_partition(number)), (), 0)
        for number in range(PARTITIONS_PER_TOPIC)
    ]
    batch = build_batch(values)

    def commit_one() -> int:
        positions: list[OffsetAndEpoch] = []

        def append() -> None:
            position, output = running(leader).append(batch, quorum.scheduler.now_ms)
            positions.append(position)
            driver.take(output)

        quorum.input(leader, append)
        return quorum.wait_until(
            lambda: all(
                positions and running(node).high_watermark >= positions[0].offset for node in voters
            )
        )

    times_ms = sorted(commit_one() for _ in range(topic_count))
    print(
        f"  simulated: {topic_count} decisions of {PARTITIONS_PER_TOPIC} partitions, each known to "
        f"all voters after {times_ms[len(times_ms) // 2]} ms (median), {times_ms[-1]} ms at most; "
        f"{quorum.sent_count} messages, {quorum.sent_bytes / 1e6:.1f} MB"
    )
    quorum.sent_count = quorum.sent_bytes = 0
    quorum.start(joining)
    took_ms = quorum.wait_until(
        lambda: joining.machine.last_batch.offset >= running(leader).high_watermark
    )
    print(
        f"  simulated: a broker that joins has all after {took_ms} ms and "
        f"{quorum.sent_bytes / 1e6:.1f} MB"
    )


def _partition(number: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=b"t" * 16,
        replicas=[number % BROKERS],
        isr=[number % BROKERS],
        leader=number % BROKERS,
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes(16)],
    )
