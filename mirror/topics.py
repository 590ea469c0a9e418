"""Finds what a target lacks of a source's topics, and divides partitions among tasks. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream.connect.connectors import TopicPartition
from millstream.mirror.records import OffsetAndMetadata
from mirror.filters import Patterns
from mirror.flow import Flow

GroupOffsets = Mapping[TopicPartition, OffsetAndMetadata]
PartitionCounts = Mapping[str, int]
"""Topic -> number of partitions."""


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic, as DescribeConfigs gives it."""

    name: str
    value: str | None
    is_default: bool = False
    is_read_only: bool = False
    is_sensitive: bool = False
    is_of_static_broker: bool = False


@dataclass(frozen=True, slots=True)
class GroupInTarget:
    """A group in the target: its offsets, and whether it has no members."""

    is_idle: bool
    offsets: GroupOffsets


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Topics to create, by their names in the target, and topics that need more partitions."""

    create: dict[str, int] = field(default_factory=dict)
    increase: dict[str, int] = field(default_factory=dict)


def plan_topics(flow: Flow, source: PartitionCounts, target: PartitionCounts) -> TopicPlan:
    """Return what the target lacks. `source` has the mirrored topics; partitions only grow."""
    plan = TopicPlan()
    for topic, count in sorted(source.items()):
        remote = flow.remote_topic(topic)
        there = target.get(remote)
        if there is None:
            plan.create[remote] = count
        elif there < count:
            plan.increase[remote] = count
    return plan


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """Selects the topic settings that follow the source."""

    exclude: Patterns
    takes_source_defaults: bool = False

    def _follows(self, entry: ConfigEntry) -> bool:
        return not (
            entry.is_read_only
            or entry.is_sensitive
            or entry.is_of_static_broker
            or entry.value is None
            or self.exclude.match(entry.name) is not None
        )

    def of_new_topic(self, entries: Iterable[ConfigEntry]) -> dict[str, str]:
        """Return the settings of a new topic."""
        return {
            entry.name: entry.value
            for entry in entries
            if entry.value is not None
            and self._follows(entry)
            and (self.takes_source_defaults or not entry.is_default)
        }

    def changes(
        self, source: Iterable[ConfigEntry], target: Iterable[ConfigEntry]
    ) -> dict[str, str | None]:
        """Return the changes in the target: name -> value, None to remove a setting."""
        there = {entry.name: entry for entry in target}
        found: dict[str, str | None] = {}
        for entry in source:
            if not self._follows(entry):
                continue
            now = there.get(entry.name)
            if entry.is_default and not self.takes_source_defaults:
                if now is not None and not now.is_default and not now.is_of_static_broker:
                    found[entry.name] = None
            elif now is None or now.value != entry.value:
                found[entry.name] = entry.value
        return found


@dataclass(frozen=True, slots=True)
class TopicAcl:
    """An access rule of topics, with Kafka's names in lower case."""

    topic: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


def remote_acls(flow: Flow, rules: Iterable[TopicAcl]) -> list[TopicAcl]:
    """Return the rules for a target: a user who may read the source's topic may read the copy.

    Only the mirror writes to a copy: WRITE is not copied, and ALL becomes READ.
    """
    made = []
    for rule in rules:
        # `*` is every topic: in the target that would be more than copies.
        is_of_one = rule.pattern_type == "literal" and rule.topic != "*"
        if not is_of_one or not flow.replicates(rule.topic):
            continue
        operation = rule.operation
        if rule.permission == "allow":
            if operation == "write":
                continue
            operation = "read" if operation == "all" else operation
        topic = flow.remote_topic(rule.topic)
        made.append(
            TopicAcl(topic, "literal", rule.principal, rule.host, operation, rule.permission)
        )
    return made


def partitions_of(counts: PartitionCounts) -> list[TopicPartition]:
    return [TopicPartition(each, n) for each, count in sorted(counts.items()) for n in range(count)]


def divided(parts: Sequence[TopicPartition], max_tasks: int) -> list[list[TopicPartition]]:
    """Deal out partitions in turn, so that each task has a share of every topic."""
    count = min(max_tasks, len(parts))
    return [list(parts[number::count]) for number in range(count)]


def encoded(parts: Iterable[TopicPartition]) -> str:
    """Format partitions for `task.assigned.partitions`."""
    return ",".join(f"{each.topic}-{each.partition}" for each in parts)


def decoded(text: str) -> list[TopicPartition]:
    """Parse `task.assigned.partitions`. Raises ValueError."""
    found = []
    for part in filter(None, text.split(",")):
        topic, _, number = part.rpartition("-")
        found.append(TopicPartition(topic, int(number)))
    return found
