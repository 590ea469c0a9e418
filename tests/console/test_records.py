"""The pure parts: what bytes become, what is hidden, what a search finds, how partitions merge."""

import json
import random
from typing import NamedTuple

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c

from console.records.batches import AbortedTransaction, RawRecord, ReadRange, records_of
from console.records.decoding import Schema, part_of, row_of
from console.records.filters import FilterError, filter_of
from console.records.masking import HIDDEN, MaskError, MaskRule, mask_of
from console.records.merging import Merge, Window
from console.records.rows import NULL, PREVIEW_CHARACTERS, Part, Row
from rest_proxy.formats.avro import AvroCodec
from rest_proxy.formats.wire import framed

EXACT = 9_007_199_254_740_993
"""2^53 + 1: a browser's numbers do not have it."""


def batch(base_offset: int, *values: bytes, producer_id: int = -1, codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=producer_id >= 0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1 << 30,
    )
    for index, value in enumerate(values):
        builder.append(index, 1_000 + base_offset + index, None, value, [])
    data = bytearray(builder.build())
    data[0:8] = base_offset.to_bytes(8, "big")
    return bytes(data)


def checksummed(data: bytearray) -> bytes:
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def marker(base_offset: int, producer_id: int, kind: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=-1,
        batch_size=1 << 10,
    )
    builder.append(0, 5, b"\0\0" + kind.to_bytes(2, "big"), b"\0" * 6, [])
    data = bytearray(builder.build())
    data[0:8] = base_offset.to_bytes(8, "big")
    data[22] |= 0x20
    return checksummed(data)


def test_a_record_tells_what_became_of_its_transaction() -> None:
    data = (
        batch(0, b"plain")
        + batch(1, b"gone", producer_id=7)
        + batch(2, b"kept", producer_id=8)
        + marker(3, 7, 0)
        + marker(4, 8, 1)
        + batch(5, b"later", producer_id=7)
        + batch(6, b"open", producer_id=9)
    )
    wanted = ReadRange(0, 0, 100, 6, [AbortedTransaction(7, 1)])
    found = records_of(data, wanted)
    assert [each.state for each in found.records] == [
        "", "aborted", "committed", "marker", "marker", "committed", "open",
    ]  # fmt: skip
    assert found.next_offset == 7
    assert row_of(found.records[3], {}).value.text == "ABORT of producer 7"


def test_a_batch_that_cannot_be_decoded_is_a_record_with_its_bytes_and_the_reason() -> None:
    broken = bytearray(batch(4, b"some value"))
    broken[21] = 0
    broken[22] = 1  # It says that it is compressed with gzip.
    data = batch(3, b"before") + checksummed(broken) + batch(5, b"behind")
    found = records_of(data, ReadRange(0, 0, 100, 100))
    assert [each.offset for each in found.records] == [3, 4, 5]
    row = row_of(found.records[1], {})
    assert "cannot be decoded" in row.value.note
    assert row.value.text.startswith("00 00 00 00 00 00 00 04")


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_unpacks_to_too_much_is_a_record_with_its_bytes_and_the_reason(
    codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.records.batches.MAX_UNPACKED_BYTES", 1 << 20)
    bomb = batch(1, bytes(2 << 20), codec=codec)
    found = records_of(batch(0, b"before") + bomb + batch(2, b"behind"), ReadRange(0, 0, 9, 9))
    assert [each.offset for each in found.records] == [0, 1, 2]
    assert found.next_offset == 3
    row = row_of(found.records[1], {})
    assert "unpack to more than 1,048,576" in row.value.note
    assert row.value.text == bomb.hex(" ")
    fits = records_of(batch(0, bytes(1 << 19), codec=codec), ReadRange(0, 0, 9, 9))
    assert [each.value for each in fits.records] == [bytes(1 << 19)]


def test_so_many_records_are_decoded_at_once_and_reading_goes_on_behind_them() -> None:
    data = batch(0, *(b"%d" % number for number in range(10)), codec=1)
    start, seen = 0, []
    while start < 10:
        found = records_of(data, ReadRange(0, start, 10, 10, max_records=3))
        seen.append([each.offset for each in found.records])
        start = found.next_offset
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    by_bytes = records_of(batch(0, b"x" * 9, b"y", b"z"), ReadRange(0, 0, 9, 9, max_bytes=5))
    assert [each.value for each in by_bytes.records] == [b"x" * 9]
    assert by_bytes.next_offset == 1


def test_a_cut_batch_at_the_end_is_left_to_the_next_fetch() -> None:
    whole = batch(0, b"a", b"b")
    found = records_of(whole + batch(2, b"c")[:40], ReadRange(0, 1, 9, 9))
    assert [each.value for each in found.records] == [b"b"]
    assert found.next_offset == 2


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", ""),
        (b"", "text", ""),
        (b"plain text", "text", "plain text"),
        (f'{{"id":{EXACT}, "x": 1.10}}'.encode(), "json", f'{{"id":{EXACT}, "x": 1.10}}'),
        (b"\xff\xfe", "hex", "ff fe"),
        (b"\0\0\0\0\x07body", "hex", "00 00 00 00 07 62 6f 64 79"),
        (b"tab\tand\nline", "text", "tab\tand\nline"),
        (b"bell\x07", "hex", "62 65 6c 6c 07"),
    ],
)
def test_bytes_are_shown_as_what_they_are(data: bytes | None, kind: str, text: str) -> None:
    part = part_of(data, {})
    assert (part.kind, part.text) == (kind, text)


def test_eight_bytes_are_told_as_a_number_too() -> None:
    assert part_of(EXACT.to_bytes(8, "big"), {}).note == f"as a whole number: {EXACT}"


def test_a_value_is_read_by_its_schema_and_otherwise_says_why_not() -> None:
    fields = [{"name": "id", "type": "long"}]
    codec = AvroCodec(json.dumps({"type": "record", "name": "Order", "fields": fields}))
    schemas = {7: Schema("avro", codec), 8: Schema("", None, "no such schema")}
    read = part_of(framed(7, codec.encode({"id": EXACT})), schemas)
    assert (read.kind, read.text, read.note) == ("avro", f'{{"id": {EXACT}}}', "schema 7")
    torn = part_of(framed(7, b""), schemas)
    assert torn.kind == "hex"
    assert "not of its schema 7" in torn.note
    assert part_of(framed(8, b"x"), schemas).note == "schema 8: no such schema"


def test_a_large_value_is_not_lost_but_left_for_later() -> None:
    part = part_of(b"x" * 1_000_000, {})
    assert (part.kind, part.size_bytes, part.is_cut) == ("large", 1_000_000, True)
    assert len(row(value="y" * 9_999).cut().value.text) == PREVIEW_CHARACTERS


def row(key: str = "", value: str = "", header: str = "", kind: str = "text") -> Row:
    headers = (("h", Part(header, "text")),) if header else ()
    return Row(0, 0, 0, Part(key, "text"), Part(value, kind), headers)


@pytest.mark.parametrize(
    ("kind", "text", "places", "found"),
    [
        ("contains", "BOB", "", [row(key="bob"), row(value="a Bob b"), row(header="bob")]),
        ("contains", "bob", "key", [row(key="bob")]),
        ("contains", "h: bob", "headers", [row(header="bob")]),
        ("regex", "^b.b$", "", [row(key="bob")]),
        ("path", 'name == "bob"', "", [row(value='{"name": "bob"}', kind="json")]),
        ("path", "name == bob", "", [row(value='{"name": {"string": "bob"}}', kind="avro")]),
        ("path", "$.lines[0].n >= 2.5", "", [row(value='{"lines": [{"n": 2.50}]}', kind="json")]),
        ("path", "lines[*].n ~ x", "", [row(value='{"lines": [{"n": "aXa"}]}', kind="json")]),
        ("path", f"id > {EXACT - 1}", "", [row(value=f'{{"id": {EXACT}}}', kind="json")]),
    ],
)  # fmt: skip
def test_a_search_finds(kind: str, text: str, places: str, found: list[Row]) -> None:
    wanted = filter_of(kind, text, places)
    assert wanted is not None
    assert all(map(wanted.matches, found))
    others = [row(key="x"), row(value='{"id": 1, "name": 2}', kind="json"), row(value='"bob')]
    assert not any(map(wanted.matches, others[:2]))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("regex", "("),
        ("regex", r"(a)\1"),
        ("path", "no operator"),
        ("path", "a..b == 1"),
        ("javascript", "1"),
        ("contains", "x" * 1_001),
        ("regex", "(((a{1000}){1000}){1000})"),
    ],
)
def test_a_search_that_cannot_be_is_refused(kind: str, text: str) -> None:
    with pytest.raises(FilterError):
        filter_of(kind, text)


def test_a_comparison_of_other_types_is_false_and_no_error() -> None:
    wanted = filter_of("path", "a > 1")
    assert wanted is not None
    for value in ('{"a": "x"}', '{"a": null}', '{"a": [1]}', '{"a": true}', "[1]", "7", "{", "{}"):
        assert not wanted.matches(row(value=value, kind="json"))


def masked(rule: str, data: Row, topic: str = "customers-eu") -> Row:
    mask = mask_of([MaskRule.of(rule)], topic)
    return data if mask is None else mask.applied_to(data)


def test_rules_hide_and_leave_the_rest() -> None:
    data = row(key="k", value=f'{{"email": "a@b", "id": {EXACT}}}', header="secret", kind="json")
    assert json.loads(masked("customers*:value.email", data).value.text) == {
        "email": HIDDEN,
        "id": EXACT,
    }
    assert masked("customers*:key", data).key.text == HIDDEN
    assert masked("*:header.H", data).headers[0][1].text == HIDDEN
    assert masked("*:headers", data).headers[0][1].text == HIDDEN
    assert masked("orders:value", data) == data
    assert masked("*:value", data).value.text == HIDDEN


@pytest.mark.parametrize(
    "value",
    [
        Part("not json", "text"),
        Part("00 01", "hex", 2, "not of its schema"),
        Part("", "large", 9, is_cut=True),
        Part('{"email": "a@b"', "json", is_cut=True),
    ],
)
def test_what_cannot_be_read_is_hidden_whole(value: Part) -> None:
    data = Row(0, 0, 0, NULL, value)
    assert masked("*:value.email", data).value.text == HIDDEN


def test_a_field_is_hidden_in_lists_unions_and_twice_named() -> None:
    for value in (
        '{"who": {"Person": {"email": "a@b"}}}',
        '{"who": [{"email": "a@b"}]}',
        '{"who": {"email": "a@b", "email": "a@b"}}',
        '{"who": {"email": {"string": "a@b"}}}',
    ):
        assert "a@b" not in masked("*:value.who.email", row(value=value, kind="json")).value.text


@pytest.mark.parametrize("rule", ["", "orders", "orders:", ":key", "o:header", "o:value..a", "o:x"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(MaskError):
        MaskRule.of(rule)


class Item(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int


def merged(log: dict[int, list[Item]], count: int, width: int, *, newest_first: bool) -> list[Item]:
    """Give everything out in pages of `count`, each by a merge of its own."""
    ranges = {
        number: Window(0, (items[-1].offset + 1) if items else 0) for number, items in log.items()
    }
    found: list[Item] = []
    while True:
        merge: Merge[Item] = Merge(ranges, width, newest_first=newest_first)
        page: list[Item] = []
        while True:
            page += merge.take(count - len(page))
            wanted = merge.wanted()
            if len(page) == count or not wanted:
                break
            for number, window in wanted.items():
                inside = [each for each in log[number] if window.start <= each.offset < window.end]
                merge.add(number, window, inside)
        found += page
        if merge.is_done:
            return found
        cursors = merge.cursors()
        ranges = {
            number: Window(window.start, cursors[number])
            if newest_first
            else Window(cursors[number], window.end)
            for number, window in ranges.items()
        }


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_pages_give_every_row_once_in_the_order_of_time(seed: int, newest_first: bool) -> None:
    source = random.Random(seed)
    log: dict[int, list[Item]] = {}
    for number in range(source.randrange(1, 5)):
        offsets = sorted(source.sample(range(60), source.randrange(0, 30)))
        times = sorted(source.sample(range(10_000), len(offsets)))
        log[number] = [Item(number, *each) for each in zip(offsets, times, strict=True)]
    everything = sorted(
        (each for items in log.values() for each in items),
        key=lambda each: (each.timestamp_ms, each.partition),
        reverse=newest_first,
    )
    count, width = source.randrange(1, 20), source.randrange(1, 10)
    assert merged(log, count, width, newest_first=newest_first) == everything


def test_a_hostile_record_never_ends_the_decoding() -> None:
    source = random.Random(7)
    for _ in range(300):
        data = bytearray(batch(0, b"value", b"other"))
        for _ in range(source.randrange(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        if source.random() < 0.7:
            checksummed(data)
        for record in records_of(bytes(data), ReadRange(0, 0, 1 << 40, 1 << 40)).records:
            assert isinstance(row_of(record, {}), Row)


def test_a_record_without_readable_batch_has_no_schema_to_be_asked_for() -> None:
    record = RawRecord(0, 0, -1, None, b"\0\0\0\0\x01x", why_unreadable="its batch")
    assert row_of(record, {1: Schema("", None, "away")}).value.note == "its batch"
