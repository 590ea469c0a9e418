"""The anomalies that no history of transactions may show, whatever the faults.

A copy: the output has each value of the input once, in the order of the input, partition by
partition. Transfers: a half of an aborted transfer is never read (G1a); a half that was read has
the same offset in all later reads; at the end a transfer is there whole or not at all, and whole if
its commit was acknowledged; so the sum of all accounts is zero.

Every earlier read has the sum zero too, if only whole transfers count: a read of several partitions
is not a snapshot, so one half may be read while the other is beyond the end of the read in its
partition. Without such halves the rest must sum to zero: below the ends of the read no half is
missing (a `read_committed` consumer stops at the last stable offset) or there twice.

Pure: no clock, no client.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.chaos.checker import Anomaly
from tests.chaos.history import Outcome

Partition = int


class Transfer(NamedTuple):
    """One transaction: `amount` goes from one account to another; an account is a partition."""

    number: int
    source: Partition
    target: Partition
    amount: int
    outcome: Outcome


class Half(NamedTuple):
    """One record of a transfer as it was read."""

    offset: int
    number: int
    amount: int
    """Below zero in the account that pays."""


Accounts = Mapping[Partition, Sequence[Half]]
"""One read of all accounts from their start."""


def check_copy(
    inputs: Mapping[Partition, Sequence[int]], outputs: Mapping[Partition, Sequence[int]]
) -> Iterator[Anomaly]:
    """Yield the differences between an output and its input."""
    for partition, wanted in sorted(inputs.items()):
        key, found = f"copy/{partition}", outputs.get(partition, ())
        counts, known = Counter(found), set(wanted)
        for value, count in counts.items():
            if value not in known:
                yield Anomaly("unknown-copy", key, value, "is in the output and not in the input")
            elif count > 1:
                yield Anomaly("duplicate-copy", key, value, f"was copied {count} times")
        for value in wanted:
            if value not in counts:
                yield Anomaly("lost-copy", key, value, "is in the input and not in the output")
        first_copies = [value for value in dict.fromkeys(found) if value in known]
        in_order = [value for value in wanted if value in counts]
        for value, expected in zip(first_copies, in_order, strict=True):
            if value != expected:
                text = f"stands where {expected} should: the order is another"
                yield Anomaly("copy-out-of-order", key, value, text)
                break


def check_transfers(transfers: Sequence[Transfer], reads: Sequence[Accounts]) -> Iterator[Anomaly]:
    """Yield the anomalies in reads of the accounts; the last read is after all faults."""
    known = {transfer.number: transfer for transfer in transfers}
    places = offsets_of(reads[-1]) if reads else {}
    seen: dict[tuple[Partition, int], Half] = {}
    for at, read in enumerate(reads):
        yield from _check_read(at, read, known)
        yield from _check_same(at, read, seen, is_last=at == len(reads) - 1)
    for at, read in enumerate(reads[:-1]):
        yield from _check_cut(at, read, known, places)
    if reads:
        yield from _check_last(known, reads[-1])


def _check_read(at: int, read: Accounts, known: Mapping[int, Transfer]) -> Iterator[Anomaly]:
    for partition, halves in sorted(read.items()):
        key = f"account/{partition}"
        counts = Counter(half.number for half in halves)
        for half in halves:
            transfer = known.get(half.number)
            if transfer is None or half.amount != amount_on(transfer, partition):
                yield Anomaly(
                    "unknown-half", key, half.number, f"read {at}: nobody has sent {half}"
                )
            elif transfer.outcome is Outcome.FAIL:
                yield Anomaly("aborted-read", key, half.number, f"read {at}: it was aborted")
        offsets = Counter(half.offset for half in halves)
        again = sorted(offset for offset, count in offsets.items() if count > 1)
        if again:
            # The log has one record at an offset: the consumer went back and read on from there.
            text = f"read {at}: {len(again)} offsets came again, up to {again[-1]}"
            yield Anomaly("read-again", key, again[0], text)
            counts = Counter(half.number for half in set(halves))
        for number, count in counts.items():
            if count > 1:
                yield Anomaly("duplicate-half", key, number, f"read {at}: {count} times")


def _check_same(
    at: int, read: Accounts, seen: dict[tuple[Partition, int], Half], *, is_last: bool
) -> Iterator[Anomaly]:
    """Check that an offset has the same half in every later read that reaches it.

    A read from a new leader may end before an earlier one did: until its followers have fetched,
    its high watermark is below that of the former leader (KIP-207). The last read is after all
    faults, and has all records.
    """
    for partition, halves in sorted(read.items()):
        key = f"account/{partition}"
        now = {half.offset: half for half in halves}
        end = max(now, default=-1)
        for (where, offset), before in list(seen.items()):
            is_reached = is_last or offset <= end
            if where == partition and is_reached and now.get(offset) != before:
                text = f"read {at}: at {offset} stands {now.get(offset)}, before it was {before}"
                yield Anomaly("inconsistent-read", key, before.number, text)
                del seen[where, offset]
        for half in halves:
            seen[partition, half.offset] = half


def offsets_of(read: Accounts) -> dict[tuple[int, Partition], int]:
    """Return the offset of each half, by the number of its transfer and its account."""
    return {
        (half.number, partition): half.offset
        for partition, halves in read.items()
        for half in halves
    }


def _check_cut(
    at: int,
    read: Accounts,
    known: Mapping[int, Transfer],
    places: Mapping[tuple[int, Partition], int],
) -> Iterator[Anomaly]:
    """Check that the halves sum to zero, without those whose other half is beyond the read."""
    ends = {
        partition: max((half.offset for half in halves), default=-1)
        for partition, halves in read.items()
    }
    total = 0
    for partition, halves in read.items():
        for half in halves:
            transfer = known.get(half.number)
            other = None if transfer is None else other_account(transfer, partition)
            place = None if other is None else places.get((half.number, other))
            if other is None or place is None or place <= ends.get(other, -1):
                total += half.amount
    if total:
        yield Anomaly(
            "money", "accounts", None, f"read {at}: whole transfers together have {total}"
        )


def other_account(transfer: Transfer, partition: Partition) -> Partition:
    """Return the account of the other half of a transfer."""
    return transfer.target if partition == transfer.source else transfer.source


def _check_last(known: Mapping[int, Transfer], read: Accounts) -> Iterator[Anomaly]:
    places: dict[int, set[Partition]] = {}
    for partition, halves in read.items():
        for half in halves:
            places.setdefault(half.number, set()).add(partition)
    for number, transfer in known.items():
        found = places.get(number, set())
        if found and found != {transfer.source, transfer.target}:
            text = f"only the half on {sorted(found)} of {transfer}"
            yield Anomaly("torn-transfer", "accounts", number, text)
        if not found and transfer.outcome is Outcome.OK:
            yield Anomaly("lost-transfer", "accounts", number, f"{transfer} was acknowledged")
    total = sum(half.amount for halves in read.values() for half in halves)
    if total:
        yield Anomaly("money", "accounts", None, f"all accounts together have {total}")


def amount_on(transfer: Transfer, partition: Partition) -> int | None:
    """Return the amount that a transfer writes to an account, None for any other account."""
    if partition == transfer.source:
        return -transfer.amount
    return transfer.amount if partition == transfer.target else None
