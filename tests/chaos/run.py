"""One run: a cluster, a load, faults one after the other, and a final read of all records.

A run does not judge: it returns a history and a list of the faults with their times, which are
checked afterwards.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from rich.console import Console

from millstream.testing import BrokerFailedError, LocalCluster
from millstream.testing.chaos.breaking import Breaking
from millstream.testing.chaos.schedule import Fault, expected_keys, possible_faults, shuffled
from tests.chaos.availability import Window
from tests.chaos.clients import (
    AiokafkaClient,
    Client,
    ConfluentClient,
    KafkaPythonClient,
    Loop,
)
from tests.chaos.cluster_view import ClusterView
from tests.chaos.disk_shim import break_disk, build_shim
from tests.chaos.history import Kind, Outcome
from tests.chaos.load import Pulse, Worker
from tests.chaos.recorder import Outcomes, Recorder
from tests.chaos.report import Suffered

TOPIC, PARTITIONS = "chaos", 6
FIRST_PULSE, FIRST_READER = 100, 200
WHOLE_SECONDS, JOIN_SECONDS, FINAL_READ_SECONDS = 120.0, 90.0, 200.0
LOOK_SECONDS = 0.05
# Timeouts shorter than a fault, so that the cluster notices a silent node.
SETTINGS = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
}


class Options(NamedTuple):
    """The options of a run; `only` names faults (`possible_faults`)."""

    seconds: float
    seed: int
    brokers: int
    replication_factor: int
    only: Sequence[str]


class Lived(NamedTuple):
    """The result of a run; the problems are those that the history does not show."""

    suffered: list[Suffered]
    problems: list[str]


class NotWholeError(Exception):
    """The cluster did not recover."""


def settings_of(replication_factor: int) -> dict[str, str]:
    """Return the cluster's settings for a replication factor of all topics."""
    if replication_factor == 1:
        return SETTINGS
    factor = str(replication_factor)
    return SETTINGS | {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": str(replication_factor // 2 + 1),
        "min.insync.replicas": str(replication_factor // 2 + 1),
    }


def run(options: Options, recorder: Recorder, folder: Path, console: Console) -> Lived:
    """Run until all records are read; return the result."""
    shim = build_shim(folder)
    source = random.Random(options.seed)
    faults = possible_faults(
        options.replication_factor, has_disk_faults=shim is not None, only=options.only
    )
    assert faults, f"there is no such fault: {options.only}"
    if shim is None:
        console.print("there is no gcc: disks neither fail nor are slow")
    cluster = LocalCluster(
        brokers=options.brokers,
        environment={"LD_PRELOAD": str(shim)} if shim else {},
        **settings_of(options.replication_factor),
    )
    with cluster:
        try:
            return _Run(options, cluster, recorder, source, console).live(faults)
        finally:
            for node_id in cluster.node_ids:
                log = folder / f"node-{node_id}.log"
                log.write_text(cluster.log(node_id))


class _Run:
    def __init__(
        self,
        options: Options,
        cluster: LocalCluster,
        recorder: Recorder,
        source: random.Random,
        console: Console,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._recorder = recorder
        self._source = source
        self._console = console
        self._view = ClusterView(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        self._breaking = Breaking(cluster, source, self._wait_until_whole, break_disk=break_disk)
        self._lived = Lived([], [])

    def live(self, faults: list[Fault]) -> Lived:
        self._view.create(self._options.replication_factor)
        loop = Loop()
        try:
            with self._load(loop):
                self._try(self._wait_until_whole)
                self._try(lambda: self._suffer_all(faults))
            self._try(lambda: self._read_everything(loop))
        finally:
            loop.close()
        return self._lived

    def _try(self, work: Callable[[], None]) -> None:
        """Call `work`; if the cluster does not recover, end the faults but not the run."""
        try:
            work()
        except (NotWholeError, BrokerFailedError, KafkaException) as error:
            self._lived.problems.append(str(error).partition("\n")[0])

    # The load.

    @contextmanager
    def _load(self, loop: Loop) -> Iterator[None]:
        bootstrap = self._cluster.bootstrap_servers
        makers: list[Callable[[], Client]] = [
            *[lambda: ConfluentClient(bootstrap)] * 2,
            *[lambda: AiokafkaClient(bootstrap, loop)] * 2,
            lambda: KafkaPythonClient(bootstrap),
        ]
        keys = self._view.keys
        pulse = Pulse(bootstrap, keys, self._recorder, FIRST_PULSE)
        workers = [
            Worker(number, make, keys, self._recorder, random.Random(self._source.random()))
            for number, make in enumerate(makers, 1)
        ]
        pulse.start()
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.join(JOIN_SECONDS)
                if worker.is_alive():
                    self._lived.problems.append(f"{worker.name} does not end")
                if worker.failure is not None:
                    self._lived.problems.append(f"{worker.name}: {worker.failure!r}")
            pulse.stop()

    # The faults.

    def _suffer_all(self, faults: list[Fault]) -> None:
        end_ms = self._recorder.now_ms() + self._options.seconds * 1000
        for fault in shuffled(faults, self._source):
            if self._recorder.now_ms() + fault.hold_ms > end_ms:
                break
            self._suffer(fault)

    def _suffer(self, fault: Fault) -> None:
        leader_of = self._view.leaders()
        victims = self._breaking.choose(fault, leader_of)
        expected = expected_keys(fault, leader_of, victims, self._options.replication_factor)
        start_ms = self._recorder.now_ms()
        self._console.print(f"{start_ms / 1000:7.1f} s  {fault}: {victims}")
        self._breaking.begin(fault, victims)
        # The duration of the fault, not a wait for a condition.
        threading.Event().wait(fault.hold_ms / 1000)
        window = Window(start_ms, self._recorder.now_ms())
        try:
            for node_id in self._breaking.end(fault, victims):
                self._lived.problems.append(f"node {node_id} died in: {fault} of {victims}")
            self._wait_until_whole()
        finally:
            whole_ms = self._recorder.now_ms()
            self._lived.suffered.append(Suffered(fault, victims, window, whole_ms, expected))

    def _wait_until_whole(self) -> None:
        """Wait until every partition accepts records and has all its replicas in the ISR."""
        since_ms = self._recorder.now_ms()
        deadline = time.monotonic() + WHOLE_SECONDS
        while (
            silent := [
                key
                for key in self._view.keys
                if not self._recorder.is_acknowledged_since(key, since_ms)
            ]
            or self._view.lacking()
        ):
            down = [one for one in self._cluster.node_ids if not self._cluster.node(one).is_running]
            if down or time.monotonic() > deadline:
                raise NotWholeError(
                    f"the cluster is not whole again: down are {down}, no records are taken by, "
                    f"or not all replicas are in sync of, {silent}"
                )
            time.sleep(LOOK_SECONDS)

    # The end.

    def _read_everything(self, loop: Loop) -> None:
        """Read all partitions from start to end, with new clients."""
        bootstrap = self._cluster.bootstrap_servers
        for number, client in enumerate(
            (ConfluentClient(bootstrap), AiokafkaClient(bootstrap, loop)), FIRST_READER
        ):
            self._recorder.add(
                number,
                Kind.ASSIGN,
                self._recorder.now_ms(),
                Outcomes(Outcome.OK, rebalanced=tuple(self._view.keys)),
                self._view.keys,
            )
            client.assign(dict.fromkeys(self._view.keys))
            left = self._read_to_the_end(number, client, self._view.end_offsets())
            if left:
                self._lived.problems.append(f"reader {number} did not get to the end of {left}")
            client.close()

    def _read_to_the_end(self, process: int, client: Client, end: dict[str, int]) -> dict[str, int]:
        deadline = time.monotonic() + FINAL_READ_SECONDS
        left = {key: offset for key, offset in end.items() if offset > 0}
        while left and time.monotonic() < deadline:
            start_ms = self._recorder.now_ms()
            done = client.poll()
            self._recorder.add(process, Kind.POLL, start_ms, done)
            for found in done.reads:
                if left.get(found.key, 0) <= found.offset + 1:
                    left.pop(found.key, None)
        return left
