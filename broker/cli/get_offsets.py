"""`millstream get-offsets`: offsets of partitions at a time, as kafka-get-offsets."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_required,
    connection_of,
    tool,
    tool_parser,
)
from broker.model import TopicPartition
from common.kafka.admin import leaders
from common.kafka.admin import topics as admin
from common.kafka.admin.client import AdminClient
from common.kafka.errors import KafkaError

NAMED_TIMES = {
    "latest": leaders.LATEST,
    "earliest": leaders.EARLIEST,
    "max-timestamp": leaders.MAX_TIMESTAMP,
    "earliest-local": leaders.EARLIEST_LOCAL,
    "latest-tiered": leaders.LATEST_TIERED,
    "earliest-pending-upload": leaders.EARLIEST_PENDING_UPLOAD,
}
TIMES = " / ".join(f"{timestamp} or {name}" for name, timestamp in NAMED_TIMES.items())
RULE = re.compile("([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

Chooses = Callable[[TopicPartition], bool]


@tool("Error occurred: ")
def main(arguments: list[str]) -> int:
    """Print offsets; return 1 if no partition matches or the cluster is unreachable."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_required(parser, options, ["bootstrap-server"])
    chooses, timestamp = _choice(options), parse_time(options.time)
    with AdminClient(connection_of(options)) as client:
        _print_offsets(client, _partitions(client, options, chooses), timestamp)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("get-offsets", "Get the offsets of topic partitions.")
    add_connection(parser, has_controllers=False)
    parser.add_argument(
        "--topic-partitions",
        metavar="PATTERN,...",
        help="patterns of partitions: an optional regular expression for the topic, then after a "
        "colon a number, a range 'NUMBER-NUMBER' whose end is not part of it, 'NUMBER-' or "
        "'-NUMBER'; for example topic1:1,topic2:0-3,topic3,topic4:5-,:-3",
    )
    parser.add_argument(
        "--topic",
        help="the topic, or a regular expression for several; every topic when it is not given; "
        "not together with --topic-partitions",
    )
    parser.add_argument(
        "--partitions",
        metavar="ID,...",
        help="only these partitions; not together with --topic-partitions",
    )
    parser.add_argument(
        "--time",
        default="latest",
        help=f"the time whose offset is meant: a timestamp in ms, or {TIMES}; partitions without a "
        "record so late are left out",
    )
    parser.add_argument(
        "--exclude-internal-topics", action="store_true", help="leave out internal topics"
    )
    return parser


def parse_time(text: str) -> int:
    """Return the timestamp of `--time`."""
    if text in NAMED_TIMES:
        return NAMED_TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise ToolFailed(
            f"Malformed time argument {text}. Please use {TIMES}, or a specified long format "
            "timestamp"
        ) from None


def _choice(options: argparse.Namespace) -> Chooses:
    if options.topic_partitions is None:
        return chosen_by_topic(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None:
        raise ToolFailed("--topic-partitions cannot be used with --topic or --partitions")
    return chosen_by_rules(options.topic_partitions)


def chosen_by_topic(topic: str | None, partitions: str | None) -> Chooses:
    """Return the filter of `--topic` and `--partitions`."""
    pattern = _pattern(topic or ".*")
    try:
        numbers = {int(number) for number in partitions.split(",")} if partitions else None
    except ValueError:
        raise ToolFailed(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{partitions}"
        ) from None
    return lambda one: bool(
        (numbers is None or one.partition in numbers) and pattern.fullmatch(one.topic)
    )


def chosen_by_rules(text: str) -> Chooses:
    """Return the filter of `--topic-partitions`: a partition must match one of its rules."""
    rules = [_rule(part) for part in text.split(",")]
    return lambda one: any(chooses(one) for chooses in rules)


def _rule(text: str) -> Chooses:
    found = RULE.fullmatch(text)
    if found is None:
        raise ToolFailed(f"Invalid rule specification: {text}")
    topic, number, lower, upper = found.groups()
    pattern = _pattern(topic or ".*")
    first = int(number or lower or 0)
    end = first + 1 if number else int(upper) if upper else sys.maxsize
    return lambda one: bool(first <= one.partition < end and pattern.fullmatch(one.topic))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ToolFailed(f"{text} is an invalid regex: {error}") from None


def _partitions(
    client: AdminClient, options: argparse.Namespace, chooses: Chooses
) -> list[TopicPartition]:
    found = [
        TopicPartition(topic.name, partition.partition)
        for topic in admin.list_topics(client)
        for partition in topic.partitions
        if not (options.exclude_internal_topics and topic.is_internal)
    ]
    chosen = list(filter(chooses, found))
    if not chosen:
        raise ToolFailed("Could not match any topic-partitions with the specified filters")
    return chosen


def _print_offsets(
    client: AdminClient, partitions: Iterable[TopicPartition], timestamp: int
) -> None:
    listed = leaders.list_offsets(client, list(partitions), timestamp)
    # Kafka's order is that of the names: t-10 is before t-2.
    for partition, found in sorted(listed.items(), key=lambda item: str(item[0])):
        if isinstance(found, KafkaError):
            print(
                f"Skip getting offsets for topic-partition {partition} due to error: {found}",
                file=sys.stderr,
            )
        elif found.offset != leaders.UNKNOWN_OFFSET:
            print(f"{partition.topic}:{partition.partition}:{found.offset}")
