"""One simulated node of the quorum: the real driver, log and files over a simulated disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from broker.log.config import LogConfig
from broker.log.local_log import LogPlace
from broker.log.log_start import OpenHints
from broker.log.recovery import open_partition_log
from broker.log.storage import DelayedDeletion
from broker.model import OffsetAndEpoch, TopicPartition
from broker.raft.config import METADATA_TOPIC, RaftConfig
from broker.raft.node import RaftNode
from broker.raft.output import Envelope, LeaderChange
from broker.raft.voter_set import VoterSet, voters_record
from broker.records.batch import RecordBatch
from broker.records.build import build_batch
from broker.server.quorum.raft.driver import Effects, RaftDriver
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from broker.server.quorum.raft.raft_shell import load_quorum_state, save_quorum_state
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from broker.server.quorum.raft.snapshot_format import build_snapshot, snapshot_values
from tests.lib.logs import store_snapshot
from tests.lib.simulated_storage import SimulatedStorage

DIRECTORY = f"/logs/{METADATA_TOPIC}-0"
PARTITION = TopicPartition(METADATA_TOPIC, 0)
EPOCH_MS = 1_700_000_000_000
LOG_CONFIG = LogConfig(
    cleanup_policy=(), retention_ms=-1, retention_bytes=-1, internal_segment_bytes=2_000
)


class StateMachine:
    """Keeps the values in order, which reveals any difference.

    It applies some batches in steps, as the real one does for very large batches.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.values: list[bytes] = []
        self.last_batch = OffsetAndEpoch(0, 0)
        """The end offset and epoch of the last applied batch, which name a snapshot."""
        self.leader: LeaderChange | None = None
        self.applied_batches: list[RecordBatch] = []
        """The batches applied since the last check."""

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        self.values = list(snapshot_values(data))
        self.last_batch = snapshot_id
        self.applied_batches.clear()

    def apply(self, batch: RecordBatch) -> Iterator[None]:
        for _ in range(self._random.choice([0, 0, 0, 1, 4])):
            yield
        if not batch.header.is_control:
            self.values += [bytes(record.value) for record in batch.records()]
        self.last_batch = OffsetAndEpoch(batch.next_offset, batch.header.partition_leader_epoch)
        self.applied_batches.append(batch)

    def change_leader(self, change: LeaderChange) -> None:
        self.leader = change


class SimulatedNode:
    """A process on a disk; `node` and `driver` are None while it is down."""

    def __init__(self, config: RaftConfig, seed: int, send) -> None:
        self.config = config
        self.node_id = config.node_id
        self.random = Random(seed)
        self.storage = SimulatedStorage(seed)
        self.storage.make_directory(DIRECTORY)
        self.storage.sync_directory("/logs")
        self.send = send
        self.incarnation = 0
        self.is_paused = False
        self.inbox: list = []
        self.in_flight = None
        """The output that is being persisted; meanwhile inputs wait in `inbox`."""
        self.proposals: list[tuple[OffsetAndEpoch, bytes]] = []
        self.survived_offset = 0
        """The durable end of the log when the process last ended."""
        self.node: RaftNode | None = None
        self.driver: RaftDriver | None = None
        self.machine = StateMachine(self.random)
        self.open_log()

    def format(self, voters: VoterSet) -> None:
        """Write the snapshot that names the voters of a new quorum (KIP-853)."""
        nothing = OffsetAndEpoch(0, 0)
        snapshots = SnapshotFiles(self.storage, DIRECTORY)
        data = build_snapshot([], 0, EPOCH_MS, EPOCH_MS, voters_record(voters))
        snapshots.write(nothing, 0, data)
        snapshots.finish(nothing)
        self.open_log()

    @property
    def is_up(self) -> bool:
        return self.node is not None

    @property
    def durable_offset(self) -> int:
        """The end of the log that would survive a power failure."""
        self.survived_offset = min(self.survived_offset, self.log.end_offset)
        return max(self.survived_offset, self.partition_log.recovery_point)

    def open_log(self) -> None:
        """Recover the log from the disk; also used to check a node that is down."""
        place = LogPlace(self.storage, DelayedDeletion(self.storage))
        hints = OpenHints(timestamp_ms=EPOCH_MS)
        self.partition_log = open_partition_log(PARTITION, DIRECTORY, LOG_CONFIG, place, hints)
        snapshots = SnapshotFiles(self.storage, DIRECTORY)
        self.log = PartitionRaftLog(self.partition_log, snapshots, lambda: EPOCH_MS)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let a checker read the disk without failures and without counting."""
        remaining, self.storage._remaining = self.storage._remaining, None
        try:
            yield
        finally:
            self.storage._remaining = remaining

    def start(self, now_ms: int) -> None:
        assert not self.is_up
        self.incarnation += 1
        self.open_log()
        quorum = load_quorum_state(self.storage, DIRECTORY)
        self.machine = StateMachine(self.random)
        self.node = RaftNode(self.config, quorum, self.log, self.random)
        effects = Effects(
            lambda state: save_quorum_state(self.storage, DIRECTORY, state),
            self.send,
            self.machine,
        )
        self.driver = RaftDriver(self.node, self.log, self.node_id, effects)
        self.driver.start(now_ms)

    def crash(self, *, keep_unsynced: bool) -> None:
        """End the process by a kill or a power failure."""
        self.node = self.driver = self.in_flight = None
        self.inbox.clear()
        self.proposals.clear()
        self.is_paused = False
        durable_offset = self.durable_offset
        self.storage.crash(keep_unsynced=keep_unsynced)
        self.open_log()
        self.survived_offset = durable_offset if keep_unsynced else self.log.end_offset

    # Inputs; each returns what the driver must carry out.

    def step(self, envelope: Envelope, now_ms: int) -> None:
        self.driver.take(self.node.step(envelope, now_ms))

    def tick(self, now_ms: int) -> None:
        self.driver.take(self.node.tick(now_ms))

    def propose(self, value: bytes, now_ms: int) -> None:
        if not self.node.is_leader:
            self.tick(now_ms)
            return
        batch = build_batch([(None, value, (), EPOCH_MS)])
        position, output = self.node.append(batch, now_ms)
        self.driver.take(output)
        self.proposals.append((position, value))

    def take_snapshot(self, now_ms: int, *, is_cleaning: bool) -> None:
        """Write a snapshot of the applied state, and maybe delete the records that it contains."""
        self.tick(now_ms)
        snapshot_id = self.machine.last_batch
        if snapshot_id.offset <= self.log.start_offset:
            return
        if snapshot_id not in self.log.snapshot_ids():
            level, voters = self.node.voters_at(snapshot_id.offset)
            record = voters_record(voters) if level else None
            data = build_snapshot(
                self.machine.values, snapshot_id.leader_epoch, EPOCH_MS, EPOCH_MS, record
            )
            store_snapshot(self.log, snapshot_id, data)
        if is_cleaning:
            self.log.delete_before_snapshot(snapshot_id)

    def acknowledged(self) -> list[tuple[OffsetAndEpoch, bytes]]:
        """Return the proposals to acknowledge; drop those of a lost epoch."""
        if not self.node.is_leader:
            self.proposals.clear()
            return []
        done = [p for p in self.proposals if p[0].offset <= self.node.high_watermark]
        self.proposals = [p for p in self.proposals if p[0].offset > self.node.high_watermark]
        return [p for p in done if p[0].leader_epoch == self.node.leader_epoch]
