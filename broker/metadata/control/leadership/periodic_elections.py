"""Elections without a request: preferred leader elections, and allowed unclean elections.

A broker that was away gets its leaderships back at the next check, every
`leader.imbalance.check.interval.seconds` if `auto.leader.rebalance.enable` is set. A partition
without a leader whose topic allows an unclean election gets a leader as soon as the setting
changes, and others are checked every five minutes. Each decision has a limited number of elections;
if the limit is reached, the next decision follows at once, so that requests are handled in between.

With fewer than two brokers no other leader is possible, so there is no deadline.
"""

from collections.abc import Iterable, Iterator

from broker.metadata.control.leadership.broker_changes import partition_change
from broker.metadata.control.leadership.partition_change import Election
from broker.metadata.control.sessions import NEVER_MS
from broker.metadata.control.view import ClusterView
from broker.metadata.image import PartitionImage, TopicImage
from broker.metadata.parts.topics import NO_LEADER
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import ConfigRecord

MAX_ELECTIONS = 1_000  # Kafka's ReplicationControlManager.MAX_ELECTIONS_PER_IMBALANCE
UNCLEAN_CHECK_INTERVAL_MS = 300_000  # Kafka's unclean.leader.election.interval.ms
UNCLEAN_SETTING = "unclean.leader.election.enable"


class PeriodicElections:
    """The deadlines of the elections: soft state of the active controller."""

    def __init__(self, view: ClusterView, now_ms: int) -> None:
        self._view = view
        self._balance_ms = self._next_balance_ms(now_ms)
        self._unclean_ms = now_ms + UNCLEAN_CHECK_INTERVAL_MS

    def next_deadline_ms(self) -> int:
        """Return when to call `tick`."""
        if len(self._view.image.brokers) < 2:
            return NEVER_MS
        return min(self._balance_ms, self._unclean_ms)

    def note_settings(self, records: Iterable[Message], now_ms: int) -> None:
        """Make the check for unclean elections due at once if its setting has changed."""
        if any(isinstance(each, ConfigRecord) and each.name == UNCLEAN_SETTING for each in records):
            self._unclean_ms = now_ms

    def tick(self, now_ms: int) -> list[Message]:
        """Return the records of the elections that are due, of one kind at a time.

        If it returns no records, no election is due.
        """
        if now_ms >= self._unclean_ms:
            records = _elect(self._view, _leaderless(self._view), Election.UNCLEAN)
            is_done = len(records) < MAX_ELECTIONS
            self._unclean_ms = now_ms + UNCLEAN_CHECK_INTERVAL_MS if is_done else now_ms
            if records:
                return records
        if now_ms >= self._balance_ms:
            records = _elect(self._view, each_imbalanced(self._view), Election.PREFERRED)
            is_done = len(records) < MAX_ELECTIONS
            self._balance_ms = self._next_balance_ms(now_ms) if is_done else now_ms
            return records
        return []

    def _next_balance_ms(self, now_ms: int) -> int:
        interval_ms = self._view.config.leader_imbalance_check_interval_ms
        return now_ms + interval_ms if interval_ms else NEVER_MS


def each_imbalanced(view: ClusterView) -> Iterator[tuple[TopicImage, PartitionImage]]:
    """Yield the partitions whose leader is not the preferred replica."""
    for topic in view.image.topics.by_id.values():
        for partition in topic.partitions.values():
            if partition.leader not in {NO_LEADER, partition.replicas[0]}:
                yield topic, partition


def _leaderless(view: ClusterView) -> Iterator[tuple[TopicImage, PartitionImage]]:
    for topic in view.image.topics.by_id.values():
        without = [each for each in topic.partitions.values() if each.leader == NO_LEADER]
        if without and view.allows_unclean_election(topic.name):
            yield from ((topic, partition) for partition in without)


def _elect(
    view: ClusterView,
    partitions: Iterable[tuple[TopicImage, PartitionImage]],
    election: Election,
) -> list[Message]:
    records: list[Message] = []
    for topic, partition in partitions:
        change = partition_change(view, topic, partition)
        change.election = election
        record = change.record()
        if record is not None:
            records.append(record)
            if len(records) == MAX_ELECTIONS:
                break
    return records
