"""Members whose consumers could not leave their group, and the worker that leaves for them."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from connect.worker.tasks import departures
from connect.worker.tasks.departures import Departures, Member, SinkMembership
from millstream.testing import LocalBroker
from tests.lib.connect_worker import eventually


class Fake:
    """A consumer whose coordinator answers or not."""

    def __init__(self, *, is_heard: bool) -> None:
        self.member_id: str | None = None
        self.closed = 0
        self._is_heard = is_heard

    def memberid(self) -> str | None:
        return self.member_id

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        if not self._is_heard:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return places

    def close(self) -> None:
        self.closed += 1


def membership(consumer: Any) -> tuple[SinkMembership, list[Member]]:
    left: list[Member] = []
    told = {"group.id": "connect-copy", "bootstrap.servers": "localhost:1", "logger": object()}
    return SinkMembership(consumer, told, left.append), left


@pytest.mark.parametrize(
    ("is_heard", "member_id", "left"),
    [(False, "one", ["one"]), (True, "one", []), (False, None, [])],
)
def test_a_consumer_that_cannot_leave_tells_its_member(
    is_heard: bool, member_id: str | None, left: list[str]
) -> None:
    consumer = Fake(is_heard=is_heard)
    consumer.member_id = member_id
    member, found = membership(consumer)
    member.close()
    assert [each.member_id for each in found] == left
    assert all(each.group == "connect-copy" for each in found)
    assert consumer.closed == 1


def test_a_member_that_librdkafka_gave_up_is_told_once() -> None:
    consumer = Fake(is_heard=True)
    member, found = membership(consumer)
    for member_id in (None, "one", "one", None, None, "two"):
        consumer.member_id = member_id
        member.look()
    member.close()
    assert [each.member_id for each in found] == ["one"]


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.mark.slow
def test_a_new_member_does_not_wait_for_one_that_was_closed_without_its_broker(
    broker: LocalBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", departures.__name__)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "connect-copy"}
    broker.create_topic("orders")
    left: list[Member] = []
    first = Consumer(settings)
    first.subscribe(["orders"])
    eventually(lambda: first.poll(0.1) or first.assignment())
    member = SinkMembership(first, settings, left.append)
    broker.kill()
    member.close()
    (gone,) = left

    async def leave() -> None:
        leaving = Departures()
        leaving.add(gone)
        async with asyncio.timeout(30):
            # There is no broker that could be told of the member.
            while "groups cannot be reached" not in caplog.text:
                await asyncio.sleep(0.01)
        assert leaving.count == 1
        await asyncio.to_thread(broker.start)
        async with asyncio.timeout(60):
            while leaving.count:
                await asyncio.sleep(0.01)
        await leaving.stop()

    asyncio.run(leave())
    with closing(Consumer(settings)) as second:
        second.subscribe(["orders"])
        eventually(lambda: second.poll(0.1) or second.assignment(), 5)


def test_members_that_nobody_can_be_told_of_are_bounded_and_forgotten() -> None:
    async def check() -> None:
        leaving = Departures(most=3)
        for number in range(5):
            client = (("bootstrap.servers", "127.0.0.1:1"),)
            leaving.add(Member(client, "connect-copy", str(number)))
        assert leaving.count == 3
        await leaving.stop()

    asyncio.run(check())
