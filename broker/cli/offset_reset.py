"""The new offsets of `consumer-groups --reset-offsets`: one function per rule.

An offset that is given by its number is limited to the range of the log. A time after all records
stands for the end of the log. Offsets in a file are lines `topic,partition,offset`, with the group
in front if there are several groups.
"""

import csv
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from broker.cli.arguments import ToolFailed
from broker.cli.json_files import INT32_MAX, INT64_MAX, check_text
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import committed_offsets
from common.kafka.admin.leaders import EARLIEST, LATEST, UNKNOWN_OFFSET, list_offsets, successes

Offsets = dict[TopicPartition, int]

DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_MAX_TOLD_CHARACTERS = 100
DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{3}))?(Z|[+-]\d\d(?::?\d\d)?)?")


class Reset(NamedTuple):
    """The input of a rule: the group, its partitions, and the rule's own value."""

    client: AdminClient
    group_id: str
    partitions: Collection[TopicPartition]
    value: str
    timestamp_ms: int  # the current time


def _listed(client: AdminClient, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
    listed = successes(list_offsets(client, partitions, timestamp))
    return {partition: found.offset for partition, found in listed.items()}


def to_earliest(reset: Reset) -> Offsets:
    """Return the log start offsets."""
    return _listed(reset.client, reset.partitions, EARLIEST)


def to_latest(reset: Reset) -> Offsets:
    """Return the log end offsets."""
    return _listed(reset.client, reset.partitions, LATEST)


def to_offset(reset: Reset) -> Offsets:
    """Return one offset for all partitions, within the range of each log."""
    return _in_range(reset.client, dict.fromkeys(reset.partitions, _number(reset.value)))


def shift_by(reset: Reset) -> Offsets:
    """Return the committed offsets plus a distance, within the range of each log."""
    committed, count = committed_offsets(reset.client, reset.group_id), _number(reset.value)
    for partition in reset.partitions:
        if partition not in committed:
            raise ToolFailed(
                f"Cannot shift offset for partition {partition} since there is no current "
                "committed offset"
            )
    return _in_range(reset.client, {one: committed[one].offset + count for one in reset.partitions})


def to_current(reset: Reset) -> Offsets:
    """Return the committed offsets; the log end offset for partitions without one."""
    committed = committed_offsets(reset.client, reset.group_id)
    others = [partition for partition in reset.partitions if partition not in committed]
    kept = {one: committed[one].offset for one in reset.partitions if one in committed}
    return kept | _listed(reset.client, others, LATEST)


def to_datetime(reset: Reset) -> Offsets:
    """Return the offsets of the first records at or after a time."""
    return _at_time(reset, parse_datetime(reset.value))


def by_duration(reset: Reset) -> Offsets:
    """Return the offsets of the first records that are not older than a duration."""
    age_ms = parse_duration(reset.value) // timedelta(milliseconds=1)
    return _at_time(reset, reset.timestamp_ms - age_ms)


def _at_time(reset: Reset, timestamp_ms: int) -> Offsets:
    found = _listed(reset.client, reset.partitions, timestamp_ms)
    later = [partition for partition, offset in found.items() if offset == UNKNOWN_OFFSET]
    for topic, partition in sorted(later):
        print(
            f"\nWarn: Partition {partition} from topic {topic} is empty. "
            "Falling back to latest known offset."
        )
    return found | _listed(reset.client, later, LATEST)


def _in_range(client: AdminClient, offsets: Offsets) -> Offsets:
    """Limit offsets to the ranges of the logs, with a warning."""
    begins = _listed(client, offsets, EARLIEST)
    ends = _listed(client, offsets, LATEST)
    moved = {}
    for partition, offset in offsets.items():
        moved[partition] = max(begins[partition], min(offset, ends[partition]))
        if moved[partition] != offset:
            kind = "higher than latest" if offset > ends[partition] else "lower than earliest"
            print(
                f"New offset ({offset}) is {kind} offset for topic partition {partition}. "
                f"Value will be set to {moved[partition]}",
                file=sys.stderr,
            )
    return moved


RULES: dict[str, Callable[[Reset], Offsets]] = {
    "to-earliest": to_earliest,
    "to-latest": to_latest,
    "to-current": to_current,
    "to-offset": to_offset,
    "shift-by": shift_by,
    "by-duration": by_duration,
    "to-datetime": to_datetime,
}


def from_plan(client: AdminClient, plan: Offsets) -> Offsets:
    """Return the offsets of a file, within the ranges of the logs."""
    return _in_range(client, plan)


# Arguments and file.


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ToolFailed(f"Cannot parse argument '{text}' as a number") from None


def parse_datetime(text: str) -> int:
    """Return the timestamp of `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it has an offset."""
    found = DATE_TIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        zone = {None: "+00:00", "Z": "+00:00"}.get(found[3], found[3])
        moment = datetime.fromisoformat(f"{found[1]}.{found[2] or '000'}{zone}")
    except ValueError:
        raise ToolFailed(
            f"{text!r} is no date and time of the format 'YYYY-MM-DDThh:mm:ss.sss'"
        ) from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str) -> timedelta:
    """Return the duration of `PnDTnHnMnS`."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]) or text[-1] in "Tt":
        raise ToolFailed(f"{text!r} is no duration of the format 'PnDTnHnMnS'")
    days, hours, minutes = (int(part or 0) for part in found.groups()[1:4])
    seconds = timedelta(seconds=float(found[5] or 0))
    duration = timedelta(days=days, hours=hours, minutes=minutes) + seconds
    return -duration if found[1] == "-" else duration


def _whole(text: str, largest: int) -> int:
    number = int(text)
    if abs(number) > largest:
        raise ValueError(text)
    return number


def read_plan(path: str, group_ids: Collection[str]) -> dict[str, Offsets]:
    """Read a `--from-file`: the offsets of each group."""
    try:
        lines = list(csv.reader(StringIO(Path(path).read_text(encoding="utf-8"))))
    except OSError as error:
        raise ToolFailed(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ToolFailed(f"cannot read {path}: {error}") from error
    only = next(iter(group_ids)) if len(group_ids) == 1 else None
    plan: dict[str, Offsets] = {}
    for line in filter(None, lines):
        cells = line if len(line) == 4 or only is None else [only, *line]
        try:
            group_id, topic, partition, offset = cells
            check_text(topic, "topic")
            number = _whole(partition, INT32_MAX)
            plan.setdefault(group_id, {})[TopicPartition(topic, number)] = _whole(offset, INT64_MAX)
        except ValueError:
            told = ",".join(line)[:_MAX_TOLD_CHARACTERS]
            raise ToolFailed(f"{path} has a line that is no offset: {told}") from None
    return plan


def plan_text(offsets: Mapping[str, Offsets], group_ids: Iterable[str]) -> str:
    """Return offsets in the format of a `--from-file`; `group_ids` are those of the arguments."""
    is_single = len(list(group_ids)) == 1
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, of_group in sorted(offsets.items()):
        for (topic, partition), offset in sorted(of_group.items()):
            writer.writerow([*([] if is_single else [group_id]), topic, partition, offset])
    return text.getvalue()
