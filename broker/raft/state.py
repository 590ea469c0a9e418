"""A node's whole state and its changes of role. The other files of this package work on it.

Invariants:

- `quorum.leader_epoch` only grows; within an epoch, vote and leader are set at most once.
- `high_watermark` only grows, and `log.start_offset` <= `high_watermark` <= `log.end_offset`.
- `role` is an `Observer` if and only if this node is not a voter.
- Every change of role clears the pending requests; a leader's parked Fetches are then answered.
"""

from dataclasses import replace

from broker.errors import ErrorCode
from broker.protocol.message import Message
from broker.protocol.records.quorum import LeaderChangeMessage, Voter
from broker.raft.claims import check_claim
from broker.raft.config import RaftConfig, RandomSource
from broker.raft.log import RaftLog
from broker.raft.output import Envelope, LeaderChange, Output
from broker.raft.progress import ReplicaProgress
from broker.raft.quorum_state import MAX_EPOCH, NO_NODE, QuorumState
from broker.raft.requests import Requests
from broker.raft.roles import (
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Observer,
    ParkedFetch,
    Prospective,
    Resigned,
    Role,
    Tally,
    Unattached,
)


class RaftState:
    """See the module."""

    def __init__(
        self, config: RaftConfig, quorum: QuorumState, log: RaftLog, random: RandomSource
    ) -> None:
        self.config = config
        self.quorum = quorum
        self.log = log
        self.random = random
        self.role: Role = Unattached(0) if config.is_voter else Observer(None, 0)
        self.high_watermark = max([log.start_offset, *(x.offset for x in log.snapshot_ids())])
        self.requests = Requests(random.randrange(0, 2**30), config.request_timeout_ms)
        self.output = Output()
        self.abandoned: list[ParkedFetch] = []
        """The Fetches that were parked when this node stopped leading; `leading` answers them."""
        self.is_stopping = False

    @property
    def epoch(self) -> int:
        """Return the epoch this node is in."""
        return self.quorum.leader_epoch

    @property
    def leader_id(self) -> int:
        """Return the leader to send a client to, -1 if there is none."""
        match self.role:
            case Leader():
                return self.config.node_id
            case Follower(leader_id):
                return leader_id
            case Observer(leader_id) if leader_id is not None:
                return leader_id
        return NO_NODE

    # Messages and the high watermark.

    def request(self, destination: int, message: Message, now_ms: int) -> None:
        """Send a request; its response counts until the role changes."""
        correlation_id = self.requests.start(destination, now_ms)
        self.output.send.append(Envelope(self.config.node_id, destination, correlation_id, message))

    def respond(self, request: Envelope, message: Message) -> None:
        """Answer a request."""
        self.output.send.append(
            Envelope(self.config.node_id, request.source, request.correlation_id, message)
        )

    def advance_high_watermark(self, offset: int) -> bool:
        """Mark everything below `offset` as committed; return False if it already was."""
        assert offset <= self.log.end_offset, (offset, self.log.end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = self.output.high_watermark = offset
        return True

    # Times.

    def random_election_deadline_ms(self, now_ms: int) -> int:
        """Draw a deadline one to two election timeouts away, so that split votes are rare."""
        timeout_ms = self.config.election_timeout_ms
        return now_ms + timeout_ms + self.random.randrange(0, timeout_ms)

    def random_backoff_deadline_ms(self, now_ms: int) -> int:
        """Draw the time of the next attempt after a lost election."""
        return now_ms + self.random.randrange(1, self.config.election_backoff_max_ms + 1)

    # Changes of role.

    def _become(self, role: Role, quorum: QuorumState) -> None:
        allowed = TRANSITIONS[type(self.role)]
        assert type(role) in allowed, (self.role, role)
        self.enter(role, quorum)

    def enter(self, role: Role, quorum: QuorumState) -> None:
        """Take a role without a check against the table, as at the start."""
        assert quorum.leader_epoch >= self.quorum.leader_epoch, (quorum, self.quorum)
        if isinstance(self.role, Leader):
            self.abandoned += self.role.parked
        known_before = (self.leader_id, self.epoch)
        self.role = role
        self.requests.clear()
        self._remember(quorum)
        if (self.leader_id, self.epoch) != known_before:
            start_offset = role.epoch_start_offset if isinstance(role, Leader) else 0
            leader_id = None if self.leader_id == NO_NODE else self.leader_id
            change = LeaderChange(leader_id, self.epoch, start_offset)
            self.output.leader_changes.append(change)

    def _remember(self, quorum: QuorumState) -> None:
        before = self.quorum
        if quorum == before:
            return
        if quorum.leader_epoch == before.leader_epoch:
            assert not before.has_leader or quorum.leader_id == before.leader_id, (before, quorum)
        self.quorum = self.output.quorum_state = quorum

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """Become Unattached, or a searching Observer, in an epoch whose leader is unknown."""
        quorum = self.quorum if epoch == self.epoch else QuorumState(epoch)
        if not self.config.is_voter:
            self._become(self.looking_for_leader(now_ms), quorum)
            return
        deadline_ms = self.random_election_deadline_ms(now_ms)
        if isinstance(self.role, Unattached | Prospective | Candidate):
            # Keep the earlier deadline: otherwise candidates that cannot win could postpone this
            # node's own election for ever.
            deadline_ms = min(deadline_ms, max(self.role.deadline_ms, now_ms))
        self._become(Unattached(deadline_ms), quorum)

    def give_vote(self, candidate_id: int, directory_id: bytes, now_ms: int) -> None:
        """Vote for a candidate, and wait for its election. The vote is saved before it is sent."""
        assert not self.quorum.has_voted or self.quorum.voted_id == candidate_id, self.quorum
        quorum = replace(self.quorum, voted_id=candidate_id, voted_directory_id=directory_id)
        self._become(Unattached(self.random_election_deadline_ms(now_ms)), quorum)

    def become_follower(self, epoch: int, leader_id: int, now_ms: int) -> None:
        """Follow the leader of an epoch."""
        deadline_ms = now_ms + self.config.fetch_timeout_ms
        base = self.quorum if epoch == self.epoch else QuorumState(epoch)
        quorum = replace(base, leader_id=leader_id)
        if self.config.is_voter:
            self._become(Follower(leader_id, deadline_ms), quorum)
        else:
            self._become(Observer(leader_id, deadline_ms), quorum)

    def looking_for_leader(self, now_ms: int) -> Observer:
        """Return the role of an observer that asks one voter after the other for the leader."""
        voter_count = len(self.config.voters)
        return Observer(None, now_ms, asked=self.random.randrange(0, voter_count))

    def become_prospective(self, now_ms: int) -> None:
        """Start a pre-vote; a single voter becomes the leader at once."""
        tally = Tally(self.config.voters, granted={self.config.node_id})
        self._become(Prospective(self.random_election_deadline_ms(now_ms), tally), self.quorum)
        if tally.is_won:
            self.become_candidate(now_ms)

    def become_candidate(self, now_ms: int) -> None:
        """Vote for this node in the next epoch; without a next epoch, become Unattached."""
        if self.epoch >= MAX_EPOCH:
            self.become_unattached(self.epoch, now_ms)
            return
        config = self.config
        tally = Tally(config.voters, granted={config.node_id})
        quorum = QuorumState(
            leader_epoch=self.epoch + 1,
            voted_id=config.node_id,
            voted_directory_id=config.directory_id,
        )
        self._become(Candidate(self.random_election_deadline_ms(now_ms), tally), quorum)
        if tally.is_won:
            self.become_leader(tally, now_ms)

    def become_leader(self, tally: Tally, now_ms: int) -> None:
        """Lead, and append a LeaderChangeMessage.

        Only a record of this epoch can be committed by counting (Raft 5.4.2), so the leader adds
        one.
        """
        node_id, start_offset = self.config.node_id, self.log.end_offset
        progress = {voter: ReplicaProgress(now_ms) for voter in self.config.voters}
        quorum = replace(self.quorum, leader_id=node_id)
        self._become(Leader(start_offset, progress), quorum)
        message = LeaderChangeMessage(
            leader_id=node_id,
            voters=[Voter(voter_id=voter) for voter in self.config.voters],
            granting_voters=[Voter(voter_id=voter) for voter in sorted(tally.granted)],
        )
        self.log.append_leader_change(message, self.epoch)
        self.output.must_flush = True

    def become_resigned(self, now_ms: int) -> None:
        """Give up the leadership and ask the other voters for an election (EndQuorumEpoch)."""
        assert isinstance(self.role, Leader), self.role
        progress = self.role.progress
        candidates = sorted(
            self.config.other_voters, key=lambda voter: (-progress[voter].end_offset, voter)
        )
        deadline_ms = self.random_election_deadline_ms(now_ms)
        self._become(Resigned(deadline_ms, candidates, set(candidates)), self.quorum)

    def observe(self, epoch: int, leader_id: int, source: int, now_ms: int) -> bool:
        """Take over the epoch and leader of a message; return False if the claim is impossible.

        After False nothing has changed, and the caller must ignore the rest of the message.
        """
        if epoch < self.epoch:
            return True  # An old epoch changes nothing.
        code = check_claim(self.config, self.quorum, epoch, leader_id, needs_leader=False)
        if code is not ErrorCode.NONE:
            return False
        is_other = leader_id not in (NO_NODE, self.config.node_id)
        if epoch > self.epoch:
            if is_other:
                self.become_follower(epoch, leader_id, now_ms)
            else:
                self.become_unattached(epoch, now_ms)
        elif epoch == self.epoch and is_other:
            self._observe_leader(leader_id, source, now_ms)
        return True

    def _observe_leader(self, leader_id: int, source: int, now_ms: int) -> None:
        """Follow the leader of this epoch, unless this node already does or has given it up."""
        known_id = self.quorum.leader_id
        assert known_id in (NO_NODE, leader_id), (self.quorum, leader_id)
        match self.role:
            case Unattached() | Candidate() | Observer(None):
                self.become_follower(self.epoch, leader_id, now_ms)
            case Prospective() if known_id == NO_NODE or source == leader_id:
                self.become_follower(self.epoch, leader_id, now_ms)
