"""The tables of `share-groups`, which are Kafka's, each a function from values to lines."""

from collections.abc import Mapping

from broker.cli.group_tables import MISSING, NAME_WIDTH, assignment_text, columns
from broker.model import TopicPartition
from common.kafka.admin.share_groups import ShareGroupDescription, ShareOffset
from common.kafka.errors import KafkaError


def offset_lines(
    group_id: str, offsets: Mapping[TopicPartition, ShareOffset], *, is_verbose: bool
) -> list[str]:
    """Return the table of a group's start offsets."""
    headers = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    widths = [NAME_WIDTH, NAME_WIDTH, 10, 13, 0]
    rows = [
        [group_id, topic, str(partition), _text(found.start_offset), _text(found.lag)]
        for (topic, partition), found in sorted(offsets.items())
    ]
    if is_verbose:
        headers.insert(3, "LEADER-EPOCH")
        widths.insert(3, 13)
        for row, (_, found) in zip(rows, sorted(offsets.items()), strict=True):
            row.insert(3, _text(found.leader_epoch))
    return columns(headers, rows, widths)


def _text(value: object) -> str:
    return MISSING if value is None else str(value)


def state_lines(group: ShareGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's state."""
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    cells = [
        group.group_id,
        f"{node.host}:{node.port}  ({node.node_id})",
        group.state,
        str(len(group.members)),
    ]
    widths = [NAME_WIDTH, 25, 15, 0]
    if is_verbose:
        headers[3:3] = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        cells[3:3] = [str(group.group_epoch), str(group.assignment_epoch)]
        widths[3:3] = [12, 17]
    return columns(headers, [cells], widths)


def member_lines(group: ShareGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's members."""
    headers = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    headers += [*(["MEMBER-EPOCH"] if is_verbose else []), "ASSIGNMENT"]
    widths = [NAME_WIDTH] * 4 + [12, *([13] if is_verbose else []), 0]
    rows = [
        [
            group.group_id,
            member.member_id,
            member.host,
            member.client_id,
            str(len(member.assignment)),
            *([str(member.member_epoch)] if is_verbose else []),
            assignment_text(member.assignment) if member.assignment else "",
        ]
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    return columns(headers, rows, widths)


def state_warning(group: ShareGroupDescription) -> str | None:
    """Return the warning before the table of a group, None without one."""
    if group.state == "Empty":
        return f"Share group '{group.group_id}' has no active members."
    return None


def deleted_offset_lines(outcomes: Mapping[str, KafkaError | None]) -> list[str]:
    """Return the table of a deletion."""
    rows = [
        [topic, "Successful" if error is None else f"Error: {error}"]
        for topic, error in sorted(outcomes.items())
    ]
    return columns(["TOPIC", "STATUS"], rows, [NAME_WIDTH, 0])
