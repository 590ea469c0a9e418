"""The worked example of broker/log/format.md, byte by byte."""

import re
from pathlib import Path

from broker.log.index.offset_index import OffsetIndex
from broker.log.index.time_index import TimeIndex
from broker.log.index.transaction_index import AbortedTransaction, TransactionIndex
from broker.log.producers.entry import AppendedBatch, ProducerEntry
from broker.log.producers.snapshot import decode_snapshot, encode_snapshot
from broker.records.build import build_batch

PAGE = Path(__file__).parents[3] / "broker" / "log" / "format.md"


def example(name: str) -> bytes:
    """The bytes of one block of the page: hexadecimal digits up to the wide gap."""
    found = re.search(rf"```text {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return bytes.fromhex("".join(line.split("   ")[0] for line in found[1].splitlines()))


def test_the_batch() -> None:
    records = [
        (b"K1", b"V5", [("h", b"x")], 1_700_000_000_000),
        (b"K5", None, (), 1_700_000_000_007),
    ]
    assert build_batch(records, base_offset=42, leader_epoch=3) == example("batch")


def test_the_index_entries() -> None:
    offsets = OffsetIndex()
    offsets.append(3, 4200)
    assert offsets.to_bytes() == example("index")
    times = TimeIndex()
    times.maybe_append(1_700_000_000_007, 3)
    assert times.to_bytes() == example("timeindex")
    aborted = TransactionIndex()
    aborted.append(AbortedTransaction(7, 42, 44, 45))
    assert aborted.to_bytes() == example("txnindex")


def test_the_snapshot() -> None:
    batch = AppendedBatch(1, 43, 1, 1_700_000_000_009)
    entry = ProducerEntry(7, 0, [batch], 9, 1_700_000_000_009, -1)
    assert encode_snapshot([entry]) == example("snapshot")
    assert decode_snapshot(example("snapshot")) == [entry]
