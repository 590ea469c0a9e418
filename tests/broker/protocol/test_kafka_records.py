"""The records of Kafka's own logs, against bytes that Apache Kafka itself has read and written.

No other Python codec knows them, hence the golden file; its first lines say how it was made.
"""

from pathlib import Path

import pytest

from broker.protocol.structs import decode_struct, encode_struct
from tests.lib.protocol_messages import GROUP_RECORDS, METADATA_RECORDS, sample, versions_of

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka_records.hex"
RECORDS = {record.__name__: record for record in [*GROUP_RECORDS, *METADATA_RECORDS.values()]}
LINES = [line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("name", "version", "text"), LINES, ids=lambda text: text[:40])
def test_a_record_has_the_bytes_kafka_gives_it(name, version, text):
    record = sample(RECORDS[name], int(version))
    assert encode_struct(record, int(version)).hex() == text
    assert decode_struct(RECORDS[name], int(version), bytes.fromhex(text)) == record


def test_the_file_has_every_record_and_version():
    declared = {(name, v) for name, record in RECORDS.items() for v in versions_of(record)}
    assert {(name, int(version)) for name, version, _ in LINES} == declared
