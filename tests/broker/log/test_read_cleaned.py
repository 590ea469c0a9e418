"""Reading a log whose batches the cleaner has emptied."""

from broker.log.cleaner.run import CleaningLimits, clean
from broker.log.cleaner.schedule import measure
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.records.batch import split_batches
from broker.records.build import build_batch
from tests.lib.logs import joined, open_log
from tests.lib.simulated_storage import SimulatedStorage

CONFIG = LogConfig(cleanup_policy=("compact",), internal_segment_bytes=2_000)


def cleaned_log() -> PartitionLog:
    """Ten keys written fifty times over many segments, then cleaned."""
    log = open_log(SimulatedStorage(), CONFIG)
    for number in range(50):
        records = [(b"key-%d" % key, b"%d" % number, (), 1) for key in range(10)]
        log.append_as_leader(build_batch(records), leader_epoch=0, timestamp_ms=1)
    log.advance_high_watermark(log.log_end_offset)
    clean(measure(log, 2), 2, CleaningLimits())
    return log


def test_whatever_the_offset_a_read_begins_with_a_record() -> None:
    log = cleaned_log()
    for offset in range(log.log_end_offset):
        read = log.read(offset, max_bytes=1, max_offset=log.high_watermark)
        batches = list(split_batches(joined(read.parts)))
        assert batches, offset
        assert batches[0].header.record_count > 0, offset
        assert batches[0].header.last_offset >= offset


def test_a_reader_that_follows_the_log_comes_to_its_end() -> None:
    log = cleaned_log()
    offset, keys = 0, {}
    while offset < log.high_watermark:
        read = log.read(offset, max_bytes=100, max_offset=log.high_watermark)
        for batch in split_batches(joined(read.parts)):
            keys.update({record.key: record.value for record in batch.records()})
            offset = batch.next_offset
    assert keys == {b"key-%d" % key: b"49" for key in range(10)}
