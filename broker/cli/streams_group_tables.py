"""The tables of `streams-groups`, which are Kafka's, each a function from values to lines."""

from collections.abc import Mapping
from typing import NamedTuple

from broker.cli.group_tables import MISSING, NAME_WIDTH, columns
from broker.model import TopicPartition
from common.kafka.admin.streams_groups import (
    Assigned,
    StreamsGroupDescription,
    Tasks,
)


class StreamsOffset(NamedTuple):
    """Where a group is in a partition; None for what is not known."""

    offset: int | None
    leader_epoch: int | None
    log_end_offset: int
    lag: int


def offset_lines(
    group_id: str, offsets: Mapping[TopicPartition, StreamsOffset], *, is_verbose: bool
) -> list[str]:
    """Return the table of a group's offsets."""
    found = sorted(offsets.items())
    if not is_verbose:
        headers = ["GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"]
        rows = [[group_id, topic, str(number), str(one.lag)] for (topic, number), one in found]
        return columns(headers, rows, [NAME_WIDTH, NAME_WIDTH, 10, 0])
    headers = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH"]
    headers += ["LOG-END-OFFSET", "OFFSET-LAG"]
    rows = [
        [
            group_id,
            topic,
            str(number),
            *(
                MISSING if value is None else str(value)
                for value in (one.offset, one.leader_epoch, one.log_end_offset, one.lag)
            ),
        ]
        for (topic, number), one in found
    ]
    return columns(headers, rows, [NAME_WIDTH, NAME_WIDTH, 10, 15, 15, 15, 15])


def member_lines(group: StreamsGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's members."""
    headers = ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    widths = [NAME_WIDTH, NAME_WIDTH, NAME_WIDTH, NAME_WIDTH, 0]
    rows = [
        [
            group.group_id,
            one.member_id,
            one.process_id,
            one.client_id,
            tasks_text(one.assignment),
        ]
        for one in group.members
    ]
    if not is_verbose:
        return columns(headers, rows, widths)
    headers[1:1] = ["TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH"]
    headers[4:4] = ["MEMBER-PROTOCOL", "MEMBER-EPOCH"]
    widths[1:1] = [25, NAME_WIDTH]
    widths[4:4] = [NAME_WIDTH, NAME_WIDTH]
    for row, one in zip(rows, group.members, strict=True):
        row[1:1] = [str(group.target_epoch), str(group.topology_epoch)]
        row[4:4] = ["classic" if one.is_classic else "streams", str(one.member_epoch)]
        row[-1] += tasks_text(one.target_assignment, "TARGET-")
    return columns(headers, rows, widths)


def tasks_text(assigned: Assigned, prefix: str = "") -> str:
    """Return tasks as `ACTIVE: 0:[0,1]; STANDBY: 1:[2]; `."""
    kinds = ("ACTIVE", "STANDBY", "WARMUP")
    pairs = zip(kinds, assigned, strict=True)
    return "".join(_tasks(f"{prefix}{kind}", tasks) for kind, tasks in pairs)


def _tasks(kind: str, tasks: Tasks) -> str:
    listed = [f"{name}:[{','.join(map(str, partitions))}]; " for name, partitions in tasks]
    return f"{kind}: {''.join(listed)}" if listed else ""


def state_lines(group: StreamsGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's state."""
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    cells = [
        group.group_id,
        f"{node.host}:{node.port} ({node.node_id})",
        group.state,
        str(len(group.members)),
    ]
    widths = [NAME_WIDTH, 25, 25, 0]
    if is_verbose:
        headers[3:3] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells[3:3] = [str(group.group_epoch), str(group.target_epoch)]
        widths[3:3] = [NAME_WIDTH, 25]
    return columns(headers, [cells], widths)


def state_warning(group: StreamsGroupDescription) -> str | None:
    """Return the warning before the table of a group, None without one."""
    if group.state == "Empty":
        return f"Streams group '{group.group_id}' has no active members."
    return None
