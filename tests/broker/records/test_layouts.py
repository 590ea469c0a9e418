"""What is said of a payload built as one seen before is what the walk says of it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.records.compression import Codec, compress
from broker.records.errors import CorruptBatch
from broker.records.header import read_header
from broker.records.layouts import (
    MOST_RECORDS,
    REMEMBERED_PAYLOADS,
    Layouts,
    layout_of,
)
from broker.records.record import Headers, encode_record, encode_varint
from broker.records.runs import find_run
from broker.records.validation import BatchValidator, TimestampLimits
from broker.records.walk import Walked, walk_records
from common.kafka.errors import InvalidRecordsError, KafkaError
from tests.lib.bad_batches import with_payload
from tests.lib.logs import NOW_MS

LIMITS = TimestampLimits(uses_log_append_time=False, before_max_ms=2**63 - 1, after_max_ms=1000)

MAYBE_BYTES = st.none() | st.binary(max_size=3) | st.sampled_from([63, 64, 200]).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=3), MAYBE_BYTES), max_size=2)
COUNTS = st.sampled_from([1, 2, 3, 16, 64, 65, 70, 150])
DELTAS = st.integers(0, 63) | st.sampled_from([-1, -64, 64, 8191, 8192, 2**40, -(2**62)])


@st.composite
def templates(draw: st.DrawFn) -> tuple[bytes, int]:
    """A payload of equal records."""
    key, value, headers = draw(MAYBE_BYTES), draw(MAYBE_BYTES), draw(HEADERS)
    count = draw(COUNTS)
    return payload_of([0] * count, key, value, headers), count


def payload_of(
    times: list[int], key: bytes | None, value: bytes | None, headers: Headers = ()
) -> bytes:
    return b"".join(
        encode_record(number, time, key, value, headers) for number, time in enumerate(times)
    )


def knowing(payload: bytes, record_count: int) -> Layouts:
    """Layouts that have seen a payload often enough to know it."""
    layouts = Layouts()
    layouts.walk(payload, record_count)
    assert layouts.walk(payload, record_count) == walk_records(payload, record_count)
    return layouts


def walked(payload: bytes, record_count: int) -> Walked | None:
    try:
        return walk_records(payload, record_count)
    except CorruptBatch:
        return None


def damaged(payload: bytes, data: st.DataObject) -> bytes:
    """Set bytes, or let what lies between two places slip by one; the size stays."""
    changed = bytearray(payload)
    places = st.integers(0, len(payload) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(places)
        if data.draw(st.booleans()):
            changed[place] ^= data.draw(st.sampled_from([1, 2, 3, 4, 0x40, 0x80, 0xFF]))
        else:
            del changed[place]
            changed.insert(data.draw(places), data.draw(st.integers(0, 255)))
    return bytes(changed)


@settings(deadline=None)
@given(templates(), st.data())
def test_what_a_known_layout_says_of_damage_is_what_the_walk_says(
    template: tuple[bytes, int], data: st.DataObject
) -> None:
    payload, count = template
    layouts = knowing(payload, count)
    changed = damaged(payload, data)
    for _ in range(3):  # Known, forgotten if it was not the same, learnt anew.
        said = layouts.walk(changed, count)
        assert said is None or said == walked(changed, count)
    again = Layouts()
    assert again.walk(changed, count) is None, "what is seen once is not known"


@settings(deadline=None)
@given(st.lists(DELTAS, min_size=1, max_size=70))
def test_longer_times_in_records_of_the_same_size_are_left_to_the_walk(times: list[int]) -> None:
    count = len(times)
    layouts = knowing(payload_of([0] * count, b"k", bytes(70)), count)
    changed = b"".join(
        encode_record(number, time, b"k", bytes(71 - len(encode_varint(time))), ())
        for number, time in enumerate(times)
    )
    expected = walk_records(changed, count)
    assert layouts.walk(changed, count) == (expected if set(times) <= set(range(64)) else None)


@settings(deadline=None)
@given(st.lists(st.integers(0, 63), min_size=1, max_size=150), st.binary(max_size=2))
def test_records_with_other_contents_and_other_times_of_one_byte_are_known(
    times: list[int], key: bytes
) -> None:
    count = len(times)
    layouts = knowing(payload_of([0] * count, bytes(len(key)), bytes(70)), count)
    changed = payload_of(times, key, b"\xff" * 70)
    assert layouts.walk(changed, count) == Walked(min(times), max(times), True)


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), min_size=30, max_size=30))
def test_a_time_that_is_no_single_byte_from_0_to_63_is_left_to_the_walk(bytes_: list[int]) -> None:
    count = len(bytes_)
    payload = bytearray(payload_of([0] * count, None, b"value"))
    layouts = knowing(bytes(payload), count)
    step = len(payload) // count
    payload[2::step] = bytes(bytes_)
    said = layouts.walk(bytes(payload), count)
    if all(byte < 0x80 and not byte & 1 for byte in bytes_):
        assert said == walked(bytes(payload), count)
    else:
        assert said is None


def test_every_byte_of_structure_counts_in_every_record() -> None:
    """In records with key, value and headers, before and after the offset gets a second byte."""
    headers: Headers = [("h", b"x"), ("n", None)]
    count = 70
    payload = payload_of([0] * count, b"k", b"v", headers)
    layouts = knowing(payload, count)
    changes = 0
    for place in range(len(payload)):
        for change in (1, 2, 0x80):
            changed = bytearray(payload)
            changed[place] ^= change
            said = layouts.walk(bytes(changed), count)
            assert said is None or said == walked(bytes(changed), count), (place, change)
            if said is None:
                changes += 1
                layouts = knowing(payload, count)
    # Length, offset, key length, value length, header count, four lengths in headers; and 64 and
    # more have two bytes. A time is refused when it is odd or has a second byte.
    assert changes == 3 * (9 * count + 6) + 2 * count


def answer(validator: BatchValidator, batch: bytes) -> object:
    try:
        return bytes(validator.validate_client_batch(read_header(batch), batch, LIMITS, NOW_MS + 5))
    except InvalidRecordsError as refusal:
        return refusal.code, str(refusal), refusal.records
    except KafkaError as refusal:
        return refusal.code, str(refusal)


@settings(deadline=None)
@given(templates(), st.sampled_from([Codec.NONE, Codec.LZ4]), st.data())
def test_a_validator_that_knows_a_batch_answers_as_one_that_knows_none(
    template: tuple[bytes, int], codec: Codec, data: st.DataObject
) -> None:
    payload, count = template
    validator = BatchValidator()
    good = with_payload(compress(codec, payload), count, codec)
    for _ in range(3):
        assert answer(validator, good) == good
    times = st.lists(DELTAS, min_size=count, max_size=count)
    bad = damaged(payload, data)
    late = payload_of(data.draw(times), None, None)
    for changed in (bad, late, payload):
        batch = with_payload(compress(codec, changed), count, codec)
        assert answer(validator, batch) == answer(BatchValidator(), batch)


def test_no_more_payloads_are_remembered_than_the_limit() -> None:
    layouts = Layouts()
    known = payload_of([0] * 5, None, b"known")
    layouts.walk(known, 5)
    assert layouts.walk(known, 5) is not None
    for size in range(REMEMBERED_PAYLOADS - 1):
        layouts.walk(payload_of([0] * 6, None, bytes(size)), 6)
    assert layouts.walk(known, 5) is not None
    layouts.walk(payload_of([0] * 7, None, b""), 7)
    assert layouts.walk(known, 5) is None, "the oldest has gone"


def test_only_a_payload_of_few_long_runs_has_a_layout() -> None:
    equal = payload_of([0] * 70, None, b"value")
    assert layout_of(equal, 70) is not None
    assert layout_of(payload_of([0] * 65, None, b"value"), 65) is not None, "the last is longer"
    last = encode_record(70, 0, None, b"another", ())
    assert layout_of(equal + last, 71) is not None, "the last may be alone"
    assert layout_of(equal + last + encode_record(71, 0, None, b"value", ()), 72) is None
    assert layout_of(equal, 69) is None
    assert layout_of(equal, 71) is None
    assert layout_of(equal + b"\x00", 70) is None
    assert layout_of(payload_of([64] * 5, None, b"value"), 5) is None, "times of two bytes"
    unordered = b"".join(encode_record(5, 0, None, b"value", ()) for _ in range(5))
    assert layout_of(unordered, 5) is None
    many = MOST_RECORDS + 1
    layouts = Layouts()
    for _ in range(3):
        assert layouts.walk(payload_of([0] * many, None, b""), many) is None


def test_a_run_of_one_record_is_found_only_if_it_is_wanted() -> None:
    record = encode_record(0, 0, None, b"value", ())
    assert find_run(record, 0, 0, 1) is None
    run = find_run(record, 0, 0, 1, shortest=1)
    assert run is not None
    assert (run.record_count, run.end) == (1, len(record))
    for length in range(len(record)):
        assert find_run(record[:length], 0, 0, 1, shortest=1) is None
