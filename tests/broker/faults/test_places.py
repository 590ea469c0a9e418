"""Where errors go: every place of every API in every version, from the tables of the messages."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.faults.asked import asked_by
from broker.faults.calls import errors_of
from broker.faults.places import Kind, Place, fields_of, places
from broker.faults.refusals import Error, refuse
from broker.faults.rule import read_rule
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import (
    RequestHeader,
    decode_response,
    encode_response,
    request_class,
    response_class,
)
from common.kafka.protocol.message import Message, Struct
from tests.lib.protocol_messages import sample

CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
ORDERS = bytes(range(16))


def name_of(topic_id: bytes) -> str | None:
    return "orders" if topic_id == ORDERS else None


def every_place() -> Iterator[tuple[ApiKey, int, Place]]:
    for api_key, known in API_VERSION_RANGES.items():
        for version in range(known.advertised_min, known.max + 1):
            for place in places(api_key, version):
                yield api_key, version, place


def error_fields(struct: type[Struct], version: int, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Find the error fields of a response without the code under test."""
    for field in fields_of(struct, version):
        if field.name.endswith("error_code"):
            yield depth, field.name
        if field.kind == "array" and not isinstance(field.element, str):
            yield from error_fields(field.element, version, depth + 1)


def codes(struct: Any, place: Place, depth: int = 0) -> list[int]:
    if depth == len(place.levels):
        return [getattr(struct, place.field)]
    entries = getattr(struct, place.levels[depth].name)
    return [code for entry in entries for code in codes(entry, place, depth + 1)]


def through_the_wire(api_key: int, version: int, answer: Message) -> Message:
    header = RequestHeader(api_key, version, 7, None)
    frame = b"".join(bytes(part) for part in encode_response(header, answer))  # type: ignore[arg-type]
    correlation_id, decoded = decode_response(api_key, version, frame[4:])
    assert correlation_id == 7
    return decoded


def test_every_version_of_every_api_has_a_place_and_no_error_field_is_forgotten() -> None:
    for api_key, known in API_VERSION_RANGES.items():
        for version in range(known.advertised_min, known.max + 1):
            found = {len(place.levels) for place in places(api_key, version)}
            fields = {depth for depth, _ in error_fields(response_class(api_key), version)}
            assert found == fields != set(), (api_key.name, version)


def test_an_error_lands_in_each_place_of_each_version_and_the_answer_decodes() -> None:
    count = 0
    for api_key, version, place in every_place():
        request = sample(request_class(api_key), version)
        refusal = refuse(request, Error(CODE, place, {}, version), name_of)
        worked = sample(response_class(api_key), version, array_length=1)
        answer = refusal.complete(worked) if refusal.needs_work else refusal.alone()
        decoded = through_the_wire(api_key, version, answer)
        found = codes(decoded, place)
        assert found, (api_key.name, version, place)
        assert set(found) == {int(CODE)}, (api_key.name, version, place)
        assert CODE.name in errors_of(decoded, version)
        count += 1
    assert count == 400


TWO_TOPICS = [
    (api_key, version, place)
    for api_key, version, place in every_place()
    if place.is_listed and place.kind is Kind.PARTITION
]


def of_two_topics(struct: type[Struct], version: int, place: Place) -> Any:
    """A request about partitions 0 and 1 of `orders` and of `other`."""
    request: Any = sample(struct, version, array_length=1)
    parents = [request]
    for level in place.levels:
        (way,) = level.asked
        for name in way[:-1]:
            parents = [each for parent in parents for each in getattr(parent, name)]
        for parent in parents:
            (entry,) = getattr(parent, way[-1])
            setattr(parent, way[-1], _doubled(entry, level.kind))
        parents = [each for parent in parents for each in getattr(parent, way[-1])]
    return request


def _doubled(entry: Any, kind: Kind) -> list[Any]:
    if kind is Kind.PARTITION and isinstance(entry, int):
        return [0, 1]
    if kind not in (Kind.PARTITION, Kind.TOPIC):
        return [entry]
    return [_renamed(entry, kind, number) for number in range(2)]


def _renamed(entry: Struct, kind: Kind, number: int) -> Struct:
    values = {name: getattr(entry, name) for name in entry.__fields__}
    values = {
        name: [_copied(each) for each in value] if isinstance(value, list) else value
        for name, value in values.items()
    }
    for name in values:
        if kind is Kind.PARTITION and name in ("partition", "partition_index", "index"):
            values[name] = number
        if kind is Kind.TOPIC and name in ("name", "topic", "topic_name") and values[name]:
            values[name] = ("orders", "other")[number]
        if kind is Kind.TOPIC and name == "topic_id" and values[name] != bytes(16):
            values[name] = (ORDERS, bytes(15) + b"\1")[number]
    return type(entry)(**values)


def _copied(value: Any) -> Any:
    if not isinstance(value, Struct):
        return value
    return type(value)(**{name: getattr(value, name) for name in value.__fields__})


@pytest.mark.parametrize(
    "api_key", sorted({api_key for api_key, _, _ in TWO_TOPICS}), ids=lambda key: key.name
)
def test_one_partition_is_refused_and_the_others_are_left_to_the_broker(api_key: ApiKey) -> None:
    for key, version, place in TWO_TOPICS:
        if key is not api_key:
            continue
        request = of_two_topics(request_class(api_key), version, place)
        wanted = {Kind.TOPIC: "orders", Kind.PARTITION: 1}
        before = asked_by(request, version, name_of).topics
        assert before["orders"] == [0, 1], (version, request)
        refusal = refuse(request, Error(CODE, place, wanted, version), name_of)
        assert refusal.needs_work
        after = asked_by(request, version, name_of).topics
        assert after["orders"] == [0]
        assert {name: each for name, each in after.items() if name != "orders"} == {
            name: each for name, each in before.items() if name != "orders"
        }
        answer = refusal.complete(response_class(api_key)())
        assert codes(through_the_wire(api_key, version, answer), place) == [int(CODE)]


def test_without_a_topic_an_error_goes_where_kafka_puts_it() -> None:
    def kind(api: str, error: str, version: int, **more: object) -> Kind | None:
        rule = read_rule(
            {"kind": "error", "api": api, "error": error, "when": {"times": 1}, **more}
        )
        assert rule.api is not None
        place = rule.place(rule.api, version)
        return None if place is None else place.kind

    assert kind("Produce", "NOT_LEADER_OR_FOLLOWER", 13) is Kind.PARTITION
    assert kind("Fetch", "NOT_LEADER_OR_FOLLOWER", 13) is Kind.PARTITION
    assert kind("Fetch", "FETCH_SESSION_ID_NOT_FOUND", 13) is Kind.REQUEST
    assert kind("Fetch", "UNKNOWN_SERVER_ERROR", 4) is Kind.PARTITION
    assert kind("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", 13) is Kind.TOPIC
    assert kind("Metadata", "LEADER_NOT_AVAILABLE", 9, topic="a", partition=1) is Kind.PARTITION
    assert kind("Metadata", "REBOOTSTRAP_REQUIRED", 13) is Kind.REQUEST
    assert kind("OffsetFetch", "NOT_COORDINATOR", 1) is Kind.PARTITION
    assert kind("OffsetFetch", "NOT_COORDINATOR", 7) is Kind.REQUEST
    assert kind("OffsetFetch", "NOT_COORDINATOR", 8) is Kind.GROUP
    assert kind("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", 3) is Kind.REQUEST
    assert kind("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", 4) is Kind.ENTRY
    assert kind("LeaveGroup", "UNKNOWN_MEMBER_ID", 5) is Kind.REQUEST
    assert kind("LeaveGroup", "UNKNOWN_MEMBER_ID", 5, at="member") is Kind.MEMBER
    assert kind("LeaveGroup", "UNKNOWN_MEMBER_ID", 2, at="member") is None
    assert kind("AddPartitionsToTxn", "INVALID_TXN_STATE", 3) is Kind.PARTITION
    assert kind("DescribeLogDirs", "KAFKA_STORAGE_ERROR", 1) is Kind.ENTRY
