"""The parts that all services share: assignment, outbox, stores, traces, settings."""

import asyncio
import json
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

from common.kafka.assignment import Directory, advertising_range, first_started, single_owner
from common.process.settings import read_settings
from common.process.telemetry import child_headers, new_traceparent, parse_trace_id
from common.processing.changelog import Store
from common.processing.outbox import Outbox
from common.processing.settings import Settings
from services.aggregator import store as aggregator
from services.aggregator.settings import AggregatorSettings
from services.email import app as email
from services.fraud import app as fraud
from services.inventory import store as inventory
from services.payments import app as payments
from tests.lib.pipeline_bus import Bus, record

CHANGELOGS = (store.CHANGELOG for store in (aggregator, email, fraud, inventory, payments))
TRACE = new_traceparent("1" * 32, "2" * 16)


class FakeCluster:
    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(6))


def members(**user_data: str) -> dict[str, ConsumerProtocolMemberMetadata]:
    return {
        name: ConsumerProtocolMemberMetadata(0, ["orders", "order-decisions"], data.encode())
        for name, data in user_data.items()
    }


def partitions(assignment: Any) -> dict[str, list[int]]:
    return dict(assignment.assignment)


def test_every_member_learns_who_holds_what() -> None:
    directory = Directory()
    assignor = advertising_range("http://a", directory)
    assigned = assignor.assign(FakeCluster(), members(a="http://a", b="http://b"))
    assert assigned["a"].user_data == assigned["b"].user_data
    assignor.on_assignment(assigned["a"])
    for topic in ("orders", "order-decisions"):
        assert [directory.owner(topic, number) for number in range(6)] == [
            *["http://a"] * 3,
            *["http://b"] * 3,
        ]
    assert directory.owner("other", 0) is None
    assert directory.owners("orders") == ["http://a", "http://b"]


def test_same_partition_of_each_input_goes_to_the_same_member() -> None:
    assignor = advertising_range("http://a", Directory())
    assigned = assignor.assign(FakeCluster(), members(a="a", b="b", c="c", d="d"))
    for assignment in assigned.values():
        held = partitions(assignment)
        assert held["orders"] == held["order-decisions"]


def test_member_tells_its_url_when_it_joins() -> None:
    metadata = advertising_range("http://a", Directory()).metadata({"orders"})
    assert metadata.user_data == b"http://a"


def test_single_owner_is_the_member_started_first() -> None:
    group = members(z="100", a="200", b="300")
    assert first_started(group) == "z"
    assigned = single_owner(200).assign(FakeCluster(), group)
    assert partitions(assigned["z"])["orders"] == list(range(6))
    assert partitions(assigned["a"]) == partitions(assigned["b"]) == {}


def test_all_that_is_put_out_is_taken_once() -> None:
    outbox = Outbox()
    outbox.send("events", "k", b"", [])
    outbox.change("rows", 0, b"a", b"1")
    assert sorted(one.topic for one in outbox.take()) == ["events", "rows"]
    assert not outbox
    assert outbox.take() == []


def test_only_the_last_state_of_a_row_is_written() -> None:
    outbox = Outbox()
    for value in (b"1", b"2", None):
        outbox.change("rows", 0, b"a", value)
    outbox.change("rows", 1, b"a", b"1")
    assert [(one.partition, one.value) for one in outbox.take()] == [(0, None), (1, b"1")]


def test_what_one_record_put_out_is_taken_in_behind_what_is_there() -> None:
    outbox, of_one = Outbox(), Outbox()
    outbox.change("rows", 0, b"a", b"1")
    of_one.change("rows", 0, b"a", b"2")
    of_one.send("events", "k", b"", [])
    outbox.take_in(of_one)
    assert [(one.topic, one.value) for one in outbox.take()] == [("rows", b"2"), ("events", b"")]


def test_dead_letter_is_the_record_with_its_reason() -> None:
    outbox = Outbox()
    poison = record("orders", 3, 17, b"k", b"junk", [("traceparent", b"t")])
    outbox.dead_letter(poison, "fraud", "MalformedEventError: what")
    (letter,) = outbox.outgoing
    assert (letter.topic, letter.key, letter.value) == ("orders.dead-letter", b"k", b"junk")
    assert dict(letter.headers) == {
        "traceparent": b"t",
        "dead-letter-reason": b"MalformedEventError: what",
        "dead-letter-application": b"fraud",
        "dead-letter-topic": b"orders",
        "dead-letter-partition": b"3",
        "dead-letter-offset": b"17",
    }
    assert not outbox.changes


def test_store_reads_back_what_was_put() -> None:
    async def check() -> None:
        bus = Bus()
        store: Store[dict[str, int]] = Store("rows", dict, dict, bus.read_to_end)
        await store.restore([0, 1])
        outbox = Outbox()
        store.put(0, "a", {"n": 1}, outbox)
        store.put(0, "b", {"n": 2}, outbox)
        store.put(1, "a", {"n": 3}, outbox)
        store.delete(0, "b", outbox)
        for change in outbox.changes:
            bus.append(change.topic, change.key, change.value, [], change.partition)
        again: Store[dict[str, int]] = Store("rows", dict, dict, bus.read_to_end)
        await again.restore([0])
        assert again.rows(0) == {"a": {"n": 1}}
        assert json.loads(bus.all("rows")[0].value) == {"n": 1}

    asyncio.run(check())


def test_trace_goes_on_with_a_span_of_its_own_and_always_the_same() -> None:
    headers = [("other", b"x"), ("traceparent", TRACE.encode())]
    ((name, value),) = child_headers(headers, "fraud")
    assert name == "traceparent"
    assert parse_trace_id(value.decode()) == "1" * 32
    assert value.decode() != TRACE
    assert child_headers(headers, "fraud") == [(name, value)]
    assert child_headers(headers, "inventory") != [(name, value)]
    assert child_headers([], "fraud") == []
    assert child_headers([("traceparent", b"short")], "fraud") == []


def test_settings_come_from_options_before_the_environment() -> None:
    environment = {"MILLSTREAM_HTTP_PORT": "7", "MILLSTREAM_BOOTSTRAP_SERVERS": "env:1"}
    found = read_settings(
        Settings, "test", "A test.", ["--bootstrap-servers", "option:1"], environment
    )
    assert (found.bootstrap_servers, found.http_port) == ("option:1", 7)
    assert (
        read_settings(AggregatorSettings, "test", "A test.", [], {}).validation_timeout_ms == 60_000
    )


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["--no-such", "1"], {}), (["--http-port", "x"], {}), ([], {"MILLSTREAM_HTTP_PORT": "x"})],
)
def test_wrong_settings_end_the_program(
    arguments: list[str], environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read_settings(Settings, "test", "A test.", arguments, environment)
    assert "error" in capsys.readouterr().err
