"""How far a group is in its partitions: offsets that are gone, transactions, and its speed."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from common.kafka.topics import TopicPartition
from explain.causes.cause import Figures, fact, notice, problem
from explain.causes.group import SHARE, lag
from explain.facts import GroupCase, Look, Partition

LONG_MS: Final = 60_000
"""Some programs commit only once a minute: Kafka Streams every 30 seconds, Connect every 60."""


class _Committed(NamedTuple):
    """A partition in which a group has committed an offset."""

    partition: Partition
    offset: int


def _committed(case: GroupCase) -> Iterator[_Committed]:
    """Yield what was committed at the first look, just before the partitions were asked for."""
    looks = case.group.looks
    for name, offset in sorted(looks[0].committed.items()) if looks else ():
        partition = case.group.partition(name)
        if partition is not None:
            yield _Committed(partition, offset)


def _owner(case: GroupCase, partition: TopicPartition) -> str:
    look = case.group.latest
    for one in look.members if look else ():
        if partition in one.assigned:
            return f"{one.client_id} on {one.host}"
    return "nobody"


def _place(case: GroupCase, one: _Committed) -> dict[str, object]:
    return {
        "group": case.group.group_id,
        "partition": one.partition.name,
        "topic": one.partition.name.topic,
        "number": one.partition.name.partition,
        "committed": one.offset,
    }


def _gone(case: GroupCase) -> Iterator[Figures]:
    for one in _committed(case):
        earliest = one.partition.earliest
        if earliest is not None and one.offset < earliest:
            yield {**_place(case, one), "earliest": earliest, "lost": earliest - one.offset}


def _beyond(case: GroupCase) -> Iterator[Figures]:
    for one in _committed(case):
        end = one.partition.high_watermark
        if end is not None and one.offset > end:
            yield {**_place(case, one), "end": end}


def _never_committed(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is None or case.group.kind == SHARE:
        return
    for name in sorted({each for one in look.members for each in one.assigned}):
        partition = case.group.partition(name)
        if name in look.committed or partition is None or partition.earliest is None:
            continue
        if partition.high_watermark is not None:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "owner": _owner(case, name),
                "records": partition.high_watermark - partition.earliest,
            }


def _behind_transaction(case: GroupCase) -> Iterator[Figures]:
    for one in _committed(case):
        last_stable, end = one.partition.last_stable, one.partition.high_watermark
        opened = one.partition.open_transactions
        if not opened or last_stable is None or end is None:
            continue
        oldest = min(opened, key=lambda each: each.start_offset)
        # Markers of earlier transactions may lie between the commit and the open one.
        is_there = one.offset == last_stable or one.partition.name in case.group.only_markers
        if last_stable < end and is_there:
            since = oldest.started_ms or oldest.last_write_ms or case.cluster.now_ms
            yield {
                **_place(case, one),
                "transaction": oldest.transactional_id or "an unknown transactional id",
                "producer": oldest.producer_id,
                "start": oldest.start_offset,
                "age": case.cluster.now_ms - since,
                "since": since,
                "hidden": end - last_stable,
            }


def _no_leader(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is None:
        return
    names = {*look.committed, *(each for one in look.members for each in one.assigned)}
    for name in sorted(names):
        partition = case.group.partition(name)
        if partition is not None and not partition.has_leader:
            yield {"group": case.group.group_id, "partition": name}


def _speeds(case: GroupCase) -> tuple[Look, Look, float] | None:
    """Return two looks at a group with members, and the seconds between them."""
    looks = case.group.looks
    if len(looks) < 2 or not looks[-1].members or looks[-1].at_ms <= looks[0].at_ms:
        return None
    return looks[0], looks[-1], (looks[-1].at_ms - looks[0].at_ms) / 1000


def _moved(before: Look, after: Look) -> int:
    return sum(
        max(offset - before.committed[each], 0)
        for each, offset in after.committed.items()
        if each in before.committed
    )


def _grown(before: Look, after: Look) -> int:
    return sum(
        max(end - before.ends[each], 0) for each, end in after.ends.items() if each in before.ends
    )


def standing(before: Look, after: Look) -> list[TopicPartition]:
    """Return where records waited at the first look, and nothing was committed until the second."""
    return [
        name
        for name, offset in sorted(before.committed.items())
        if before.ends.get(name, offset) > offset and after.committed.get(name) == offset
    ]


def _standing(case: GroupCase, *, is_long: bool) -> Iterator[Figures]:
    found = _speeds(case)
    if found is None:
        return
    before, after, seconds = found
    for name in standing(before, after):
        since_ms = case.group.waiting_since_ms.get(name)
        waits_long = since_ms is not None and after.at_ms - since_ms >= LONG_MS
        owner = _owner(case, name)
        if waits_long == is_long and owner != "nobody" and name not in case.group.only_markers:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "owner": owner,
                "committed": after.committed[name],
                "waiting": before.ends[name] - after.committed[name],
                "for": seconds * 1000,
                "since": since_ms,
            }


def _stands_still(case: GroupCase) -> Iterator[Figures]:
    return _standing(case, is_long=True)


def _not_committed(case: GroupCase) -> Iterator[Figures]:
    return _standing(case, is_long=False)


def _slower(case: GroupCase) -> Iterator[Figures]:
    found = _speeds(case)
    if found is None:
        return
    before, after, seconds = found
    moved = _moved(before, after)
    grown = _grown(before, after)
    # A group that keeps up is behind by less than was written since: it commits in between.
    if 0 < moved < grown < lag(after) and lag(after) > lag(before):
        yield {
            "group": case.group.group_id,
            "reads": moved / seconds,
            "writes": grown / seconds,
            "lag": lag(after),
        }


def _catches_up(case: GroupCase) -> Iterator[Figures]:
    found = _speeds(case)
    if found is None:
        return
    before, after, seconds = found
    gained = _moved(before, after) - _grown(before, after)
    if gained > 0 and lag(after) > 0:
        left_ms = lag(after) / (gained / seconds) * 1000
        yield {
            "group": case.group.group_id,
            "reads": _moved(before, after) / seconds,
            "writes": _grown(before, after) / seconds,
            "lag": lag(after),
            "left": left_ms,
            "at": round(after.at_ms + left_ms),
        }


def _only_markers(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    for name in sorted(case.group.only_markers):
        if look is not None and name in look.committed and name in look.ends:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "count": look.ends[name] - look.committed[name],
            }


def _up_to_date(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is None or not look.committed or case.group.kind == SHARE:
        return
    markers = sum(
        look.ends[each] - look.committed[each]
        for each in case.group.only_markers
        if each in look.committed and each in look.ends
    )
    if lag(look) == markers and look.ends.keys() >= look.committed.keys():
        yield {"group": case.group.group_id, "partitions": len(look.committed)}


PROGRESS = (
    problem(
        "group-offset-gone",
        _gone,
        "Group {group} has committed offset {committed} of {partition}, but the log begins at "
        "{earliest}: {lost:record} between them are gone unread. Its consumer begins where "
        "auto.offset.reset says: earliest at {earliest}, latest (the default) at the end.",
        "Raise retention.ms of topic {topic} if the group may be away that long; set the offset "
        "with `millstream consumer-groups --reset-offsets --group {group}`.",
    ),
    problem(
        "group-offset-beyond-end",
        _beyond,
        "Group {group} has committed offset {committed} of {partition}, but the log ends at {end}. "
        "The topic has been created anew, or lost records; its consumer begins where "
        "auto.offset.reset says.",
        "Set the offset: `millstream consumer-groups --reset-offsets --group {group} "
        "--topic {topic}:{number} --to-earliest --execute`.",
    ),
    notice(
        "group-never-committed",
        _never_committed,
        "Group {group} has committed nothing in {partition}, which {owner} reads: "
        "auto.offset.reset decides where it begins, and latest (the default) skips the "
        "{records:record} that are there.",
        "Set auto.offset.reset to earliest for a group that needs them, and check that the "
        "consumer commits.",
    ),
    notice(
        "group-behind-open-transaction",
        _behind_transaction,
        "Group {group} stands at offset {committed} of {partition}, at the open transaction of "
        "{transaction} (producer id {producer}), which began {age:duration} ago ({since:time}): "
        "with read_committed it does not get the {hidden:offset} from {start} on.",
        "That producer must commit or abort: `millstream explain transaction` tells how long it "
        "may take.",
    ),
    problem(
        "group-partition-without-leader",
        _no_leader,
        "Group {group} cannot read {partition}: the partition has no leader.",
        "`millstream explain topic` tells which brokers are missing.",
    ),
    problem(
        "group-stands-still",
        _stands_still,
        "Group {group} stands at offset {committed} of {partition}, with {waiting:offset} to read: "
        "nothing was committed for at least {for:duration}, and the first record that waits is of "
        "{since:time}. Its member {owner} has paused, works on what it has got, or does not "
        "commit.",
        "Look at the log of {owner}: a call that hangs, an error that is repeated for one record, "
        "pause() without resume(), or enable.auto.commit off without commits.",
    ),
    notice(
        "group-has-not-committed",
        _not_committed,
        "Group {group} has not committed anything in {partition} for at least {for:duration}: it "
        "stands at {committed}, with {waiting:offset} to read. Some programs commit once a minute.",
        "Ask again with --seconds 60. If it still stands there, look at the log of {owner}.",
    ),
    problem(
        "group-slower-than-producers",
        _slower,
        "Group {group} reads {reads:rate}, but {writes:rate} are written: it is {lag:offset} "
        "behind, and never catches up at this speed.",
        "Add members (up to one for each partition), or make them faster.",
    ),
    fact(
        "group-catches-up",
        _catches_up,
        "Group {group} is {lag:offset} behind. It reads {reads:rate} while {writes:rate} are "
        "written, so it will have caught up in {left:duration} ({at:time}).",
    ),
    fact(
        "group-only-markers-left",
        _only_markers,
        "Group {group} has read all of {partition}: the last {count:offset} are markers of "
        "transactions, which no consumer gets, though they count as lag.",
    ),
    fact(
        "group-up-to-date",
        _up_to_date,
        "Group {group} has read everything there is for it in {partitions:partition}.",
    ),
)
