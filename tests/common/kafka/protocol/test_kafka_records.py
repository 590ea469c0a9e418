"""The records of Kafka's own logs, against bytes that Apache Kafka itself has read and written.

No other Python codec knows them, hence the golden file; its first lines say how it was made.
"""

from pathlib import Path

import pytest

from common.kafka.protocol.records.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from tests.lib.protocol_messages import (
    GROUP_RECORDS,
    METADATA_RECORDS,
    NEWER_RECORDS,
    sample,
    versions_of,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "kafka_records.hex"
DECLARED = [*GROUP_RECORDS, *NEWER_RECORDS, *METADATA_RECORDS.values()]
RECORDS = {record.__name__: record for record in DECLARED}
LINES = [line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("name", "version", "text"), LINES, ids=lambda text: text[:40])
def test_a_record_has_the_bytes_kafka_gives_it(name, version, text):
    record = sample(RECORDS[name], int(version))
    assert encode_struct(record, int(version)).hex() == text
    assert decode_struct(RECORDS[name], int(version), bytes.fromhex(text)) == record


def test_the_file_has_every_record_and_version():
    declared = {(name, v) for name, record in RECORDS.items() for v in versions_of(record)}
    assert {(name, int(version)) for name, version, _ in LINES} == declared


# As Apache Kafka 4.3.1 wrote it for a member of librdkafka with group.protocol=consumer.
MEMBER = "00000872646b61666b610b2f3132372e302e302e3102027401000493e000"


@pytest.mark.parametrize(
    ("classic", "tags"),
    [
        (None, "01000100"),
        (
            ClassicMemberMetadata(
                session_timeout_ms=5, supported_protocols=[ClassicProtocol(name="r", metadata=b"m")]
            ),
            "01000c010000000502027202" + "6d0000",
        ),
        (ClassicMemberMetadata(), "00"),
    ],
)
def test_what_a_member_of_the_new_protocol_lacks_is_a_null_that_is_written(classic, tags):
    member = ConsumerGroupMemberMetadataValue(
        client_id="rdkafka",
        client_host="/127.0.0.1",
        subscribed_topic_names=["t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=300_000,
        classic_member_metadata=classic,
    )
    assert encode_struct(member, 0).hex() == MEMBER + tags
    assert (
        decode_struct(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex(MEMBER + tags)) == member
    )
