"""Why a reader gets, or does not get, the record at one offset; and when it goes."""

from collections.abc import Iterator
from typing import Final

from explain.causes.cause import Figures, fact, notice, problem
from explain.facts import OpenTransaction, RecordCase

FUTURE_MS: Final = 3_600_000
"""A timestamp that is further ahead than this is a wrong one."""


def _place(case: RecordCase) -> dict[str, object]:
    return {"partition": case.partition.name, "offset": case.record.offset}


def _is_removed(case: RecordCase) -> bool:
    return case.partition.earliest is not None and case.record.offset < case.partition.earliest


def _removed_by_age(case: RecordCase) -> Iterator[Figures]:
    if _is_removed(case) and case.topic.is_deleted_by_age():
        settings = case.topic.settings or {}
        yield {
            **_place(case),
            "earliest": case.partition.earliest,
            "retention_ms": settings.get("retention.ms", "not known"),
            "retention_bytes": settings.get("retention.bytes", "not known"),
        }


def _removed_otherwise(case: RecordCase) -> Iterator[Figures]:
    if _is_removed(case) and not case.topic.is_deleted_by_age():
        yield {**_place(case), "earliest": case.partition.earliest}


def _beyond_end(case: RecordCase) -> Iterator[Figures]:
    end = case.record.end
    if end is not None and case.record.offset >= end:
        yield {**_place(case), "end": end, "missing": case.record.offset - end + 1}


def _above_high_watermark(case: RecordCase) -> Iterator[Figures]:
    end, high_watermark = case.record.end, case.partition.high_watermark
    if end is None or high_watermark is None:
        return
    if high_watermark <= case.record.offset < end:
        yield {**_place(case), "high_watermark": high_watermark, "lacking": _in_sync_without(case)}


def _in_sync_without(case: RecordCase) -> list[int]:
    """Return the followers that the high watermark waits for: all, if none is known to be behind.

    Of brokers that give no record above the high watermark only their silence tells something.
    """
    isr = [each for each in case.partition.isr if each != case.partition.leader_id]
    lacking = [each for each in isr if case.record.holders.get(each) is False]
    silent = [each for each in isr if case.cluster.is_silent(each)]
    return lacking or silent or isr


def _its_transaction(case: RecordCase) -> OpenTransaction | None:
    """Return the open transaction that the record is part of."""
    batch = case.record.batch
    if batch is None or not batch.is_transactional or not case.record.is_there:
        return None
    for one in case.partition.open_transactions or ():
        if one.producer_id == batch.producer_id and one.start_offset <= case.record.offset:
            return one
    return None


def _is_hidden(case: RecordCase) -> bool:
    last_stable, high_watermark = case.partition.last_stable, case.partition.high_watermark
    if last_stable is None or high_watermark is None:
        return False
    return last_stable <= case.record.offset < high_watermark


def _whose(case: RecordCase, one: OpenTransaction) -> dict[str, object]:
    since = one.started_ms if one.started_ms is not None else one.last_write_ms
    since = case.cluster.now_ms if since is None else since
    return {
        **_place(case),
        "transaction": one.transactional_id or "an unknown transactional id",
        "producer": one.producer_id,
        "start": one.start_offset,
        "since": since,
        "age": case.cluster.now_ms - since,
        "coordinator": "unknown" if one.coordinator_id is None else one.coordinator_id,
    }


def _in_open_transaction(case: RecordCase) -> Iterator[Figures]:
    one = _its_transaction(case)
    if one is not None and _is_hidden(case):
        yield _whose(case, one)


def _behind_open_transaction(case: RecordCase) -> Iterator[Figures]:
    if not _is_hidden(case) or _its_transaction(case) is not None:
        return
    opened = case.partition.open_transactions or ()
    oldest = min(opened, key=lambda one: one.start_offset, default=None)
    if oldest is not None:
        yield _whose(case, oldest)


def _unreadable(case: RecordCase) -> Iterator[Figures]:
    batch = case.record.batch
    if batch is not None and batch.unreadable and batch.first_offset <= case.record.offset:
        yield {
            **_place(case),
            "first": batch.first_offset,
            "last": batch.last_offset,
            "reason": batch.unreadable,
            "topic": case.partition.name.topic,
            "number": case.partition.name.partition,
            "next": batch.last_offset + 1,
        }


def _is_record(case: RecordCase) -> bool:
    """Tell whether a record is at the offset, and not a marker."""
    batch = case.record.batch
    return batch is not None and batch.marker is None and case.record.is_there is True


def _aborted(case: RecordCase) -> Iterator[Figures]:
    batch = case.record.batch
    if case.record.is_aborted and _is_record(case) and batch is not None:
        yield {**_place(case), "producer": batch.producer_id}


def _marker(case: RecordCase) -> Iterator[Figures]:
    batch = case.record.batch
    if batch is not None and batch.marker is not None and case.record.is_there:
        yield {**_place(case), "kind": batch.marker, "producer": batch.producer_id}


def _is_gap(case: RecordCase) -> bool:
    high_watermark = case.partition.high_watermark
    return (
        case.record.is_there is False
        and not _is_removed(case)
        and high_watermark is not None
        and case.record.offset < high_watermark
    )


def _compacted_away(case: RecordCase) -> Iterator[Figures]:
    batch = case.record.batch
    if batch is not None and _is_gap(case) and case.topic.is_compacted():
        later = [each for each in batch.timestamps if each > case.record.offset]
        yield {**_place(case), "next": min(later, default=batch.last_offset + 1)}


def _gap(case: RecordCase) -> Iterator[Figures]:
    if _is_gap(case) and not case.topic.is_compacted():
        yield _place(case)


def _is_readable(case: RecordCase) -> bool:
    return (
        _is_record(case)
        and case.record.is_aborted is not True
        and case.partition.last_stable is not None
        and case.record.offset < case.partition.last_stable
    )


def _readable(case: RecordCase) -> Iterator[Figures]:
    batch = case.record.batch
    if _is_readable(case) and batch is not None:
        yield {
            **_place(case),
            "leader": case.partition.leader_id,
            "first": batch.first_offset,
            "last": batch.last_offset,
            "time": case.record.timestamp_ms,
        }


def _holders(case: RecordCase) -> Iterator[Figures]:
    having = [each for each, has in case.record.holders.items() if has]
    if having and case.record.is_there:
        yield {
            **_place(case),
            "having": having,
            "directories": [f"{each}: {path}" for each, path in case.record.directories.items()],
        }


def _lacking(case: RecordCase) -> Iterator[Figures]:
    lacking = [each for each, has in case.record.holders.items() if not has]
    if lacking and case.record.is_there:
        yield {**_place(case), "lacking": lacking}


def _expires(case: RecordCase) -> Iterator[Figures]:
    kept_ms, at_ms = case.topic.number("retention.ms"), case.record.timestamp_ms
    if not (case.record.is_there and case.topic.is_deleted_by_age()):
        return
    if kept_ms is not None and kept_ms >= 0 and at_ms is not None:
        yield {**_place(case), "retention": kept_ms, "goes": at_ms + kept_ms}


def _kept(case: RecordCase) -> Iterator[Figures]:
    is_by_size = (case.topic.number("retention.bytes") or -1) >= 0
    is_by_age = (case.topic.number("retention.ms") or 0) >= 0
    if case.record.is_there and case.topic.is_deleted_by_age() and not is_by_age and not is_by_size:
        yield _place(case)


def _from_the_future(case: RecordCase) -> Iterator[Figures]:
    at_ms = case.record.timestamp_ms
    if at_ms is not None and at_ms > case.cluster.now_ms + FUTURE_MS:
        yield {**_place(case), "time": at_ms, "ahead": at_ms - case.cluster.now_ms}


def _read_by(case: RecordCase) -> Iterator[Figures]:
    beyond = {
        group_id: offset
        for group_id, offset in (case.record.commits or {}).items()
        if offset > case.record.offset
    }
    if beyond and _is_record(case):
        yield {**_place(case), "groups": sorted(beyond)}


def _not_read_by(case: RecordCase) -> Iterator[Figures]:
    if not _is_record(case):
        return
    for group_id, offset in sorted((case.record.commits or {}).items()):
        if offset <= case.record.offset:
            yield {
                **_place(case),
                "group": group_id,
                "committed": offset,
                "left": case.record.offset - offset,
            }


RECORD = (
    problem(
        "record-removed-by-retention",
        _removed_by_age,
        "Offset {offset} of {partition} is gone: the log begins at offset {earliest}. The topic "
        "deletes old records (retention.ms {retention_ms}, retention.bytes {retention_bytes}); "
        "DeleteRecords does the same.",
        "It cannot be brought back. Raise retention.ms or retention.bytes if records go too early.",
    ),
    problem(
        "record-removed",
        _removed_otherwise,
        "Offset {offset} of {partition} is gone: the log begins at offset {earliest}, by a request "
        "to delete records.",
        "It cannot be brought back.",
    ),
    problem(
        "record-beyond-end",
        _beyond_end,
        "Offset {offset} of {partition} has not been written yet: the log ends at offset {end}.",
        "It exists after {missing:more record}. Check the partition if the record should be there.",
    ),
    problem(
        "record-above-high-watermark",
        _above_high_watermark,
        "Offset {offset} of {partition} is written, but not on all in-sync replicas: no consumer "
        "gets it, because the high watermark is {high_watermark}.",
        "Wait until {lacking:brokers} have copied it, or have left the ISR.",
    ),
    problem(
        "record-in-open-transaction",
        _in_open_transaction,
        "Offset {offset} of {partition} belongs to the open transaction of {transaction} (producer "
        "id {producer}, coordinator {coordinator}), which began at offset {start}, "
        "{age:duration} ago ({since:time}): readers with read_committed get it after the commit.",
        "The producer must commit. `millstream explain transaction` tells how long it may take.",
    ),
    problem(
        "record-behind-open-transaction",
        _behind_open_transaction,
        "Offset {offset} of {partition} is no part of an open transaction, but lies behind that of "
        "{transaction} (producer id {producer}, coordinator {coordinator}), which began at offset "
        "{start}, {age:duration} ago ({since:time}): readers with read_committed wait for its end.",
        "That producer must commit or abort. `millstream explain transaction` tells how long it "
        "may take.",
    ),
    problem(
        "record-unreadable",
        _unreadable,
        "Offset {offset} of {partition} lies in a batch (offsets {first} to {last}) that cannot be "
        "decoded: {reason}. Consumers stop there with an error.",
        "A group passes it if its offset is set behind it: `millstream consumer-groups "
        "--reset-offsets --topic {topic}:{number} --to-offset {next} --execute --group GROUP`.",
    ),
    problem(
        "record-aborted",
        _aborted,
        "Offset {offset} of {partition} belongs to a transaction of producer id {producer} that "
        "was aborted: readers with read_committed never get it.",
        "Read with read_uncommitted to see it. What it said has to be produced again.",
    ),
    notice(
        "record-is-marker",
        _marker,
        "Offset {offset} of {partition} is no record but the marker {kind}, which ends a "
        "transaction of producer id {producer}: no consumer gets it.",
    ),
    notice(
        "record-compacted-away",
        _compacted_away,
        "Offset {offset} of {partition} is gone by compaction: a later record of the same key, or "
        "the deletion of the key, has replaced it. The next offset that is there is {next}.",
    ),
    notice(
        "record-number-unused",
        _gap,
        "No record of {partition} has offset {offset}; readers pass over it.",
    ),
    fact(
        "record-readable",
        _readable,
        "Offset {offset} of {partition} can be read by everybody: broker {leader} has it in the "
        "batch of offsets {first} to {last}, with the time {time:time}.",
    ),
    fact(
        "record-replicas",
        _holders,
        "Replicas of {partition} that have offset {offset}: {having:brokers} "
        "(directories {directories:names}).",
    ),
    notice(
        "record-lacking-replicas",
        _lacking,
        "Replicas of {partition} that do not have offset {offset}, or do not answer: "
        "{lacking:brokers}.",
    ),
    fact(
        "record-expires",
        _expires,
        "Offset {offset} of {partition} is kept for {retention:duration} (retention.ms): its "
        "segment may be deleted from {goes:time} on, and not before its newest record is as old.",
    ),
    fact(
        "record-kept",
        _kept,
        "Offset {offset} of {partition} is kept for ever: the topic has no limit of age or size.",
    ),
    notice(
        "record-from-the-future",
        _from_the_future,
        "Offset {offset} of {partition} has a time that is {ahead:duration} ahead ({time:time}): "
        "its segment is not deleted by age before that.",
        "Check the clock of the producer, or set message.timestamp.after.max.ms.",
    ),
    fact(
        "record-read-by",
        _read_by,
        "Groups that have committed an offset beyond {offset} of {partition}: {groups:names}.",
    ),
    notice(
        "record-not-read-by",
        _not_read_by,
        "Group {group} has not read offset {offset} of {partition}: it has committed {committed}, "
        "so {left:offset} come first.",
        "`millstream explain group {group}` tells why.",
    ),
)
