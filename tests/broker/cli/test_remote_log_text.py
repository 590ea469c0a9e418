"""Remote log metadata as text: bytes and texts are those of Apache Kafka 4.3.1's own classes."""

import pytest

from broker.cli.remote_log_text import remote_log_text
from broker.records.record import Record


def text_of(value: str) -> str | None:
    record = Record(offset=5, timestamp_ms=0, key=None, value=bytes.fromhex(value), headers=())
    return remote_log_text(record).payload


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "010000076f7264657273000000000000000000000000000000010000000300000000000000000000"
            "0000000000000200000000000000000a0000000000000014000000010000018bcfe568000000018b"
            "cfe568010300000000000000000000000a0000000002000000000000000f0000000400000000",
            "RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="
            "AAAAAAAAAAAAAAAAAAAAAQ:orders-3, id=AAAAAAAAAAAAAAAAAAAAAg}, startOffset=10, end"
            "Offset=20, brokerId=1, maxTimestampMs=1700000000000, eventTimestampMs=1700000000"
            "001, segmentLeaderEpochs={0=10, 2=15}, segmentSizeInBytes=1024, customMetadata=O"
            "ptional.empty, state=COPY_SEGMENT_STARTED, txnIdxEmpty=false}",
        ),
        (
            "010000076f7264657273000000000000000000000000000000010000000300000000000000000000"
            "0000000000000200000000000000000a0000000000000014000000010000018bcfe568000000018b"
            "cfe568010300000000000000000000000a0000000002000000000000000f0000000400040102fd00"
            "01000101",
            "RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="
            "AAAAAAAAAAAAAAAAAAAAAQ:orders-3, id=AAAAAAAAAAAAAAAAAAAAAg}, startOffset=10, end"
            "Offset=20, brokerId=1, maxTimestampMs=1700000000000, eventTimestampMs=1700000000"
            "001, segmentLeaderEpochs={0=10, 2=15}, segmentSizeInBytes=1024, customMetadata=O"
            "ptional[CustomMetadata{3 bytes}], state=COPY_SEGMENT_STARTED, txnIdxEmpty=true}",
        ),
        (
            "010100076f7264657273000000000000000000000000000000010000000300000000000000000000"
            "0000000000000200000000010000018bcfe56802000100",
            "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId=RemoteLogSegmentId{topicIdPart"
            "ition=AAAAAAAAAAAAAAAAAAAAAQ:orders-3, id=AAAAAAAAAAAAAAAAAAAAAg}, customMetadat"
            "a=Optional.empty, state=COPY_SEGMENT_FINISHED, eventTimestampMs=1700000000002, b"
            "rokerId=1}",
        ),
        (
            "010200076f7264657273000000000000000000000000000000010000000300000000010000018bcf"
            "e568030100",
            "RemotePartitionDeleteMetadata{topicPartition=AAAAAAAAAAAAAAAAAAAAAQ:orders-3, st"
            "ate=DELETE_PARTITION_STARTED, eventTimestampMs=1700000000003, brokerId=1}",
        ),
    ],
)
def test_kafkas_own_bytes(value: str, expected: str) -> None:
    assert text_of(value) == expected


def test_an_unknown_type_is_named() -> None:
    assert text_of("010900") == ("Error at offset 5, skipping. Unknown metadata id 9")


@pytest.mark.parametrize("value", ["", "01", "0100", "010000", "01020007"])
def test_what_is_cut_off_is_an_error_in_words(value: str) -> None:
    assert str(text_of(value)).startswith("Error at offset 5, skipping.")
