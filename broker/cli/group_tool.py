"""What the tools for consumer groups, share groups and streams groups have in common.

That is the run of an action with its errors, what the arguments name, and a reset by a rule.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from broker.cli.arguments import ToolFailed, connection_of, is_given
from broker.cli.group_tables import deleted_offset_lines, state_listing_lines
from broker.cli.offset_reset import RULES, Offsets, Reset
from broker.model import TopicPartition
from broker.server.clock import SystemClock
from common.kafka.admin import topics as admin
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import GroupListing
from common.kafka.errors import ErrorCode, KafkaError

INACTIVE = ("Empty", "Dead")
"""The states of a group without members."""

DescriptionT = TypeVar("DescriptionT")


def run_action(
    kind: str,
    action: Callable[[AdminClient, argparse.Namespace], int],
    options: argparse.Namespace,
) -> int:
    """Run an action on groups of a kind and return its exit status; 1 after an error."""
    try:
        settings = replace(connection_of(options), api_timeout_ms=options.timeout)
        with AdminClient(settings) as client:
            return action(client, options)
    except (KafkaError, ToolFailed) as error:
        print(f"Error: Executing {kind} group command failed due to {error}", file=sys.stderr)
        return 1


def print_lines(lines: Iterable[str]) -> None:
    """Print lines at once."""
    print("\n".join(lines), flush=True)


def warn(text: str | None) -> None:
    """Print a warning after what was printed before, None for no warning."""
    if text:
        sys.stdout.flush()
        print(f"\n{text}", file=sys.stderr)


# The groups.


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Return the states or types in a list, compared without regard to case."""
    by_name = {one.lower(): one for one in known}
    names = [name.strip().lower() for name in text.split(",")] if text else []
    if any(name not in by_name for name in names):
        raise ToolFailed(f"Invalid {what} list '{text}'. Valid {what}s are: {', '.join(known)}")
    return [by_name[name] for name in names]


def print_listing(groups: Sequence[GroupListing], *, has_state: bool) -> None:
    """Print the groups of one type, share or streams, with their states or without."""
    print_lines(state_listing_lines(groups) if has_state else [group.group_id for group in groups])


def group_ids(
    options: argparse.Namespace, list_all: Callable[[], Iterable[GroupListing]]
) -> list[str]:
    """Return the groups of `--group` or `--all-groups`, each once."""
    if options.all_groups:
        return [group.group_id for group in list_all()]
    return list(dict.fromkeys(options.group))


def all_described(outcomes: Mapping[str, DescriptionT | KafkaError]) -> list[DescriptionT]:
    """Return the descriptions by group id, or raise the first error."""
    groups = []
    for _, outcome in sorted(outcomes.items(), key=lambda one: one[0]):
        if isinstance(outcome, KafkaError):
            raise outcome
        groups.append(outcome)
    return groups


# The partitions.


def check_partitions(client: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    """Raise ToolFailed if a partition does not exist or has no leader."""
    leaders = client.retry(
        "Metadata", lambda: admin.topic_leaders(client, {one.topic for one in partitions}), ()
    )
    for lacks, problem in (
        ([one for one in partitions if one not in leaders], "do not exist"),
        ([one for one in partitions if leaders.get(one, 0) == admin.NO_LEADER], "have no leader"),
    ):
        if lacks:
            raise ToolFailed(f'The partitions "{",".join(map(str, lacks))}" {problem}')


def existing_partitions(client: AdminClient, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of `topic` and `topic:0,1`; raise ToolFailed for a missing topic."""
    partitions, missing = named_partitions(client, texts)
    for partition, error in missing.items():
        raise ToolFailed(f"{partition.topic}: {error}")
    return partitions


def named_partitions(
    client: AdminClient, texts: Iterable[str]
) -> tuple[list[TopicPartition], dict[TopicPartition, KafkaError | None]]:
    """Return the partitions of `topic` and `topic:0,1`, and the error of each missing topic."""
    named = [parse_partitions(text) for text in texts if ":" in text]
    whole = [text for text in texts if ":" not in text]
    leaders = client.retry("Metadata", lambda: admin.topic_leaders(client, whole), ())
    found = {topic: [one for one in leaders if one.topic == topic] for topic in whole}
    missing: dict[TopicPartition, KafkaError | None] = {
        TopicPartition(topic, -1): KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
        for topic in whole
        if not found[topic]
    }
    listed = [*named, *found.values()]
    return sorted({one for partitions in listed for one in partitions}), missing


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse `topic:0,1`."""
    topic, _, numbers = text.partition(":")
    if not numbers or ":" in numbers:
        raise ToolFailed(f"Invalid topic arg '{text}', expected topic name and partitions")
    try:
        return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    except ValueError:
        raise ToolFailed(
            f"Invalid partition specified in topic arg '{text}': it is no number"
        ) from None


def offsets_by_rule(
    client: AdminClient,
    options: argparse.Namespace,
    group_id: str,
    partitions: Sequence[TopicPartition],
    rules: Iterable[str] = RULES,
) -> Offsets:
    """Return the new offsets of partitions by the only one of these rules that was given."""
    check_partitions(client, partitions)
    rule = next(one for one in rules if is_given(options, one))
    value = str(getattr(options, rule.replace("-", "_")))
    now_ms = SystemClock().timestamp_ms()
    return RULES[rule](Reset(client, group_id, partitions, value, now_ms))


def told_deletions(
    kind: str, wanted: Collection[str], problems: Mapping[str, object], *, end: str = ""
) -> int:
    """Print which groups of a kind were deleted and which were not; return the exit status.

    `end` is what Kafka's tool puts after the groups that were deleted although others were not.
    """
    done = ", ".join(f"'{group_id}'" for group_id in sorted(set(wanted) - problems.keys()))
    if not problems:
        print(f"Deletion of requested {kind} groups ({done}) was successful.")
        return 0
    print(f"\nError: Deletion of some {kind} groups failed:", file=sys.stderr)
    for group_id, problem in sorted(problems.items()):
        print(f"* Group '{group_id}' could not be deleted due to: {problem}", file=sys.stderr)
    if done:
        print(f"\nThese {kind} groups were deleted successfully: {done}{end}")
    return 1


def told_deleted_offsets(
    group_id: str, outcomes: Mapping[TopicPartition, KafkaError | None]
) -> int:
    """Print which offsets of a group were deleted and which were not; return the exit status."""
    is_done = not any(outcomes.values())
    if is_done:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    else:
        print(
            "\nError: Encountered some partition-level error, see the follow-up details.",
            file=sys.stderr,
        )
    print_lines(["", *deleted_offset_lines(outcomes)])
    return 0 if is_done else 1
