"""What the tools for groups of every type say after a deletion."""

import sys
from collections.abc import Collection, Mapping

from broker.cli.group_tables import deleted_offset_lines
from broker.cli.group_tool import print_lines
from broker.model import TopicPartition
from common.kafka.errors import KafkaError


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
