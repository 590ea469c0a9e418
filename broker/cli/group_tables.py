"""The tables of `consumer-groups`, which are Kafka's, each a function from values to lines.

A column is as wide as its widest cell, or as its minimum width; columns are separated by a space,
and the last one is not padded.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.model import TopicPartition
from common.kafka.admin.groups import GroupDescription, GroupListing, MemberDescription
from common.kafka.errors import KafkaError

MISSING = "-"
NAME_WIDTH = 15
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class OffsetRow(NamedTuple):
    """One partition of a group; the fields of its member are None if it has none."""

    partition: TopicPartition
    offset: int | None
    leader_epoch: int | None
    log_end_offset: int | None
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """The count of offsets between the committed offset and the log end."""
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset


def columns(
    headers: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]
) -> list[str]:
    """Return the lines of a table; `widths` are minimum widths, 0 for an unpadded column."""
    lines = [headers, *rows]
    wide = [
        max(width, *(len(line[index]) for line in lines)) if width else 0
        for index, width in enumerate(widths)
    ]
    return [
        " ".join(f"{cell:<{width}}" for cell, width in zip(line, wide, strict=True))
        for line in lines
    ]


def listing_lines(groups: Sequence[GroupListing], *, has_type: bool, has_state: bool) -> list[str]:
    """Return the table of `--list` with `--type` or `--state`."""
    width = max([NAME_WIDTH, *(len(group.group_id) for group in groups)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(one.group_id, one.group_type or "Unknown", one.state or "Unknown") for one in groups]
    return [
        " ".join(
            [
                f"{group_id:<{width}}",
                *([f"{group_type:<20}"] if has_type else []),
                *([f"{state:<20}"] if has_state else []),
            ]
        )
        for group_id, group_type, state in rows
    ]


def state_listing_lines(groups: Sequence[GroupListing]) -> list[str]:
    """Return the table of `--list --state` of groups of one type, share or streams."""
    rows = [(group.group_id, group.state or "Unknown") for group in groups]
    return columns(("GROUP", "STATE"), rows, [NAME_WIDTH, 0])


def state_warning(group: GroupDescription) -> str | None:
    """Return the warning before the table of a group, None without one."""
    if group.state == "Empty":
        return f"Consumer group '{group.group_id}' has no active members."
    if group.state in REBALANCING:
        return f"Warning: Consumer group '{group.group_id}' is rebalancing."
    return None


def offset_lines(group_id: str, rows: Sequence[OffsetRow], *, is_verbose: bool) -> list[str]:
    """Return the table of a group's offsets."""
    headers = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    headers += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    widths = [NAME_WIDTH, NAME_WIDTH, 10, 15, 15, 15, NAME_WIDTH, NAME_WIDTH, 0]
    cells = [_offset_cells(group_id, row) for row in rows]
    if is_verbose:
        headers.insert(3, "LEADER-EPOCH")
        widths.insert(3, 15)
        for line, row in zip(cells, rows, strict=True):
            line.insert(3, _text(row.leader_epoch))
    return columns(headers, cells, widths)


def _offset_cells(group_id: str, row: OffsetRow) -> list[str]:
    member = row.member
    return [
        group_id,
        row.partition.topic,
        str(row.partition.partition),
        _text(row.offset),
        _text(row.log_end_offset),
        _text(row.lag),
        *((member.member_id, member.host, member.client_id) if member else (MISSING,) * 3),
    ]


def _text(value: object) -> str:
    return MISSING if value is None else str(value)


def member_lines(group: GroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's members."""
    headers = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [NAME_WIDTH] * 5
    cells = [
        [group.group_id, one.member_id, one.host, one.client_id, str(len(one.assignment))]
        for one in group.members
    ]
    if any(one.group_instance_id for one in group.members):
        headers.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, len("GROUP-INSTANCE-ID"))
        for line, one in zip(cells, group.members, strict=True):
            line.insert(2, one.group_instance_id or "")
    if is_verbose:
        headers += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [NAME_WIDTH, 20, NAME_WIDTH, 20]
        is_mixed = {one.is_upgraded for one in group.members} >= {True, False}
        if is_mixed:
            headers.append("UPGRADED")
            widths.append(0)
        for line, one in zip(cells, group.members, strict=True):
            line += _assignment_cells(group, one)
            line += [_text(one.is_upgraded).lower()] if is_mixed else []
    lines = columns(headers, cells, widths)
    return lines if is_verbose else [f"{line} " for line in lines]


def _assignment_cells(group: GroupDescription, member: MemberDescription) -> list[str]:
    return [
        _text(member.member_epoch),
        assignment_text(member.assignment),
        _text(group.target_assignment_epoch),
        assignment_text(member.target_assignment or []),
    ]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as `topic:0,1;other:2`."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        topics[topic].append(partition)
    listed = (f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items())
    return ";".join(listed) or MISSING


def state_lines(group: GroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's state."""
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    cells = [
        group.group_id,
        f"{node.host}:{node.port}  ({node.node_id})",
        group.assignor or MISSING,
        group.state,
        str(len(group.members)),
    ]
    widths = [NAME_WIDTH, 25, 20, 20, 0]
    if is_verbose:
        headers[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells[4:4] = [_text(group.group_epoch), _text(group.target_assignment_epoch)]
        widths[4:4] = [15, 25]
    return columns(headers, [cells], widths)


def new_offset_lines(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> list[str]:
    """Return the table of the offsets that a reset sets, or would set."""
    cells = [
        [group_id, partition.topic, str(partition.partition), str(offset)]
        for group_id, of_group in sorted(offsets.items())
        for partition, offset in sorted(of_group.items())
    ]
    headers = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    return columns(headers, cells, [NAME_WIDTH, NAME_WIDTH, 10, 0])


def deleted_offset_lines(outcomes: Mapping[TopicPartition, KafkaError | None]) -> list[str]:
    """Return the table of a deletion; the partition is -1 for a missing topic."""
    cells = [
        [
            partition.topic,
            str(partition.partition) if partition.partition >= 0 else MISSING,
            f"{'Successful' if error is None else f'Error: {error}':<{NAME_WIDTH}}",
        ]
        for partition, error in sorted(outcomes.items())
    ]
    return columns(["TOPIC", "PARTITION", f"{'STATUS':<{NAME_WIDTH}}"], cells, [NAME_WIDTH, 10, 0])
