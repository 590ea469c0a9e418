"""What the console tools make of lines, of records and of settings, as Kafka's do."""

from pathlib import Path

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.clients.formatters import CREATE_TIME, NO_TIMESTAMP, ConsumedRecord, make_formatter
from broker.cli.clients.line_reader import LineReader, LineRecord
from broker.cli.clients.settings import (
    collect_settings,
    set_consumer_defaults,
    set_producer_defaults,
    translate,
)

KEYED = {"parse.key": "true"}
FULL = KEYED | {"parse.headers": "TRUE", "null.marker": "NULL"}


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, "a\tb", LineRecord(None, b"a\tb", [])),
        ({}, "", LineRecord(None, b"", [])),
        (KEYED, "k\tv\tw", LineRecord(b"k", b"v\tw", [])),
        (KEYED | {"key.separator": "=>"}, "k=>v", LineRecord(b"k", b"v", [])),
        (KEYED | {"key.separator": ""}, "kv", LineRecord(b"", b"kv", [])),
        (FULL | {"headers.key.separator": ""}, "a\tk\tv", LineRecord(b"k", b"v", [("", b"a")])),
        (KEYED | {"ignore.error": "true"}, "v", LineRecord(None, b"v", [])),
        (FULL, "a:1,b:\tk\tv", LineRecord(b"k", b"v", [("a", b"1"), ("b", b"")])),
        (FULL, "a:NULL,\tNULL\tNULL", LineRecord(None, None, [("a", None)])),
        (FULL, "NULL\tk\tv", LineRecord(b"k", b"v", [])),
        (FULL | {"ignore.error": "true"}, "h\tk\tv", LineRecord(b"k", b"v", [("h", None)])),
        ({}, b"\xff\xfe".decode(errors="surrogateescape"), LineRecord(None, b"\xff\xfe", [])),
    ],
)
def test_a_line_is_a_record(properties: dict[str, str], line: str, record: LineRecord) -> None:
    assert LineReader(properties).record(line, 1) == record


@pytest.mark.parametrize(
    ("properties", "line", "problem"),
    [
        (KEYED, "v", "No key separator found on line number 7: 'v'"),
        (FULL, "v", "No headers delimiter found on line number 7: 'v'"),
        (FULL, "h\tk\tv", "No header key separator found in pair 'h' on line number 7"),
        (FULL, "NULL:1\tk\tv", "Header keys should not be equal to the null marker"),
    ],
)
def test_a_line_that_is_no_record_is_named(
    properties: dict[str, str], line: str, problem: str
) -> None:
    with pytest.raises(ToolFailed, match=problem):
        LineReader(properties).record(line, 7)


@pytest.mark.parametrize(
    "properties",
    [
        {"headers.delimiter": ","},
        {"headers.key.separator": ","},
        {"null.marker": "\t"},
        {"null.marker": ":"},
        {"headers.separator": "("},
    ],
)
def test_separators_that_cannot_be_told_apart_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ToolFailed):
        LineReader(properties)


RECORD = ConsumedRecord(3, 14, 2, CREATE_TIME, 15, [("a", b"1"), ("b", None)], b"\0\0\0\x07", None)
EVERYTHING = {
    f"print.{part}": "true"
    for part in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
}


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, b"null\n"),
        ({"print.value": "false"}, b""),
        ({"print.key": "true", "print.value": "false"}, b"\0\0\0\x07\n"),
        (
            EVERYTHING
            | {
                "key.separator": "|",
                "headers.separator": ";",
                "line.separator": "!",
                "null.literal": "-",
                "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
            },
            b"CreateTime:15|Partition:3|Offset:14|Delivery:NOT_PRESENT|Epoch:2|a:1;b:-|7|-!",
        ),
    ],
)
def test_a_record_is_printed_as_its_properties_say(properties: dict[str, str], text: bytes) -> None:
    assert make_formatter("DefaultMessageFormatter", properties)(RECORD) == text


def test_what_a_record_lacks_is_said() -> None:
    bare = RECORD._replace(timestamp_type=NO_TIMESTAMP, headers=[], leader_epoch=None)
    properties = {f"print.{part}": "true" for part in ("timestamp", "headers", "epoch")}
    assert make_formatter("a.b.DefaultMessageFormatter", properties)(bare) == (
        b"NO_TIMESTAMP\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\n"
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (b"\0\1\0\1g\0\1t\0\0\0\2", None, b'"key":{"type":1,"data":{"group":"g","topic":"t",'),
        (b"\0\2\0\1g", None, b""),
        (b"\0\3\0\1g", None, b""),
        (None, b"", b""),
    ],
)
def test_committed_offsets_are_lines_of_json(
    key: bytes | None, value: bytes | None, text: bytes
) -> None:
    formatter = make_formatter("OffsetsMessageFormatter", {})
    printed = formatter(RECORD._replace(key=key, value=value))
    assert printed == b"" if not text else text in printed and printed.endswith(b"}\n")


@pytest.mark.parametrize("key", [b"\0", b"\0\1\0", b"\0\1\0\1g\0\1t\0\0"])
def test_a_damaged_record_is_named_by_its_offset(key: bytes) -> None:
    with pytest.raises(ToolFailed, match="Could not read record at offset 14 due to"):
        make_formatter("OffsetsMessageFormatter", {})(RECORD._replace(key=key))


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ToolFailed, match="no formatter com"):
        make_formatter("com.mine.Formatter", {})
    properties = {"value.deserializer": "com.mine.Deserializer"}
    with pytest.raises(ToolFailed, match="no deserializer com"):
        make_formatter("DefaultMessageFormatter", properties)
    properties = {"print.key": "true", "key.deserializer": "a.LongDeserializer"}
    with pytest.raises(ToolFailed, match="Size of data received by LongDeserializer is not 8"):
        make_formatter("DefaultMessageFormatter", properties)(RECORD)


def test_settings_are_said_to_the_library_in_its_own_words() -> None:
    strategies = "org.apache.kafka.clients.consumer.RangeAssignor,cooperative-sticky"
    assert translate(
        {
            "acks": "all",
            "buffer.memory": "2048",
            "key.serializer": "anything",
            "max.block.ms": "5",
            "send.buffer.bytes": "7",
            "partition.assignment.strategy": strategies,
            "compression.type": "zstd",
            "compression.zstd.level": "3",
            "compression.gzip.level": "9",
            "sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p w";',
        }
    ) == {
        "acks": "all",
        "queue.buffering.max.kbytes": "2",
        "socket.send.buffer.bytes": "7",
        "partition.assignment.strategy": "range,cooperative-sticky",
        "compression.type": "zstd",
        "compression.level": "3",
        "sasl.username": "u",
        "sasl.password": "p w",
    }


@pytest.mark.parametrize(
    ("settings", "is_idempotent"),
    [
        ({}, "true"),
        ({"acks": "-1"}, "true"),
        ({"acks": "1"}, "false"),
        ({"retries": "0"}, "false"),
        ({"max.in.flight.requests.per.connection": "6"}, "false"),
        ({"acks": "1", "enable.idempotence": "true"}, "true"),
    ],
)
def test_a_producer_is_idempotent_when_it_can_be(
    settings: dict[str, str], is_idempotent: str
) -> None:
    set_producer_defaults(settings)
    assert settings["enable.idempotence"] == is_idempotent


def test_a_consumer_reads_what_is_not_committed_unless_told_otherwise() -> None:
    settings: dict[str, str] = {}
    set_consumer_defaults(settings)
    assert settings["isolation.level"] == "read_uncommitted"


def test_an_argument_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nretries=2\n")
    assert collect_settings(str(file), ["acks=all", "client.id="]) == {
        "acks": "all",
        "retries": "2",
        "client.id": "",
    }
    with pytest.raises(ToolFailed):
        collect_settings(None, ["=value"])
