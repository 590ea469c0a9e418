"""The Raft node with its log, its files, the connections to other voters, and its callers.

An input waits in a queue until `run` gives it to the node and carries out the outputs; several
waiting inputs are carried out with one flush. `on_input` is called when an input has arrived. The
records that a leader sends are checked in steps before they become an input, which to the node
looks like an answer that was under way for longer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from broker.log.partition_log import PartitionLog
from broker.log.storage import Storage, read_file, replace_file
from broker.model import OffsetAndEpoch
from broker.raft.config import RaftConfig
from broker.raft.messages import RaftResponse, partition_of, replica_id_of
from broker.raft.node import RaftNode
from broker.raft.output import Envelope, Output
from broker.raft.quorum_state import (
    FILE_NAME,
    NO_NODE,
    DamagedQuorumState,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)
from broker.raft.voter_messages import VoterResponse
from broker.server.clock import Clock, Random
from broker.server.network.later import Later
from broker.server.quorum.raft.driver import Effects, QuorumListener, RaftDriver
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from broker.server.quorum.raft.peers import Peers
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterResponse
from common.kafka.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from common.kafka.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from common.kafka.protocol.messages.vote import VoteRequest
from common.kafka.protocol.records.metadata import decode_metadata_record

log = logging.getLogger("millstream.quorum.raft")

MAX_FETCH_WAIT_MS = 30_000
READ_AT_ONCE_BYTES = 16 * 1024
"""About two hundred records."""
WARN_EVERY_MS = 60_000


class RaftShell:
    """Runs a Raft node. `detects_failures_fast`: a refused connection ends a leadership."""

    def __init__(
        self,
        config: RaftConfig,
        metadata_log: PartitionLog,
        storage: Storage,
        *,
        directory: str,
        clock: Clock,
        random_source: Random,
        peers: Peers,
        loop: asyncio.AbstractEventLoop,
        listener: QuorumListener,
        detects_failures_fast: bool,
    ) -> None:
        self._config = config
        self._clock = clock
        self._loop = loop
        self.peers = peers
        self.log = PartitionRaftLog(
            metadata_log,
            SnapshotFiles(storage, directory),
            clock.timestamp_ms,
            decode_metadata_record,
        )
        try:
            quorum_state = load_quorum_state(storage, directory)
        except DamagedQuorumState as error:
            raise OSError(str(error)) from error
        if quorum_state.leader_epoch < self.log.last_epoch:
            log.warning(
                "epoch taken from the log, quorum-state is lost or older directory=%s "
                "leader_epoch=%d last_epoch=%d: a vote it had given is forgotten",
                directory,
                quorum_state.leader_epoch,
                self.log.last_epoch,
            )
        self.node = RaftNode(config, quorum_state, self.log, random_source)
        peers.address_of = self.node.endpoint_of
        effects = Effects(
            lambda state: save_quorum_state(storage, directory, state), self._send, listener
        )
        self._driver = RaftDriver(self.node, self.log, config.node_id, effects)
        self._inputs: deque[Callable[[int], Output]] = deque()
        self._asked: dict[int, Later] = {}
        """The requests of other nodes that are not answered, by token."""
        self._next_token = 0
        self._warned_of: dict[tuple[int, ErrorCode], int] = {}
        """When the log was told of a refusal last, by the node that refused."""
        self.on_input: Callable[[], None] = lambda: None
        peers.on_answer = self._on_answer
        peers.on_failed = self._on_failed
        if detects_failures_fast:
            peers.on_refused = self._on_refused

    @property
    def applied_offset(self) -> int:
        """The offset below which the log is applied."""
        return self._driver.applied_offset

    @property
    def has_work(self) -> bool:
        """True if `run` has work to do."""
        return bool(self._inputs) or self._driver.has_work

    @property
    def is_applying(self) -> bool:
        """True if `run` has left committed batches to a later turn."""
        return self._driver.is_applying

    # Inputs.

    def start(self) -> None:
        """Take up the role that follows from the files."""
        self._driver.start(self._clock.now_ms())

    def step(self, request: Message) -> Later:
        """Queue a request of another node; return a Later of the answer."""
        if isinstance(request, FetchRequest):
            request.max_wait_ms = min(request.max_wait_ms, MAX_FETCH_WAIT_MS)
        sender = _sender_of(request)
        self.peers.wake(sender)
        token, self._next_token = self._next_token, self._next_token + 1
        asked = self._asked[token] = Later()
        envelope = Envelope(sender, self._config.node_id, token, request)
        self._input(partial(self.node.step, envelope))
        return asked

    def append(self, batch: bytes) -> OffsetAndEpoch:
        """Append as the leader; raises KafkaError without any change."""
        position, output = self.node.append(batch, self._clock.now_ms())
        self._driver.take(output)
        return position

    def upgrade_kraft_version(self, level: int, *, validate_only: bool) -> OffsetAndEpoch | None:
        """Raise `kraft.version` as the leader; raises KafkaError without any change."""
        position, output = self.node.upgrade_kraft_version(
            level, self._clock.now_ms(), validate_only=validate_only
        )
        self._driver.take(output)
        return position

    def tick(self) -> None:
        """Give the time to the node, for its deadlines."""
        self._input(self.node.tick)

    def stop(self) -> None:
        """Begin to hand the leadership over."""
        self._input(self.node.stop)

    def run(self) -> None:
        """Carry out all waiting inputs, and one step of a batch that is applied in steps.

        Raises OSError when the disk fails.
        """
        now_ms = self._clock.now_ms()
        while self._inputs:
            self._driver.take(self._inputs.popleft()(now_ms))
        self._driver.run(now_ms)

    def close(self) -> None:
        """Drop the connections."""
        self.peers.close()
        self._asked.clear()

    def _input(self, take: Callable[[int], Output]) -> None:
        self._inputs.append(take)
        self.on_input()

    # The network.

    def _send(self, envelope: Envelope) -> None:
        if not isinstance(envelope.message, RaftResponse | VoterResponse):
            self.peers.send(envelope)
            return
        asked = self._asked.pop(envelope.correlation_id, None)
        if asked is not None:
            asked.done(envelope.message)

    def _on_answer(self, envelope: Envelope) -> None:
        self._tell_of_refusal(envelope)
        self._read_on(envelope, self._read_ahead(envelope.message))

    def _tell_of_refusal(self, envelope: Envelope) -> None:
        """Log why another controller refuses this node, once a minute: the node goes on asking."""
        answer = envelope.message
        code = ErrorCode(getattr(answer, "error_code", ErrorCode.NONE))
        is_about_voters = isinstance(answer, AddRaftVoterResponse | RemoveRaftVoterResponse)
        is_id_taken = isinstance(answer, FetchResponse) and code is ErrorCode.INVALID_REQUEST
        is_elsewhere = code is ErrorCode.INCONSISTENT_CLUSTER_ID
        if code is ErrorCode.NONE or not (is_about_voters or is_elsewhere or is_id_taken):
            return
        key, now_ms = (envelope.source, code), self._clock.now_ms()
        if now_ms - self._warned_of.get(key, -WARN_EVERY_MS) < WARN_EVERY_MS:
            return
        self._warned_of[key] = now_ms
        host, port = self.node.endpoint_of(envelope.source) or ("", 0)
        address = f"{host}:{port}"
        if is_id_taken:
            log.error(
                "the controller at %s refuses what this node fetches: it has node.id %d itself. "
                "Give this node another node.id",
                address,
                self._config.node_id,
            )
        elif is_elsewhere:
            log.error(
                "the controller at %s belongs to another cluster than this node, whose cluster id "
                "is %s. Check controller.quorum.voters or controller.quorum.bootstrap.servers, or "
                "format this node's directories with the cluster id of that controller",
                address,
                self._config.cluster_id,
            )
        else:
            why = getattr(answer, "error_message", None) or code.name
            log.info("not a voter yet, asking again: %s", why)

    def _read_ahead(self, answer: Message) -> Iterator[None]:
        fetched = partition_of(answer) if isinstance(answer, FetchResponse) else None
        records = None if fetched is None else fetched.records
        if isinstance(records, memoryview | bytes) and len(records) > READ_AT_ONCE_BYTES:
            assert fetched is not None, "its records are here"
            # The records are a view of a buffer that is valid for this turn only.
            fetched.records = kept = bytes(records)
            yield from self.log.read_ahead(kept)

    def _read_on(self, envelope: Envelope, steps: Iterator[None]) -> None:
        for _ in steps:
            self._loop.call_soon(self._read_on, envelope, steps)
            return
        self._input(partial(self.node.step, envelope))

    def _on_failed(self, envelope: Envelope) -> None:
        self._input(partial(self.node.fail, envelope))

    def _on_refused(self, node_id: int) -> None:
        self._input(partial(self.node.lose, node_id))


def _sender_of(request: Message) -> int:
    """Return the node that a request names as its sender; NO_NODE if it names none."""
    match request:
        case VoteRequest():
            vote = partition_of(request)
            return NO_NODE if vote is None else vote.replica_id
        case BeginQuorumEpochRequest():
            epoch = partition_of(request)
            return NO_NODE if epoch is None else epoch.leader_id
        case FetchRequest():
            return replica_id_of(request)
        case _:
            return NO_NODE


def load_quorum_state(storage: Storage, directory: str) -> QuorumState:
    """Return the saved state, or an empty one without a file; raises DamagedQuorumState."""
    path = f"{directory}/{FILE_NAME}"
    data = read_file(storage, path)
    if data is None:
        return QuorumState()
    try:
        return decode_quorum_state(data)
    except DamagedQuorumState as error:
        raise DamagedQuorumState(
            f"{error} ({path}): restore it; without it this node may vote twice in an epoch, which "
            "does no harm where it is the only voter: there the file may be removed"
        ) from error


def save_quorum_state(storage: Storage, directory: str, state: QuorumState) -> None:
    """Write the state; return when it survives a power failure."""
    replace_file(storage, f"{directory}/{FILE_NAME}", encode_quorum_state(state))
