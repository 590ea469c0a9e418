"""Valid requests made invalid: field by field, and byte by byte.

By structure: numbers at their limits, unknown names, lists that are empty, long, or have
duplicates, nulls. By bytes: bits, runs, cuts and splices in the encoded frame, which also make
wrong lengths and counts. One `Random` decides all of it.
"""

from random import Random
from typing import Any

from broker.metadata.control.limits import MAX_RECORDS_PER_REQUEST
from broker.records.build import build_batch
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import DecodeError, UnsupportedVersion, decode_request
from common.kafka.protocol.layout import is_nullable, layout_of
from common.kafka.protocol.message import Field, Message, Struct
from common.kafka.protocol.wire import EncodeError
from tests.fuzz.valid_requests import BATCH, OTHER_BROKER, TOPIC, Recorded

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
STRINGS = [
    "",
    ".",
    "..",
    "a/b",
    "../x",
    "a\0b",
    "ü" * 90,
    "x" * 249,
    "x" * 250,
    "x" * 32_000,
    TOPIC,
]
STRINGS += ["__consumer_offsets", "__cluster_metadata", "-1", "1", "NaN", "1e400", "9" * 400, "ALL"]
TIMES_REPEATED = (2, 3, 40)
RUNS = (
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff" * 10,
    b"\x00" * 8,
)
NODE_ID = 1
MAX_FRAME_BYTES = 1_000_000
MAX_VALUES = 100_000
MAX_NAME_BITS = 15
"""A text of most versions has 32,767 bytes at most."""
BROKER_RESOURCE = 4
MANY_PARTITIONS = 1_000


def mutated(recorded: Recorded, random: Random) -> bytes:
    """Return a frame with one to four mutations; sometimes the valid one."""
    for _ in range(20):
        frame = _mutated(recorded, random)
        if frame is not None and is_harmless(frame):
            return frame
    return recorded.frame()


def _mutated(recorded: Recorded, random: Random) -> bytes | None:
    message = copied(recorded.message)
    if random.random() < 0.75:
        for _ in range(random.randint(1, 4)):
            mutate_message(message, recorded.version, random)
    try:
        frame = recorded._replace(message=message).frame(random.randint(0, 9))
    except EncodeError:
        return None
    if len(frame) > MAX_FRAME_BYTES:
        return None
    if random.random() < 0.35:
        for _ in range(random.randint(1, 3)):
            frame = mutate_bytes(frame, random)
    return frame


def is_harmless(frame: bytes) -> bool:
    """Return False for a valid command, such as to unregister a broker.

    The node would obey it, and the well-behaved client would see an error that is no bug.
    """
    try:
        header, message = decode_request(memoryview(frame))
    except (DecodeError, UnsupportedVersion):
        return True
    fields: Any = message
    match header.api_key:
        case ApiKey.UNREGISTER_BROKER | ApiKey.BROKER_REGISTRATION | ApiKey.BROKER_HEARTBEAT:
            return bool(fields.broker_id != NODE_ID)
        case ApiKey.ALTER_CONFIGS | ApiKey.INCREMENTAL_ALTER_CONFIGS:
            of_brokers = any(r.resource_type == BROKER_RESOURCE for r in fields.resources)
            return fields.validate_only or not of_brokers
        case ApiKey.ALTER_CLIENT_QUOTAS | ApiKey.UPDATE_FEATURES:
            return bool(fields.validate_only)
        case ApiKey.CREATE_TOPICS:
            return all(_is_refused_or_small(topic.num_partitions) for topic in fields.topics)
        case ApiKey.CREATE_PARTITIONS:
            return all(_is_refused_or_small(topic.count) for topic in fields.topics)
        case _:
            return True


def _is_refused_or_small(partition_count: int) -> bool:
    """Return True if so many partitions are refused, or do not let the node's memory grow much."""
    return partition_count <= MANY_PARTITIONS or partition_count > MAX_RECORDS_PER_REQUEST


# By structure.


def copied(value: Any) -> Any:
    """Copy a message deeply; its leaves are immutable."""
    if isinstance(value, list):
        return [copied(one) for one in value]
    if isinstance(value, Struct):
        # The shared default of a nested struct has a read-only subclass.
        kind = next(kind for kind in type(value).__mro__ if "__setattr__" not in kind.__dict__)
        return kind(**{name: copied(getattr(value, name)) for name in value.__fields__})
    return value


def mutate_message(message: Message, version: int, random: Random) -> None:
    """Change one field at any depth."""
    places = list(_places(message, version))
    if places:
        part, field = random.choice(places)
        setattr(part, field.name, _changed(getattr(part, field.name), field, version, random))


def _places(part: Struct, version: int) -> Any:
    layout = layout_of(type(part), version)
    for field in layout.plain + layout.tagged:
        value = getattr(part, field.name)
        yield part, field
        inner = value if isinstance(value, list) else [value]
        for one in inner[:4]:
            if isinstance(one, Struct):
                yield from _places(one, version)


def _changed(value: Any, field: Field, version: int, random: Random) -> Any:
    if is_nullable(field, version) and random.random() < 0.2:
        return None
    if field.kind == "array":
        return _changed_list(value or [], field, random)
    return _changed_one(value, str(field.kind), random)


def _changed_list(values: list[Any], field: Field, random: Random) -> list[Any]:
    times = random.choice((0, *TIMES_REPEATED))
    if times == 0 or not values:
        if isinstance(field.element, str) and random.random() < 0.7:
            return [_changed_one(None, field.element, random) for _ in range(random.randint(1, 3))]
        return []
    if sum(map(_count, values)) * times > MAX_VALUES:
        return values[: len(values) // times]
    if random.random() < 0.5:
        return [copied(value) for value in values for _ in range(times)]
    if isinstance(field.element, str):
        return [*values, _changed_one(None, field.element, random)]
    return [*values, *(copied(value) for value in values)]


def _count(value: Any) -> int:
    """Count all nested values: repeated repetitions of a list of lists would fill the memory."""
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    if isinstance(value, Struct):
        return 1 + sum(_count(getattr(value, name)) for name in value.__fields__)
    return 1


def _changed_one(value: Any, kind: str, random: Random) -> Any:
    if kind in WIDTHS:
        return _number(WIDTHS[kind], value, random)
    match kind:
        case "uint16" | "uint32":
            return random.choice((0, 1, 65_535))
        case "bool":
            return not value
        case "float64":
            return random.choice((0.0, -1.0, 1e308, float("nan"), float("inf"), 5e-324))
        case "uuid":
            return random.choice((bytes(16), b"\xff" * 16, random.randbytes(16)))
        case "string":
            return random.choice(STRINGS) if random.random() < 0.7 else _name(random)
        case "bytes":
            return random.choice((b"", b"\xff" * 5, random.randbytes(random.randint(1, 60))))
        case "records":
            return _records(random)
        case _:
            return value


def _name(random: Random) -> str:
    """Make a name of any length that fits into a frame; each magnitude is as likely."""
    length = int(2 ** (random.random() * MAX_NAME_BITS))
    return random.choice("nN\x01\u00e9") * (length - 1)


def _number(bits: int, value: Any, random: Random) -> int:
    highest = (1 << bits - 1) - 1
    near = value if isinstance(value, int) else 0
    choices = [0, 1, -1, 2, -2, highest, -highest - 1, highest - 1, near + 1, near - 1]
    choices += [OTHER_BROKER, 100, MANY_PARTITIONS, random.randint(-highest - 1, highest)]
    return max(-highest - 1, min(random.choice(choices), highest))


def _records(random: Random) -> bytes:
    """Make invalid batches, with a valid CRC or without one."""
    number = random.choice((-(2**63), 2**63 - 1, -1, 0, 1_700_000_000_000))
    with_crc = [
        BATCH + BATCH,
        build_batch([(None, None, (), number)]),
        build_batch([(b"k", b"v", (), number // 2), (b"k", b"v", (), number)]),
        build_batch([(b"k", b"v", (), 0)], producer_id=max(number, 0), producer_epoch=0),
        build_batch([(b"k", b"v", (), 0)], is_control=True),
        build_batch([(b"k", b"v", (), 0)], is_transactional=True),
        build_batch([(b"k", b"v", (), 1)] * 50, base_offset=7, leader_epoch=2**31 - 1),
    ]
    batch = random.choice(with_crc)
    return batch if random.random() < 0.6 else mutate_bytes(batch, random)


# By bytes.


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Change bytes anywhere after the API key and version."""
    first = min(4, len(data))
    position = random.randint(first, len(data))
    match random.randrange(7):
        case 0:
            return data[:position]
        case 1:
            return data + random.randbytes(random.randint(1, 9))
        case 2:
            run = random.choice(RUNS)
            return data[:position] + run + data[position + len(run) :]
        case 3:
            return data[:position] + random.choice(RUNS) + data[position:]
        case 4:
            return data[:position] + data[position + random.randint(1, 8) :]
        case 5:
            start = random.randint(first, len(data))
            return data[:position] + data[start : start + 64] + data[position:]
        case _:
            changed = bytearray(data)
            if position < len(data):
                changed[position] ^= 1 << random.randrange(8)
            return bytes(changed)
