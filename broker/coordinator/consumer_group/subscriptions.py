"""The topics that a group's members subscribe to, by name and by pattern.

The group epoch grows when they change: a member joins or changes its subscription; a pattern
matches other topics; a topic is created, deleted or gets partitions. The record of the epoch has a
hash of the topics, so that a coordinator that loads the group sees whether they have changed
meanwhile.
"""

from hashlib import blake2b
from typing import Protocol

from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.consumer_group.member import MemberSubscription
from broker.coordinator.consumer_group.records import GroupEpoch, MemberMetadata, Regex
from broker.coordinator.consumer_group.regex import Matching, ResolvedRegex
from broker.coordinator.consumer_group.replay import write
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import TopicRights


class Subscribed(Protocol):
    """A group whose members subscribe to topics."""

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics of all members."""


def subscribe(
    step: Step, group: ConsumerGroup, member_id: str, subscription: MemberSubscription
) -> bool:
    """Write a member's subscription if it is new; return True if its topics have changed."""
    member = group.members.get(member_id)
    before = None if member is None else member.subscription
    if subscription != before:
        write(step, MemberMetadata(group.group_id, member_id, subscription))
    return before is None or subscription.topics != before.topics


def refresh(
    step: Step, group: ConsumerGroup, *, has_changed: bool, rights: TopicRights | None
) -> None:
    """Begin a new group epoch if the members or their topics have changed.

    Patterns are evaluated with the rights of the member whose request this is, as in Kafka
    (KAFKA-18813); without them, `None`, patterns are left to the next heartbeat.
    """
    seen = group.seen_versions if rights is None else (step.shard.topics_version, rights.version)
    has_new_topics = group.seen_versions != seen
    if not has_changed and not has_new_topics:
        return
    has_changed |= forget_patterns(step, group)
    if rights is not None:
        for pattern in sorted(group.regex_counts):
            is_known = pattern in group.matchings or pattern in group.regexes
            if has_new_topics or not is_known:
                has_changed |= begin_to_match(step, group, pattern, rights)
    metadata_hash = compute_metadata_hash(step, group)
    if has_changed or metadata_hash != group.metadata_hash:
        write(step, GroupEpoch(group.group_id, group.group_epoch + 1, metadata_hash))
        step.shard.rebalance_counts[ConsumerGroup] += 1
    group.seen_versions = seen


def compute_metadata_hash(step: Step, group: Subscribed) -> int:
    """Hash the topics and their numbers of partitions, on which an assignment depends.

    Kafka also hashes racks, and uses another function. So a broker that takes a group over from
    the other implementation begins a new epoch, in which no partition moves.
    """
    topics = step.shard.image().topics.by_name
    digest = blake2b(digest_size=8)
    names = [name for name in group.subscribed_topics() if name in topics]
    if not names:
        return 0
    for name in sorted(names):
        topic = topics[name]
        digest.update(topic.topic_id)
        digest.update(len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


# Patterns.


def begin_to_match(step: Step, group: ConsumerGroup, pattern: str, rights: TopicRights) -> bool:
    """Begin to evaluate a pattern; return True if it is evaluated and its topics have changed."""
    matching = Matching(pattern, step.shard.image().topics.by_name, rights.may_describe)
    group.matchings[pattern] = matching
    return go_on_matching(step, group, pattern)


def go_on_matching(step: Step, group: ConsumerGroup, pattern: str) -> bool:
    """Match the next topics; schedule the rest. Return True if the pattern's topics changed."""
    topics = group.matchings[pattern].advance()
    if topics is None:
        step.go_on_later(Deadline(ConsumerDeadline.MATCHING, group.group_id, pattern))
        return False
    del group.matchings[pattern]
    before = group.regexes.get(pattern)
    if before is not None and before.topics == topics:
        return False
    resolved = ResolvedRegex(topics, step.shard.topics_version, step.now.timestamp_ms)
    write(step, Regex(group.group_id, pattern, resolved))
    return True


def on_matching(step: Step, group: ConsumerGroup, pattern: str) -> None:
    """Continue with a pattern that had too many topics for one turn."""
    if pattern in group.matchings and go_on_matching(step, group, pattern):
        refresh(step, group, has_changed=True, rights=None)


def forget_patterns(step: Step, group: ConsumerGroup) -> bool:
    """Remove the patterns without a subscriber; return True if there was one."""
    for pattern in [each for each in group.matchings if each not in group.regex_counts]:
        del group.matchings[pattern]
    unused = [each for each in group.regexes if each not in group.regex_counts]
    for pattern in unused:
        write(step, Regex(group.group_id, pattern, None))
    return bool(unused)
