"""Share groups, ours beside Apache Kafka's: what 1, 10 and 100 members read and acknowledge.

`python -m bench share [--rounds 3] [--records 500000]`. One node each, a new one for every round,
ours and theirs in turn. The members are those of Kafka's own `ShareConsumerPerformance`, one thread
for each in one process of Java, which acknowledge what they have read with their next request. The
figures are the tool's own, so the time to join the group is part of them.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from bench.broker.side_by_side import create_topic
from bench.lib.cell_begin import begin_cell
from bench.lib.first_record import wait_for_first_record
from bench.lib.results import Results
from bench.lib.servers import SETTINGS, ApacheKafka, Millstream, Server, find_kafka

PARTITIONS = 6
RECORD_BYTES = 100
MEMBERS = (1, 10, 100)
TIMEOUT_MS = 60_000
SHARE_SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
}


def produce(server: Server, topic: str, records: int) -> None:
    """Produce the records, evenly to all partitions; this is not measured."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5})
    value = b"x" * RECORD_BYTES
    for number in range(records):
        producer.produce(topic, value, partition=number % PARTITIONS)
        if not number % 10_000:
            producer.flush()
    producer.flush()


def begin_group(server: Server, group: str) -> None:
    """Let a group begin with the first record."""
    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def consume(libraries: Path, server: Server, topic: str, members: int, records: int) -> float:
    """Read and acknowledge all records with a new group; return the records per second."""
    group = f"group-{topic}-{members}"
    begin_group(server, group)
    command = [
        *("java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{libraries}/*"),
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--bootstrap-server", server.bootstrap, "--topic", topic, "--group", group),
        *("--num-records", str(records), "--threads", str(members)),
        *("--timeout", str(TIMEOUT_MS), "--hide-header"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    fields = [field.strip() for field in done.stdout.splitlines()[-1].split(",")]
    if int(fields[5]) < records:
        raise AssertionError(f"{fields[5]} of {records} records: {done.stdout}{done.stderr}")
    return float(fields[4])


def measure(server: Server, libraries: Path, results: Results, records: int) -> None:
    """Measure one round on a new server."""
    wait_for_first_record(server.port, 60)
    create_topic(server, "jobs", PARTITIONS)
    produce(server, "jobs", records)
    for members in MEMBERS:
        begin_cell()
        before = server.cpu_seconds()
        rate = consume(libraries, server, "jobs", members, records)
        cpu = server.cpu_seconds() - before
        name = f"{members} members" if members > 1 else "1 member"
        results.add(f"{name}: records/s", server.name, rate)
        results.add(
            f"{name}: server CPU s per M", server.name, 1e6 * cpu / records, lower_is_better=True
        )


def main(arguments: list[str]) -> int:
    """Run the benchmark, and print its table."""
    parser = argparse.ArgumentParser(prog="python -m bench share", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=500_000)
    options = parser.parse_args(arguments)
    libraries = find_kafka()
    if libraries is None:
        print("the members are Java's: Apache Kafka's jars or Java are missing", file=sys.stderr)
        return 1
    SETTINGS.update(SHARE_SETTINGS)
    results = Results()
    for _ in range(options.rounds):
        for make in (Millstream, lambda: ApacheKafka(libraries)):
            with make() as server:
                measure(server, libraries, results, options.records)
    print("\n".join(results.rows()))
    return 0
