"""What the cluster knows of a producer id: where it wrote, whether it is fenced or forgotten."""

from collections.abc import Iterator
from typing import Final

from explain.causes.cause import Figures, fact, notice, problem
from explain.facts import ProducerCase, ProducerEntry

IDLE_MS: Final = 60_000


def _unknown(case: ProducerCase) -> Iterator[Figures]:
    one = case.producer
    if one.is_complete and not one.entries and one.transaction is None:
        yield {"producer": one.producer_id}


def _newest_epoch(case: ProducerCase) -> int | None:
    one = case.producer
    epochs = [entry.epoch for entry in one.entries]
    if one.transaction is not None and one.transaction.producer_epoch is not None:
        epochs.append(one.transaction.producer_epoch)
    return max(epochs, default=None)


def _fenced(case: ProducerCase) -> Iterator[Figures]:
    asked, newest = case.producer.epoch, _newest_epoch(case)
    if asked is not None and newest is not None and asked < newest:
        owner = case.producer.transaction
        yield {
            "producer": case.producer.producer_id,
            "epoch": asked,
            "newest": newest,
            "owner": f" of {owner.transactional_id}" if owner else "",
        }


def _last_write(case: ProducerCase) -> int | None:
    times = [one.last_write_ms for one in case.producer.entries if one.last_write_ms is not None]
    return max(times, default=None)


def _idle(case: ProducerCase) -> Iterator[Figures]:
    at_ms = _last_write(case)
    if at_ms is not None and case.cluster.now_ms - at_ms > IDLE_MS:
        yield {
            "producer": case.producer.producer_id,
            "idle": case.cluster.now_ms - at_ms,
            "at": at_ms,
        }


def _hanging(case: ProducerCase) -> Iterator[Figures]:
    known = case.producer.transaction
    for entry in case.producer.entries:
        is_known = known is not None and any(
            each.name == entry.partition for each in known.partitions
        )
        if entry.open_since is not None and not is_known and case.producer.is_complete:
            yield {
                "producer": case.producer.producer_id,
                "partition": entry.partition,
                "topic": entry.partition.topic,
                "number": entry.partition.partition,
                "start": entry.open_since,
            }


def _order(entry: ProducerEntry) -> tuple[str, int]:
    return entry.partition


def _wrote(case: ProducerCase) -> Iterator[Figures]:
    for entry in sorted(case.producer.entries, key=_order):
        if entry.last_write_ms is not None:
            yield {
                "producer": case.producer.producer_id,
                "partition": entry.partition,
                "epoch": entry.epoch,
                "sequence": entry.last_sequence,
                "at": entry.last_write_ms,
                "state": "none"
                if entry.open_since is None
                else f"one from offset {entry.open_since} on",
            }


PRODUCER = (
    problem(
        "producer-unknown",
        _unknown,
        "No partition and no coordinator knows producer id {producer}: it has not written, or not "
        "for producer.id.expiration.ms (a day by default).",
        "Check the id. An idempotent producer that was forgotten gets UNKNOWN_PRODUCER_ID or "
        "OUT_OF_ORDER_SEQUENCE_NUMBER; client libraries take a new id by themselves.",
    ),
    problem(
        "producer-fenced",
        _fenced,
        "Producer id {producer} with epoch {epoch} is fenced: the producer{owner} has epoch "
        "{newest}, so what the older one sends is refused with INVALID_PRODUCER_EPOCH or "
        "PRODUCER_FENCED.",
        "Another producer has the same transactional.id, or its transaction was aborted after its "
        "time-out. Stop the older one, or give each its own transactional.id.",
    ),
    problem(
        "producer-transaction-hangs",
        _hanging,
        "Producer id {producer} has a transaction open in {partition} from offset {start} on, and "
        "no coordinator knows it: it will never end.",
        "`millstream transactions abort --topic {topic} --partition {number} "
        "--start-offset {start}` ends it; readers with read_committed then never get its records.",
    ),
    notice(
        "producer-idle",
        _idle,
        "Producer id {producer} has written nothing for {idle:duration} (since {at:time}, by the "
        "times of its records).",
    ),
    fact(
        "producer-wrote",
        _wrote,
        "Producer id {producer} wrote to {partition} with epoch {epoch}: its last sequence number "
        "is {sequence}, at {at:time}; open transaction: {state}.",
    ),
)
