"""Replicas are compared batch by batch, as Kafka's ReplicaVerificationTool does."""

import pytest

from broker.cli.replica_verification import (
    Held,
    ReplicaComparison,
    ReplicasDiffer,
    highest,
    lag_text,
)
from broker.model import TopicPartition
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.header import PATCH

P0 = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes) -> bytes:
    built = bytearray(build_batch([(None, value, (), 1_000) for value in values]))
    PATCH.pack_into(built, 0, base_offset, PATCH.unpack_from(built)[1], 7)
    return bytes(built)


def crc(built: bytes) -> int:
    (only,) = split_batches(built)
    return only.header.crc


TWO, ONE = batch(5, b"a", b"b"), batch(7, b"c")


def compared(*held: Held) -> tuple[list[str], int]:
    comparison = ReplicaComparison({P0: 5})
    found = list(comparison.compare(P0, dict(enumerate(held, 1))))
    return found, comparison.offsets[P0]


def test_equal_replicas_go_on_behind_the_last_batch() -> None:
    assert compared(Held(8, TWO + ONE), Held(8, TWO + ONE), Held(8, TWO + ONE)) == ([], 8)


def test_a_replica_that_is_behind_ends_the_round_where_it_ends() -> None:
    assert compared(Held(8, TWO + ONE), Held(7, TWO)) == ([], 7)
    assert compared(Held(8, TWO + ONE), Held()) == ([], 5)
    # Half a batch is no batch: fetches end anywhere.
    assert compared(Held(8, TWO + ONE), Held(8, TWO + ONE[:-1])) == ([], 7)


def test_nothing_is_compared_above_the_high_watermark() -> None:
    different = batch(7, b"d")
    assert compared(Held(7, TWO + ONE), Held(7, TWO + different)) == ([], 7)
    assert compared(Held(8, TWO + ONE), Held(7, TWO + different)) == ([], 7)


def test_another_checksum_is_told_and_the_round_goes_on() -> None:
    different = batch(5, b"a", b"x")
    assert compared(Held(8, TWO + ONE), Held(8, different + ONE)) == (
        [
            "partition t-0 has unmatched checksum at offset 6; replica 1's checksum "
            f"{crc(TWO)}; replica 2's checksum {crc(different)}"
        ],
        8,
    )


def test_batches_that_end_elsewhere_end_everything() -> None:
    with pytest.raises(ReplicasDiffer) as found:
        compared(Held(8, TWO), Held(8, batch(5, b"a")))
    assert str(found.value) == (
        "partition t-0: replica 1's offset 6 doesn't match replica 2's offset 5"
    )


def test_the_report_names_the_partition_that_is_furthest_behind() -> None:
    comparison = ReplicaComparison({P0: 5, TopicPartition("u", 3): 10})
    high = {P0: highest([Held(8), Held(6)]), TopicPartition("u", 3): highest([Held(11)])}
    assert lag_text(comparison.lag(high), 2) == (
        "max lag is 3 for partition t-0 at offset 5 among 2 partitions"
    )
