"""One Raft node with a real log on a simulated disk, and what the others say to it."""

from random import Random

from broker.model import OffsetAndEpoch
from broker.raft.config import RaftConfig
from broker.raft.messages import (
    begin_epoch_request,
    fetch_request,
    partition_of,
    vote_request,
    vote_response,
)
from broker.raft.node import RaftNode
from broker.raft.output import Envelope, Output
from broker.raft.quorum_state import QuorumState
from broker.raft.voter_set import ReplicaKey, static_voters
from broker.records.build import build_batch
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import fetch, vote
from common.kafka.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.vote import VoteRequest
from tests.lib.logs import open_log
from tests.lib.simulated_storage import SimulatedStorage

DIRECTORY = "/logs/__cluster_metadata-0"
CLUSTER_ID = "cluster"
EMPTY = OffsetAndEpoch(0, 0)


def open_raft_log(storage: SimulatedStorage) -> PartitionRaftLog:
    log = open_log(storage, directory=DIRECTORY)
    return PartitionRaftLog(log, SnapshotFiles(storage, DIRECTORY), lambda: 1_000)


def batch_of(*values: str) -> bytes:
    return build_batch([(None, value.encode(), (), 1_000) for value in values])


class Peer:
    """The node under test, 1 of three voters unless said; outputs are carried out at once."""

    def __init__(
        self,
        quorum: QuorumState | None = None,
        *,
        node_id: int = 1,
        voters: tuple[int, ...] = (1, 2, 3),
        epochs: tuple[int, ...] = (),
        storage: SimulatedStorage | None = None,
        **settings,
    ) -> None:
        self.now_ms = 0
        self.config = RaftConfig(
            node_id=node_id, voters=static_voters(voters), cluster_id=CLUSTER_ID, **settings
        )
        self.storage = storage or SimulatedStorage()
        self.log = open_raft_log(self.storage)
        for epoch in epochs:
            self.log.append_as_leader(batch_of(f"e{epoch}"), epoch)
        self.log.flush()
        self.saved: QuorumState | None = None
        self.sent: list[Envelope] = []
        self.outputs: list[Output] = []
        self.node = RaftNode(self.config, quorum or QuorumState(), self.log, Random(7))
        self.carry_out(self.node.start(0))

    def carry_out(self, output: Output) -> None:
        self.outputs.append(output)
        if output.quorum_state is not None:
            self.saved = output.quorum_state
        if output.must_flush:
            self.log.flush()
        self.sent += output.send
        if output.must_flush:
            self.carry_out(self.node.flushed(self.log.end_offset, self.now_ms))

    def take_sent(self, kind: type[Message] | None = None) -> list[Envelope]:
        sent, self.sent = self.sent, []
        return [envelope for envelope in sent if kind is None or type(envelope.message) is kind]

    def receive(self, source: int, message: Message, correlation_id: int = 1) -> list[Envelope]:
        """Give a request to the node; gives what it sends because of it."""
        self.take_sent()
        envelope = Envelope(source, self.config.node_id, correlation_id, message)
        self.carry_out(self.node.step(envelope, self.now_ms))
        return self.take_sent()

    def answer(self, request: Envelope, message: Message) -> list[Envelope]:
        """Answer a request of the node's."""
        return self.receive(request.destination, message, request.correlation_id)

    def wait_ms(self, duration_ms: int) -> list[Envelope]:
        """Let time pass, with a tick at every deadline."""
        until_ms = self.now_ms + duration_ms
        while (due_ms := self.node.next_deadline_ms()) <= until_ms:
            assert due_ms > self.now_ms or self.now_ms == 0, (due_ms, self.node.role)
            self.now_ms = max(due_ms, self.now_ms)
            self.carry_out(self.node.tick(self.now_ms))
        self.now_ms = until_ms
        return self.take_sent()

    def wait_for(self, kind: type[Message]) -> list[Envelope]:
        """Let time pass until the node sends something."""
        for _ in range(100):
            sent = [envelope for envelope in self.sent if type(envelope.message) is kind]
            if sent:
                self.sent = []
                return sent
            self.now_ms = max(self.node.next_deadline_ms(), self.now_ms)
            self.carry_out(self.node.tick(self.now_ms))
        raise AssertionError(f"no {kind.__name__} from {self.node.role}")

    def become_leader(self, voters: tuple[int, ...] = (2,)) -> None:
        """Win a pre-vote and a vote with the yes of some."""
        for _ in range(2):
            requests = self.wait_for(VoteRequest)
            for request in requests:
                if request.destination in voters:
                    epoch = partition_of(request.message).replica_epoch
                    self.answer_keeping(request, vote_response(0, -1, epoch, is_granted=True))
        assert self.node.is_leader, self.node.role

    def answer_keeping(self, request: Envelope, message: Message) -> None:
        envelope = Envelope(
            request.destination, self.config.node_id, request.correlation_id, message
        )
        self.carry_out(self.node.step(envelope, self.now_ms))


def ask_vote(candidate_id: int, epoch: int, end: OffsetAndEpoch = EMPTY, **fields) -> VoteRequest:
    partition = vote.PartitionData(
        replica_id=candidate_id,
        replica_epoch=epoch,
        last_offset=end.offset,
        last_offset_epoch=end.leader_epoch,
        **fields,
    )
    return vote_request(CLUSTER_ID, 1, partition)


def announce(leader_id: int, epoch: int) -> BeginQuorumEpochRequest:
    return begin_epoch_request(CLUSTER_ID, ReplicaKey(1), leader_id, epoch)


def pull(replica_id: int, epoch: int, offset: int, last_epoch: int, **fields) -> FetchRequest:
    max_wait_ms = fields.pop("max_wait_ms", 500)
    partition = fetch.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
        **fields,
    )
    return fetch_request(CLUSTER_ID, replica_id, max_wait_ms, partition)


def only(envelopes: list[Envelope]):
    """Give the partition of the only message there is."""
    (envelope,) = envelopes
    return partition_of(envelope.message)
