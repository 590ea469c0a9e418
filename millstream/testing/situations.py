"""Situations in which clients fail, in one line each, defined by what a client sees.

    broker.situations.coordinator_moves(group="fraud")
    ...
    broker.situations.transaction_times_out()

Where a broker can truly be brought into the situation, it is: the clock moves, a topic is deleted,
a second producer takes the transactional id. Otherwise clients get the answers of the situation, by
faults; such a method returns the rules, to wait for.
"""

import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Unpack

from millstream.testing.broker_clock import BrokerClock
from millstream.testing.faults import Chosen, Faults, Rule
from millstream.testing.topics import ADMIN_SETTINGS, TIMEOUT_SECONDS, ask_for_topic, wait_for_topic

SESSION_SECONDS: Final = 60.0
"""More than the 45 seconds that clients and groups have by default.

It is no more than that: an empty group without offsets is deleted some minutes later, which is
another situation, and ends a consumer of librdkafka."""
TRANSACTION_MINUTES: Final = 16
"""More than the longest transaction of `transaction.max.timeout.ms`, a quarter of an hour."""
TOKEN_DAYS: Final = 8
"""More than the longest life of `delegation.token.max.lifetime.ms`, a week."""

LEAVE_GROUP: Final = 13
CONSUMER_GROUP_HEARTBEAT: Final = 68
COORDINATED: Final = (
    "ConsumerGroupHeartbeat",
    "Heartbeat",
    "JoinGroup",
    "OffsetCommit",
    "SyncGroup",
)
"""The requests of members that only the coordinator answers."""


class Situations:
    """The situations of a broker or of a cluster."""

    def __init__(
        self, faults: Faults, clock: BrokerClock, client_settings: Callable[[], dict[str, Any]]
    ) -> None:
        """`client_settings` returns those of an administrator, for confluent-kafka."""
        self._faults = faults
        self._clock = clock
        self._client_settings = client_settings

    # --- groups ---

    def coordinator_moves(self, *, group: str) -> list[Rule]:
        """The next call of each kind gets NOT_COORDINATOR: the members look for the coordinator."""
        return [
            self._faults.error(api, "NOT_COORDINATOR", group=group, allow_unused=True).once()
            for api in COORDINATED
        ]

    def rebalance(self, **chosen: Unpack[Chosen]) -> Rule:
        """The next heartbeat of a classic group gets REBALANCE_IN_PROGRESS: its member joins again.

        The group then truly rebalances.
        """
        return self._faults.error("Heartbeat", "REBALANCE_IN_PROGRESS", **chosen).once()

    def member_thrown_out(self, *, group: str, client_id: str | None = None) -> int:
        """The coordinator removes the members, all or those of a client; return how many.

        Each learns it from its next heartbeat, and has lost its partitions. Raise ValueError if the
        broker's listener has security: the members leave by requests in clear text.
        """
        from confluent_kafka import ConsumerGroupType
        from confluent_kafka.admin import AdminClient

        settings = self._client_settings()
        if "security.protocol" in settings:
            raise ValueError("a member can be thrown out of a broker without security only")
        admin = AdminClient({**ADMIN_SETTINGS, **settings, "log_level": 2})
        found = admin.describe_consumer_groups([group])[group].result(TIMEOUT_SECONDS)
        members = [each for each in found.members if client_id in (None, each.client_id)]
        for each in members:
            address = (found.coordinator.host, found.coordinator.port)
            is_classic = found.type is not ConsumerGroupType.CONSUMER
            _leave(address, group, each.member_id, is_classic=is_classic)
        return len(members)

    def sessions_expire(self, *, seconds: float = SESSION_SECONDS) -> None:
        """All members of all groups are thrown out at once, whose sessions are not longer.

        The clock moves by so many seconds.
        """
        self._clock.advance(seconds=seconds)

    # --- producers ---

    def producer_is_fenced(self, transactional_id: str) -> None:
        """Another producer takes the transactional id; an open transaction is aborted."""
        from confluent_kafka import Producer

        settings = {**self._client_settings(), "transactional.id": transactional_id, "log_level": 2}
        Producer(settings).init_transactions(TIMEOUT_SECONDS)

    def transactions_time_out(self) -> None:
        """All open transactions are aborted: the clock moves by a quarter of an hour."""
        self._clock.advance(minutes=TRANSACTION_MINUTES)

    def leader_changes(self, **chosen: Unpack[Chosen]) -> Rule:
        """The next Produce gets NOT_LEADER_OR_FOLLOWER, and its records are not written."""
        return self._faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", **chosen).once()

    # --- topics ---

    def offset_out_of_range(self, **chosen: Unpack[Chosen]) -> Rule:
        """The next Fetch gets OFFSET_OUT_OF_RANGE: the consumer's reset policy decides."""
        return self._faults.error("Fetch", "OFFSET_OUT_OF_RANGE", **chosen).once()

    def topic_made_anew(self, name: str, *, settings: Mapping[str, str] | None = None) -> None:
        """The topic is deleted and made again, with another id, as many partitions, no records.

        Until it is there, clients are told that it is not: none of them creates it first.
        Raise confluent_kafka.KafkaException if the brokers refuse it.
        """
        from confluent_kafka.admin import AdminClient

        client_settings = self._client_settings()
        admin = AdminClient({**ADMIN_SETTINGS, **client_settings, "log_level": 2})
        partitions = admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions
        replicas = len(partitions[0].replicas)
        missing = self._faults.error(
            "Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic=name, allow_unused=True
        ).always()
        try:
            admin.delete_topics([name])[name].result(TIMEOUT_SECONDS)
            ask_for_topic(client_settings, name, len(partitions), replicas, settings or {})
        finally:
            missing.remove()
        wait_for_topic(client_settings, name, len(partitions))

    # --- the cluster ---

    def controller_is_lost(self) -> Rule:
        """The next change of topics gets NOT_CONTROLLER, as while a new controller is elected.

        In a cluster, `cluster.kill(cluster.active_controller())` truly loses it.
        """
        return self._faults.error("CreateTopics", "NOT_CONTROLLER").once()

    def tokens_expire(self) -> None:
        """All delegation tokens expire, and logins that have an end: the clock moves by a week."""
        self._clock.advance(days=TOKEN_DAYS)

    def quota_is_reached(self, api: str = "Produce", *, ms: int, **chosen: Unpack[Chosen]) -> Rule:
        """The next call is answered with `throttle_time_ms`, and the client has to wait."""
        return self._faults.throttle(api, ms=ms, **chosen).once()


def _leave(address: tuple[str, int], group: str, member_id: str, *, is_classic: bool) -> None:
    """Send a request of a member that leaves, in its lowest version.

    Raise RuntimeError if it is refused.
    """
    texts = (group.encode(), member_id.encode())
    if is_classic:  # LeaveGroup: two texts with their lengths.
        named = b"".join(struct.pack(">h", len(each)) + each for each in texts)
        request = struct.pack(">hhih", LEAVE_GROUP, 1, 0, -1) + named
    else:  # An epoch of -1 says that it leaves; the other fields are null.
        named = b"".join(bytes([len(each) + 1]) + each for each in texts)
        header = struct.pack(">hhihb", CONSUMER_GROUP_HEARTBEAT, 0, 0, -1, 0)
        request = header + named + struct.pack(">ibbibbbb", -1, 0, 0, -1, 0, 0, 0, 0)
    with socket.create_connection(address, TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            tags = 0 if is_classic else 1
            error = struct.unpack(f">ii{tags}xih", answer.read(14 + tags))[-1]
    if error:
        raise RuntimeError(f"the coordinator refuses to remove {member_id}: error {error}")
