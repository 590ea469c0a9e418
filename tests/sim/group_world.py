"""A coordinator of classic groups under a seeded driver; its invariants hold after every event.

Members join, change, crash and return; the coordinator is killed and loaded from its records,
either all of them or without the last ones, which were not acknowledged; time jumps. An
acknowledged commit is what the coordinator knows until it expires.
"""

import random

from broker.coordinator.classic_group.classic_group import ClassicDeadline, ClassicGroup, GroupState
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.offset_store import NO_TOPIC_ID
from broker.coordinator.group_state.step import Deadline
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import Client, Scenario, protocols, subscription

EVENT_COUNT = 200
GROUP_IDS = ["g1", "g2"]
REJOIN = {ErrorCode.REBALANCE_IN_PROGRESS}
START_OVER = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
}
PROTOCOL_SETS = [
    protocols("range", "sticky"),
    protocols("sticky", "range"),
    protocols("range", metadata=subscription("t", "u")),
    protocols("range", metadata=b"\x00"),
]


class SimulatedClient(Client):
    """A client that follows the answers it gets."""

    def share_of(self, member) -> bytes:
        # A static member keeps its assignment after a restart, so the assignment has its instance
        # id.
        return f"{member.group_instance_id or member.member_id}@{self.generation_id}".encode()

    def start_over(self) -> None:
        self.member_id, self.generation_id, self.assignment = "", -1, None

    def take_answers(self) -> None:
        """Act on all new answers."""
        if self.join_token in self.scenario.replies:
            self._take_join()
        if self.sync_token in self.scenario.replies:
            answer = self.sync_answer()
            self._take_code(ErrorCode(answer.error_code))
            if answer.error_code == ErrorCode.NONE:
                self.assignment = answer.assignment
                self.scenario.check_assignment(self)

    def _take_join(self) -> None:
        answer = self.join_answer()
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.scenario.check_join_answer(self.group_id, answer)
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
            self.leader, self.members = answer.leader, answer.members
            self.protocol_name = answer.protocol_name
            if answer.skip_assignment:
                self.leader = "skip"
            self.assignment = None
            self.send_sync()
            return
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.send_join()
            return
        self._take_code(code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.send_join()

    def _take_code(self, code: ErrorCode) -> None:
        if code in START_OVER:
            self.start_over()
        elif code in REJOIN and self.join_token is None:
            self.generation_id = -1
        else:
            assert code in REJOIN | {ErrorCode.NONE}, code

    @property
    def is_idle(self) -> bool:
        return self.join_token is None and self.sync_token is None

    def step(self) -> None:
        """Take the next action of a healthy client."""
        if not self.is_idle:
            return
        if self.generation_id < 0:
            self.send_join()
            return
        code = self.heartbeat()
        self._take_code(code)

    def drop_connection(self, *, is_noticed: bool) -> None:
        """Lose the connection; the coordinator notices it, or its answers are lost."""
        for token in (self.join_token, self.sync_token):
            if token is None:
                continue
            if token in self.scenario.owed and not is_noticed:
                self.scenario.unheard.add(token)
            self.scenario.owed.discard(token)
            self.scenario.replies.pop(token, None)
            if is_noticed:
                self.scenario.take(self.scenario.shard.forget(token, self.scenario.now))
        self.join_token = self.sync_token = None


class GroupWorld(Scenario):
    """A scenario with a seeded driver and checks."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.owed: set = set()
        self.unheard: set = set()
        self.generations: dict = {}
        self.leaders: dict = {}
        self.clients: list[SimulatedClient] = []
        self.committed: dict[tuple[str, str, int], int] = {}
        self.is_dying = False
        delay_ms = self.choice.choice([0, 0, 3_000])
        max_size = self.choice.choice([3, 1_000])
        config = GroupConfig(
            group_initial_rebalance_delay_ms=delay_ms,
            group_max_size=max_size,
            offsets_retention_ms=200_000,
        )
        super().__init__(config=config, seed=seed)

    def call(self, handler, context, *arguments):
        self.owed.add(self.token_count + 1)
        return super().call(handler, context, *arguments)

    def take(self, output):
        for token, _ in output.replies:
            assert token in self.owed or token in self.unheard, f"{token} answered unasked"
        super().take(output)
        for token, _ in output.replies:
            self.owed.discard(token)
            if token in self.unheard or self.is_dying:
                self.unheard.discard(token)
                del self.replies[token]
        return output

    # Events.

    def event(self) -> None:
        actions = [
            (40, self.client_acts),
            (8, self.client_starts),
            (6, self.client_restarts),
            (4, self.client_crashes),
            (4, self.client_leaves),
            (4, self.client_changes),
            (4, self.client_reconnects),
            (10, self.client_commits),
            (2, self.coordinator_restarts),
            (2, self.coordinator_loses_what_it_wrote_last),
            (2, self.offsets_go),
            (20, self.time_passes),
        ]
        (action,) = self.choice.choices(
            [action for _, action in actions], [weight for weight, _ in actions]
        )
        action()
        for client in self.clients:
            client.take_answers()

    def any_client(self) -> SimulatedClient | None:
        return self.choice.choice(self.clients) if self.clients else None

    def client_acts(self) -> None:
        client = self.any_client()
        if client is not None:
            client.step()

    def client_starts(self, instance_id=None, group_id=None) -> None:
        if len(self.clients) >= 8:
            return
        if instance_id is None:
            instance_id = self.choice.choice([None, None, "s1", "s2"])
        self.client_count += 1
        client = SimulatedClient(
            self,
            f"c{self.client_count}",
            instance_id=instance_id,
            version=self.choice.choice([0, 3, 4, 5, 9] if instance_id is None else [5, 9]),
            protocols=self.choice.choice(PROTOCOL_SETS),
            session_timeout_ms=self.choice.choice([6_000, 30_000]),
            rebalance_timeout_ms=self.choice.choice([0, 5_000, 60_000]),
            group_id=group_id or self.choice.choice(GROUP_IDS),
        )
        self.clients.append(client)
        client.step()

    def client_restarts(self) -> None:
        client = self.any_client()
        if client is not None and client.instance_id is not None:
            self.client_crashes(client)
            self.client_starts(client.instance_id, client.group_id)

    def client_crashes(self, client=None) -> None:
        client = client or self.any_client()
        if client is not None:
            client.drop_connection(is_noticed=self.choice.random() < 0.5)
            self.clients.remove(client)

    def client_reconnects(self) -> None:
        client = self.any_client()
        if client is not None:
            client.drop_connection(is_noticed=self.choice.random() < 0.5)
            client.generation_id = -1

    def client_leaves(self) -> None:
        client = self.any_client()
        if client is not None and client.member_id:
            client.leave()
            client.drop_connection(is_noticed=True)
            self.clients.remove(client)

    def client_changes(self) -> None:
        client = self.any_client()
        if client is not None and client.is_idle:
            client.protocols = self.choice.choice(PROTOCOL_SETS)
            client.send_join()

    def client_commits(self) -> None:
        client = self.any_client()
        offset = self.choice.randrange(1_000)
        if client is None or self.choice.random() < 0.1:
            group_id = self.choice.choice([*GROUP_IDS, "simple"])
            (code,) = self.commit({("t", 9): offset}, group_id=group_id).values()
            self.note_commit(group_id, "t", 9, offset, code)
        elif client.member_id:
            topic, version = self.choice.choice("tu"), self.choice.choice([3, 9])
            is_member = self.is_member(client)
            code = client.commit(offset, topic, version=version)
            allowed = START_OVER | REJOIN | {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
            assert code in allowed, code
            assert is_member or code is not ErrorCode.NONE, (client, self.groups)
            self.note_commit(client.group_id, topic, 0, offset, code)

    def is_member(self, client: SimulatedClient) -> bool:
        """True if the client is a member of the current generation."""
        group = self.groups.get(client.group_id)
        if group is None or not group.members:
            return client.generation_id < 0
        return client.generation_id == group.generation_id and client.member_id in group.members

    def note_commit(
        self, group_id: str, topic: str, partition: int, offset: int, code: ErrorCode
    ) -> None:
        if code is ErrorCode.NONE:
            self.committed[group_id, topic, partition] = offset

    def known_commits(self) -> dict[tuple[str, str, int], int]:
        """Return the offsets that the coordinator has."""
        found = {place: self.shard.state.offsets.get(*place) for place in self.committed}
        return {place: known.offset for place, known in found.items() if known is not None}

    def offsets_go(self) -> None:
        if self.choice.random() < 0.5:
            self.take(self.shard.expire_offsets(self.now.timestamp_ms))
        else:
            self.take(
                self.shard.on_topic_deleted(
                    self.choice.choice("tu"), NO_TOPIC_ID, self.now.timestamp_ms
                )
            )
        known = self.known_commits()
        self.committed = {place: self.committed[place] for place in known}

    def coordinator_loses_what_it_wrote_last(self) -> None:
        """The coordinator crashes after its append, before the commit and the answers."""
        kept = len(self.log)
        self.is_dying = True
        for _ in range(self.choice.randint(1, 3)):
            self.choice.choice([self.time_passes, self.client_asks])()
        self.is_dying = False
        del self.log[kept:]
        self.coordinator_restarts()

    def client_asks(self) -> None:
        client = self.any_client()
        if client is not None and client.is_idle:
            self.choice.choice([client.send_join, client.send_sync])()

    def coordinator_restarts(self) -> None:
        self.reload()
        self.unheard.clear()
        self.generations = {name: group.generation_id for name, group in self.groups.items()}
        self.leaders.clear()
        for client in self.clients:
            for token in (client.join_token, client.sync_token):
                self.owed.discard(token)
                self.replies.pop(token, None)
            if not client.is_idle:
                client.generation_id = -1
            client.join_token = client.sync_token = None

    def time_passes(self) -> None:
        self.advance(self.choice.choice([0, 1, 500, 3_000, 3_000, 10_000, 70_000]))

    # Invariants.

    def check_join_answer(self, group_id: str, answer) -> None:
        """Check that at most one member of a generation has to compute the assignment."""
        if answer.leader == answer.member_id and not answer.skip_assignment:
            leaders = self.leaders.setdefault((group_id, answer.generation_id), set())
            leaders.add(answer.member_id)
            assert len(leaders) == 1, (answer.generation_id, leaders)

    def check_assignment(self, client: SimulatedClient) -> None:
        """Check that a client gets its own assignment of its generation."""
        owner = client.instance_id or client.member_id
        assert client.assignment == f"{owner}@{client.generation_id}".encode()

    def check(self) -> None:
        # No reply is lost: the parked requests are exactly the unanswered ones.
        assert self.owed | self.unheard == set(self.shard.state.parked)
        assert self.known_commits() == self.committed
        for group in self.groups.values():
            group.check()
            assert group.generation_id >= self.generations.get(group.group_id, 0)
            self.generations[group.group_id] = group.generation_id
            self.check_stable(group)
            self.check_deadlines(group)
        for group_id in set(self.generations) - set(self.groups):
            del self.generations[group_id]
            self.leaders = {key: ids for key, ids in self.leaders.items() if key[0] != group_id}

    def check_stable(self, group) -> None:
        if group.state is not GroupState.STABLE:
            return
        for member in group.members.values():
            owner = member.group_instance_id or member.member_id
            assert member.assignment == f"{owner}@{group.generation_id}".encode(), group

    def check_deadlines(self, group) -> None:
        """Check that a deadline ends each state that waits for members."""
        timers = self.shard.state.timers
        if group.state is GroupState.PREPARING_REBALANCE:
            assert Deadline(ClassicDeadline.JOIN, group.group_id) in timers, group
        if group.pending_sync_member_ids:
            assert Deadline(ClassicDeadline.SYNC, group.group_id) in timers, group
        if group.state is GroupState.COMPLETING_REBALANCE:
            assert group.leader_id in group.pending_sync_member_ids, group
        for member_id in {*group.members, *group.pending_member_ids}:
            is_waiting = member_id in group.awaiting_join or member_id in group.awaiting_sync
            session = Deadline(ClassicDeadline.SESSION, group.group_id, member_id)
            assert is_waiting or session in timers, (member_id, group)

    def check_log(self) -> None:
        """Check that a replay of all records restores the persisted state."""
        fresh = self.reloaded_shard().state
        assert fresh.offsets == self.shard.state.offsets
        persisted = {name: group for name, group in self.groups.items() if group.is_persisted}
        assert fresh.of(ClassicGroup).keys() == persisted.keys()
        for name, group in persisted.items():
            loaded = fresh.of(ClassicGroup)[name]
            assert loaded.generation_id <= group.generation_id
            if group.state in (GroupState.EMPTY, GroupState.STABLE):
                assert persisted_part(loaded) == persisted_part(group)

    def settle(self) -> None:
        """Check that without faults all living clients become members of a stable group."""
        for _ in range(100):
            self.advance(2_000)
            for client in self.clients:
                client.take_answers()
            for client in list(self.clients):
                client.step()
                for each in self.clients:
                    each.take_answers()
            self.check()
        for client in self.clients:
            group = self.groups[client.group_id]
            assert group.state is GroupState.STABLE, group
            assert client.member_id in group.members, (client, group)
            assert client.generation_id == group.generation_id
            assert client.assignment is not None


def persisted_part(group) -> tuple:
    """Return the fields of a group record."""
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol_name),
            member.assignment,
        )
        for member in group.members.values()
    ]
    return (
        group.state,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.current_state_timestamp_ms,
        group.subscribed_topics,
        members,
    )


def play(seed: int) -> int:
    """Play one history; return how many events it had."""
    simulation = GroupWorld(seed)
    for number in range(EVENT_COUNT):
        simulation.event()
        simulation.check()
        if number % 20 == 0:
            simulation.check_log()
    simulation.check_log()
    return EVENT_COUNT
