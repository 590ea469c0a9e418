"""The metadata of a far larger cluster than one would run: 1,000 nodes, 1,000,000 partitions.

`python -m bench large-cluster [--brokers 1000] [--topics 5000]`: topics of 200 partitions with
three replicas each. The records are encoded, and every node's work is done once, in CPU seconds of
this process: it replays the log, writes a snapshot and loads it, and becomes the controller; when a
broker dies the controller decides and all nodes replay the decision. Then the memory is measured
that one node needs for a partition, an idle connection and a group. Every answer is checked.
"""

import argparse
import gc
import os
import random
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from bench.broker.connections import raise_limit
from bench.broker.many import Pipelined, find_coordinators, join_groups, stable_groups
from bench.broker.side_by_side import create_topic
from bench.lib.first_record import wait_for_first_record
from bench.lib.servers import Millstream
from broker.metadata.controller import Controller, ControllerConfig, Moment
from broker.metadata.features import LATEST_METADATA_VERSION, METADATA_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.snapshot import each_snapshot_record
from broker.model import OffsetAndEpoch
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.server.quorum.metadata_machine import MetadataMachine
from broker.server.quorum.raft.snapshot_format import build_snapshot
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    BrokerEndpoint,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    encode_metadata_record,
)

PARTITIONS_PER_TOPIC, REPLICAS = 200, 3
RECORDS_PER_BATCH = 1_000
DEAD_BROKER = 7
COUNT = 2_000
"""The partitions, connections and groups of one node whose memory is measured."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench large-cluster", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--topics", type=int, default=5_000)
    told = parser.parse_args(arguments)
    measure_metadata(told.brokers, told.topics)
    measure_costs()
    return 0


def resident_mb() -> float:
    """Return the resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6


def records_of(brokers: int, topics: int) -> Iterator[Message]:
    """Yield the records of a cluster whose partitions are spread evenly."""
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST_METADATA_VERSION)
    for broker in range(brokers):
        yield RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=broker.to_bytes(16, "big"),
            broker_epoch=broker,
            end_points=[
                BrokerEndpoint(name="PLAINTEXT", host=f"broker-{broker}.example", port=9092)
            ],
            rack=f"zone-{broker % 3}",
            fenced=False,
            log_dirs=[_directory(broker)],
        )
    for topic in range(topics):
        topic_id = (topic + 1).to_bytes(16, "big")
        yield TopicRecord(name=f"topic-{topic}", topic_id=topic_id)
        for partition in range(PARTITIONS_PER_TOPIC):
            first = topic * PARTITIONS_PER_TOPIC + partition
            replicas = [(first + step) % brokers for step in range(REPLICAS)]
            yield PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=[_directory(each) for each in replicas],
            )


def _directory(broker: int) -> bytes:
    return b"directory" + broker.to_bytes(7, "big")


def encoded(records: Iterator[Message], base_offset: int = 0) -> list[bytes]:
    """Return the batches of a log with these records."""
    batches = []
    while chunk := list(islice(records, RECORDS_PER_BATCH)):
        values = [(None, encode_metadata_record(each), (), 0) for each in chunk]
        batches.append(build_batch(values, base_offset=base_offset))
        base_offset += len(chunk)
    return batches


def replay(machine: MetadataMachine, log: Sequence[bytes]) -> float:
    """Apply all batches; return the CPU seconds."""
    began = time.process_time()
    for data in log:
        for batch in split_batches(data):
            for _ in machine.apply(batch):
                pass
    machine.tell()
    return time.process_time() - began


def measure_metadata(brokers: int, topics: int) -> None:
    """Measure the log, its replay, a snapshot, and the death of a broker."""
    count = topics * PARTITIONS_PER_TOPIC
    print(f"{brokers:,} brokers, {count:,} partitions of {REPLICAS} replicas")
    log = encoded(records_of(brokers, topics))
    before_mb, machine = resident_mb(), MetadataMachine()
    took = replay(machine, log)
    size = sum(map(len, log))
    print(f"  log {size / 1e6:.0f} MB, {size / count:.0f} bytes a partition; replay {took:.1f} s")
    print(f"  image {resident_mb() - before_mb:.0f} MB")
    measure_snapshot(machine.image)
    measure_death(machine, sum(map(len, log)))


def measure_snapshot(image: MetadataImage) -> None:
    """Write a snapshot of the image, and load it."""
    began = time.process_time()
    data = build_snapshot([encode_metadata_record(each) for each in each_snapshot_record(image)],
                          1, 0, 0)  # fmt: skip
    written = time.process_time()
    other = MetadataMachine()
    other.load_snapshot(OffsetAndEpoch(1, 1), data)
    print(
        f"  snapshot {len(data) / 1e6:.0f} MB, written in {written - began:.1f} s, loaded in "
        f"{time.process_time() - written:.1f} s"
    )
    assert other.image == image


def measure_death(machine: MetadataMachine, next_offset: int) -> None:
    """Let a broker die: the controller decides, and every node replays the decision."""
    image = machine.image
    led = sum(1 for topic in image.topics.by_id.values()
              for each in topic.partitions.values() if each.leader == DEAD_BROKER)  # fmt: skip
    config = ControllerConfig(features_at_format={METADATA_VERSION: LATEST_METADATA_VERSION})
    controller = Controller(image, config, random.Random(1))
    began = time.process_time()
    controller.activate(Moment(0, 0, next_offset))
    print(f"  another controller becomes active in {time.process_time() - began:.2f} s")
    began = time.process_time()
    decided = controller.lose_broker(DEAD_BROKER, Moment(0, 0, next_offset))
    took = time.process_time() - began
    log = encoded(iter(decided), next_offset)
    replayed = replay(machine, log)
    print(
        f"  a broker dies that leads {led:,}: decided in {took:.2f} s, {len(decided):,} records, "
        f"{sum(map(len, log)) / 1e3:.0f} KB; replayed in {replayed:.3f} s"
    )
    assert image.brokers[DEAD_BROKER].is_fenced
    for topic in image.topics.by_id.values():
        for each in topic.partitions.values():
            assert each.leader in each.isr, each
            assert DEAD_BROKER not in each.isr, each


def measure_costs() -> None:
    """Measure the memory that one node needs for a partition, a connection and a group."""
    raise_limit()
    with Millstream() as server, ExitStack() as stack:
        wait_for_first_record(server.port, 60)
        connection = Pipelined(server.port)
        find_coordinators(connection)
        costs = {}
        before = server.resident_bytes()
        create_topic(server, "many", COUNT)
        costs["partition"], before = server.resident_bytes() - before, server.resident_bytes()
        for _ in range(COUNT):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        # They are all accepted when a later one is answered.
        assert stable_groups(Pipelined(server.port)) == 0
        costs["idle connection"] = server.resident_bytes() - before
        before = server.resident_bytes()
        join_groups(connection, COUNT)
        assert stable_groups(connection) == COUNT
        costs["group of one member"] = server.resident_bytes() - before
    for name, size in costs.items():
        print(f"  one {name}: {size / COUNT / 1e3:.1f} KB of memory")
