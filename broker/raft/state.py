"""A node's whole state and its changes of role. The other files of this package work on it.

Invariants:

- `quorum.leader_epoch` only grows; within an epoch, vote and leader are set at most once.
- `high_watermark` only grows, and `log.start_offset` <= `high_watermark` <= `log.end_offset`.
- After an input, `role` is an `Observer` if and only if this node does not take part in elections,
  except that a leader whose removal is committed is `Resigned` until it finds the next leader.
- `history` has the voter records of the log up to its end.
- Every change of role clears the pending requests; a leader's parked Fetches are then answered.
"""

from dataclasses import replace

from broker.raft.claims import check_claim
from broker.raft.config import RaftConfig, RandomSource
from broker.raft.log import RaftLog
from broker.raft.messages import addresses_in, name_leader, refusal_of
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
from broker.raft.voter_history import BEFORE_THE_LOG, VoterHistory
from broker.raft.voter_messages import VoterRequest
from broker.raft.voter_search import VoterSearch
from broker.raft.voter_set import DYNAMIC_VOTERS, ReplicaKey, VoterSet, voters_record
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.quorum import KRaftVersionRecord, LeaderChangeMessage, Voter

ELSEWHERE_FACTOR = 5
MAX_LEARNED = 64
"""The most addresses that are kept of those that other nodes name; there are few controllers."""


class RaftState:
    """A node's quorum state, log, voters and role, and the changes from one role to another."""

    def __init__(
        self, config: RaftConfig, quorum: QuorumState, log: RaftLog, random: RandomSource
    ) -> None:
        self.config = config
        self.quorum = quorum
        self.log = log
        self.random = random
        self.history = VoterHistory(config.voters, log)
        self.high_watermark = max([log.start_offset, *(x.offset for x in log.snapshot_ids())])
        self.role: Role = Unattached(0) if self.takes_part else Observer(None, 0)
        self.requests = Requests(random.randrange(0, 2**30), config.request_timeout_ms)
        self.output = Output()
        self.abandoned: list[ParkedFetch] = []
        """The Fetches that were parked when this node stopped leading; `leading` answers them."""
        self.is_stopping = False
        self.heard_leader: tuple[int, int] | None = None
        """The leader that answered last, and when."""
        self.started_ms = 0
        self._learned: dict[int, tuple[str, int]] = {}
        self._next_server = 0
        self.search = VoterSearch(config.bootstrap_servers)

    # The voters.

    @property
    def voters(self) -> VoterSet:
        """Return the newest voter set in the log, committed or not; it is the one that counts."""
        return self.history.voters

    @property
    def has_dynamic_voters(self) -> bool:
        """True if the voters are in the log: `kraft.version` 1."""
        return self.history.kraft_version >= DYNAMIC_VOTERS

    @property
    def is_voter(self) -> bool:
        """True if this replica counts: it is one of the newest voters in its log."""
        return self.voters.is_voter(self.config.key)

    @property
    def takes_part(self) -> bool:
        """True if this replica starts elections: it is a voter, or its removal may be uncommitted.

        Otherwise the log of a leader that removed itself and was lost could be longer than those of
        the others, which then could not elect anybody (Raft dissertation, section 4.2.2). It does
        not count itself.
        """
        key = self.config.key
        return any(voters.is_voter(key) for voters in self.history.since(self.high_watermark))

    @property
    def other_voters(self) -> tuple[int, ...]:
        """Return the node ids of the voters without this node, in ascending order."""
        return tuple(voter for voter in self.voters.ids if voter != self.config.node_id)

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the nodes that may know the leader: the other voters, then bootstrap servers.

        A bootstrap server has a negative number, because its node id is unknown.
        """
        return (*self.other_voters, *self._servers)

    @property
    def _servers(self) -> tuple[int, ...]:
        return tuple(-2 - index for index in range(len(self.config.bootstrap_servers)))

    def endpoint_of(self, node_id: int) -> tuple[str, int] | None:
        """Return the address of a controller, or of a bootstrap server; None if it is unknown."""
        if node_id < NO_NODE:
            index = -2 - node_id
            servers = self.config.bootstrap_servers
            return servers[index] if index < len(servers) else None
        role = self.role
        detour = self.search.detour_of(node_id)
        if detour is not None and isinstance(role, Prospective | Candidate):
            return detour
        voter = self.voters.find(node_id)
        if isinstance(role, Leader) and role.change is not None:
            added = role.change.added
            if added is not None and added.key.node_id == node_id:
                voter = added
        elif node_id in self._learned and (self.has_dynamic_voters or voter is None):
            return self._learned[node_id]
        endpoint = None if voter is None else voter.endpoint(self.config.listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def learn(self, message: Message) -> None:
        """Keep the leader's address that a message names; the last ones are kept."""
        for node_id, address in addresses_in(message).items():
            if node_id in (NO_NODE, self.config.node_id) or not address[0] or not address[1]:
                continue
            self._learned.pop(node_id, None)
            self._learned[node_id] = address
            if len(self._learned) > MAX_LEARNED:
                del self._learned[next(iter(self._learned))]

    def ask_servers(self, request: Message, now_ms: int) -> None:
        """Send a request to the next bootstrap server, unless an answer of one is pending."""
        servers = self._servers
        if not servers or any(now_ms < self.requests.free_at_ms(each) for each in servers):
            return
        self._next_server = (self._next_server + 1) % len(servers)
        self.request(servers[self._next_server], request, now_ms)

    def looks_elsewhere(self, now_ms: int) -> bool:
        """Return True if voters are also looked for at the bootstrap servers.

        No leader has answered for an election timeout: perhaps voters are not where the voter set
        says, and it can only be changed by a leader.
        """
        since_ms = self.started_ms if self.heard_leader is None else self.heard_leader[1]
        is_long = now_ms - since_ms > self.config.election_timeout_ms
        return is_long and self.has_dynamic_voters and bool(self._servers)

    def retry_wait_ms(self, now_ms: int) -> int:
        """Return the wait before a request is sent again; elsewhere there may be nobody."""
        factor = ELSEWHERE_FACTOR if self.looks_elsewhere(now_ms) else 1
        return self.config.retry_backoff_ms * factor

    def append_control(self, *messages: Message) -> int:
        """Append control records as the leader; return the end offset. New voters count at once."""
        end_offset = self.log.append_control(messages, self.epoch)
        self.history.read_log()
        self.output.must_flush = True
        return end_offset

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on, and take back the voter sets in them."""
        self.log.truncate_to(offset)
        self.history.truncate_to(offset)
        self.output.must_flush = True

    def align_role(self, now_ms: int) -> None:
        """Become a voter or an observer when the voter set in the log says so."""
        role = self.role
        if not isinstance(role, Observer | Follower):
            return
        if isinstance(role, Observer) and self.takes_part:
            if role.leader_id is None:
                self._become(Unattached(self.random_election_deadline_ms(now_ms)), self.quorum)
            else:
                # The leader's answer brought the voter set, so the leader is alive.
                follower = Follower(role.leader_id, role.deadline_ms, has_fetched=True)
                self._become(follower, self.quorum)
        elif isinstance(role, Follower) and not self.takes_part:
            observer = Observer(role.leader_id, role.deadline_ms)
            # A voter that was removed on purpose does not ask to come back at once.
            observer.tell_at_ms = now_ms + self.config.fetch_timeout_ms
            self._become(observer, self.quorum)

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
        """Answer a request, with the leader's address if it is known."""
        leader_id = self.leader_id
        own = self.config.endpoints[:1]
        address = self.endpoint_of(leader_id) if leader_id != NO_NODE else None
        if leader_id == self.config.node_id and own:
            address = own[0].host, own[0].port
        if address is not None:
            name_leader(message, leader_id, address)
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
            self._abandon_change(self.role)
        known_before = (self.leader_id, self.epoch)
        self.role = role
        self.requests.clear()
        self._remember(quorum)
        if (self.leader_id, self.epoch) != known_before:
            start_offset = role.epoch_start_offset if isinstance(role, Leader) else 0
            leader_id = None if self.leader_id == NO_NODE else self.leader_id
            change = LeaderChange(leader_id, self.epoch, start_offset)
            self.output.leader_changes.append(change)

    def _abandon_change(self, role: Leader) -> None:
        """Answer the change that waits; whether it is committed is up to the next leader."""
        change, role.change = role.change, None
        if change is not None and not change.is_answered:
            request = change.envelope.message
            assert isinstance(request, VoterRequest), request
            self.respond(change.envelope, refusal_of(request, ErrorCode.NOT_LEADER_OR_FOLLOWER))

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
        if not self.takes_part:
            self._become(self.looking_for_leader(now_ms), quorum)
            return
        deadline_ms = self.random_election_deadline_ms(now_ms)
        if isinstance(self.role, Unattached | Prospective | Candidate):
            # Keep the earlier deadline: otherwise candidates that cannot win could postpone this
            # node's own election for ever.
            deadline_ms = min(deadline_ms, max(self.role.deadline_ms, now_ms))
        self._become(Unattached(deadline_ms), quorum)

    def give_vote(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Vote for a candidate, and wait for its election. The vote is saved before it is sent."""
        voted_id = self.quorum.voted_id
        assert not self.quorum.has_voted or voted_id == candidate.node_id, self.quorum
        quorum = replace(
            self.quorum, voted_id=candidate.node_id, voted_directory_id=candidate.directory_id
        )
        if not self.takes_part:
            self._become(self.looking_for_leader(now_ms), quorum)
            return
        self._become(Unattached(self.random_election_deadline_ms(now_ms)), quorum)

    def become_follower(self, epoch: int, leader_id: int, now_ms: int) -> None:
        """Follow the leader of an epoch."""
        deadline_ms = now_ms + self.config.fetch_timeout_ms
        base = self.quorum if epoch == self.epoch else QuorumState(epoch)
        quorum = replace(base, leader_id=leader_id)
        if self.takes_part:
            self._become(Follower(leader_id, deadline_ms), quorum)
        else:
            self._become(Observer(leader_id, deadline_ms), quorum)

    def looking_for_leader(self, now_ms: int) -> Observer:
        """Return the role of an observer that asks one node after the other for the leader."""
        count = max(len(self.sources), 1)
        return Observer(None, now_ms, asked=self.random.randrange(0, count))

    def become_prospective(self, now_ms: int) -> None:
        """Start a pre-vote; a single voter becomes the leader at once."""
        assert self.takes_part, self.voters
        tally = self._new_tally()
        self._become(Prospective(self.random_election_deadline_ms(now_ms), tally), self.quorum)
        if tally.is_won:
            self.become_candidate(now_ms)

    def _new_tally(self) -> Tally:
        return Tally(self.voters.ids, granted={self.config.node_id} if self.is_voter else set())

    def become_candidate(self, now_ms: int) -> None:
        """Vote for this node in the next epoch; without a next epoch, become Unattached."""
        if self.epoch >= MAX_EPOCH:
            self.become_unattached(self.epoch, now_ms)
            return
        config = self.config
        tally = self._new_tally()
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
        one. Voters that are only in the snapshot with which this node was formatted, or an older
        entry of this node among them, are written with it (KIP-853).
        """
        node_id, start_offset = self.config.node_id, self.log.end_offset
        voters = self.voters
        progress = {voter: ReplicaProgress(now_ms) for voter in voters.ids}
        quorum = replace(self.quorum, leader_id=node_id)
        leader = Leader(start_offset, progress)
        if not self.has_dynamic_voters:
            leader.described = voters.with_voter(self.config.voter)
        self._become(leader, quorum)
        message = LeaderChangeMessage(
            leader_id=node_id,
            voters=[Voter(voter_id=voter) for voter in voters.ids],
            granting_voters=[Voter(voter_id=voter) for voter in sorted(tally.granted)],
        )
        self.append_control(message, *self._voters_to_write(voters))

    def _voters_to_write(self, voters: VoterSet) -> list[Message]:
        own = self.config.voter if self.config.endpoints else None
        is_older = own is not None and voters.needs_update(own)
        is_only_formatted = self.history.offset == BEFORE_THE_LOG
        if not self.has_dynamic_voters or not (is_older or is_only_formatted):
            return []
        if own is not None:
            voters = voters.with_voter(own)
        version = KRaftVersionRecord(k_raft_version=self.history.kraft_version)
        return [version, voters_record(voters)]

    def become_resigned(self, now_ms: int) -> None:
        """Give up the leadership and ask the other voters for an election (EndQuorumEpoch)."""
        assert isinstance(self.role, Leader), self.role
        progress = self.role.progress
        candidates = sorted(
            self.other_voters, key=lambda voter: (-progress[voter].end_offset, voter)
        )
        deadline_ms = self.random_election_deadline_ms(now_ms)
        self._become(Resigned(deadline_ms, candidates, set(candidates)), self.quorum)

    def is_stranger(self, node_id: int) -> bool:
        """Return True if a node can neither lead nor be a candidate: this voter is alone."""
        own_id = self.config.node_id
        is_alone = all(
            voters.ids == (own_id,) for voters in self.history.since(self.high_watermark)
        )
        return is_alone and node_id not in (NO_NODE, own_id)

    def check_claim(self, epoch: int, leader_id: int, *, needs_leader: bool) -> ErrorCode:
        """Return the error for a claimed leader of this or a later epoch; see `claims`."""
        is_known = (epoch, leader_id) == (self.epoch, self.quorum.leader_id)
        if self.is_stranger(leader_id) and not is_known:
            return ErrorCode.INCONSISTENT_VOTER_SET
        return check_claim(self.config, self.quorum, epoch, leader_id, needs_leader=needs_leader)

    def observe(self, epoch: int, leader_id: int, source: int, now_ms: int) -> bool:
        """Take over the epoch and leader of a message; return False if the claim is impossible.

        After False nothing has changed, and the caller must ignore the rest of the message.
        """
        if epoch < self.epoch:
            return True  # An old epoch changes nothing.
        if self.check_claim(epoch, leader_id, needs_leader=False) is not ErrorCode.NONE:
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
