"""A follower's fetcher and its leader, joined without a socket."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from broker.replication.follower import FetchPosition, FollowerState, PartitionFollower
from broker.server.handlers.fetch.list_offsets import ListOffsets
from broker.server.network.client_connection import client_settings
from broker.server.replication import leader_fetcher
from broker.server.replication.leader_fetcher import LeaderFetcher
from broker.server.replication.offsets_question import FetcherParts
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import RequestHeader, decode_response, encode_response
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import FetchResponse
from common.kafka.protocol.records.metadata import PartitionRecord
from tests.lib.served_replica import (
    BROKERS,
    TOPIC,
    TOPIC_ID,
    Client,
    Context,
    ServedReplica,
    epoch_of,
    produced,
)

FOLLOWER = 2
OnAnswer = Callable[[Message | None], None]


class Link:
    """Stands in for the connection: it hands each request to the leader's handler."""

    def __init__(self, leader: ServedReplica) -> None:
        self.leader = leader
        self.is_broken = False
        self.requests: list[Any] = []
        self._client = Client()
        self.before_offsets: Callable[[], None] = lambda: None
        self._open: list[tuple[Context, RequestHeader, OnAnswer]] = []

    def ask(self, request: Any, version: int, timeout_ms: int, on_answer: OnAnswer) -> None:
        self.requests.append(request)
        assert len(self.requests) < 1_000, "it asks and asks"
        if self.is_broken:
            self.leader.loop.call_soon(on_answer, None)
            return
        context = Context(version, self._client)
        header = RequestHeader(request.__api_key__, version, 0, None)
        self._answer(context, request)
        self._open.append((context, header, on_answer))

    def _answer(self, context: Context, request: Any) -> None:
        if request.__api_key__ == ApiKey.FETCH:
            try:
                context.handle(self.leader.fetch_handler.handle, request)
            except KafkaError as error:
                context.reply(FetchResponse(error_code=error.code))
            return
        self.before_offsets()
        failures: Any = None
        context.handle(ListOffsets(self.leader.partitions, failures).handle, request)

    def deliver(self) -> None:
        """Bring the answers that are there, in the order of the requests."""
        while self._open and self._open[0][0].answer is not None:
            context, header, on_answer = self._open.pop(0)
            frame = b"".join(encode_response(header, context.answer))  # type: ignore[arg-type]
            on_answer(decode_response(header.api_key, header.api_version, frame[4:])[1])

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None:
        self._open.clear()


class Pair:
    """Leader and follower of `orders-0`, on one loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leader, self.follower = ServedReplica(), ServedReplica(FOLLOWER)
        self.follower.loop = self.leader.loop
        self.link = Link(self.leader)
        monkeypatch.setattr(leader_fetcher, "ClientConnection", lambda *_, **__: self.link)
        parts = FetcherParts(
            self.leader.loop,
            self.follower.clock,
            self.follower.config.replication,
            client_settings(self.follower.config, self.follower.config.security.to_brokers),
            FOLLOWER,
            broker_epoch=lambda: epoch_of(FOLLOWER),
            on_failed=lambda partition, error: pytest.fail(str(error)),
            on_moved=self.follower.partitions.on_high_watermark,
            on_bytes=lambda size_bytes: None,
            throttle=self.follower.throttles.follower,
            on_lost=lambda leader_id: self.told.append(("lost", leader_id)),
            on_reached=lambda leader_id: self.told.append(("reached", leader_id)),
        )
        self.told: list[tuple[str, int]] = []
        self.fetcher = LeaderFetcher(parts, 1, ("127.0.0.1", 9001))
        self.fetcher.add(self.follower.partition)

    def add_partition(self, number: int) -> None:
        """Let there be another partition of the topic, and the follower fetch it."""
        record = PartitionRecord(
            partition_id=number,
            topic_id=TOPIC_ID,
            replicas=list(BROKERS),
            isr=list(BROKERS),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(16)] * len(BROKERS),
        )
        for node in (self.leader, self.follower):
            node.replay(record)
        added = self.follower.partitions.find(TOPIC, number)
        assert added is not None
        self.fetcher.add(added)

    def run(self, milliseconds: int = 0) -> None:
        """Let time go on, and bring what was answered."""
        for _ in range(milliseconds + 10):
            self.leader.loop.advance(1 if milliseconds else 0)
            self.link.deliver()

    def logs(self) -> list[tuple[int, bytes]]:
        """Give end and bytes of both logs."""
        found = []
        for node in (self.leader, self.follower):
            log = node.partition.log
            read = log.read(0, max_bytes=1 << 20, max_offset=log.log_end_offset)
            found.append((log.log_end_offset, b"".join(read.parts)))
        return found


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(monkeypatch)


def test_a_follower_has_its_leader_s_bytes_and_then_its_high_watermark(pair):
    waits = pair.leader.produce()
    pair.leader.produce(acks=1)
    pair.leader.follow(3, 2)
    pair.run()
    ours, theirs = pair.logs()
    assert ours == theirs
    assert ours[0] == 2
    assert produced(waits) == (0, 0)
    pair.leader.produce(acks=1)
    pair.run()
    assert pair.follower.high_watermark == 2


def test_after_the_first_fetch_only_what_is_different_is_asked(pair):
    pair.run()
    pair.leader.produce(acks=1)
    pair.run(600)  # a record has come, and then half a second nothing
    first, after_record, after_nothing = pair.link.requests
    assert (first.session_id, first.session_epoch, len(first.topics)) == (0, 0, 1)
    assert (after_record.session_epoch, len(after_record.topics)) == (1, 1)
    assert (after_nothing.session_epoch, len(after_nothing.topics)) == (2, 0)
    assert after_nothing.session_id == after_record.session_id > 0


def test_partitions_that_came_one_after_the_other_are_asked_for_together_from_then_on(pair):
    pair.run(10)
    pair.add_partition(1)
    pair.run(10)
    pair.add_partition(2)
    pair.run(10)
    pair.link.requests.clear()
    pair.run(1_100)
    said = [len(request.topics) for request in pair.link.requests]
    assert said == [0, 0], "two waits of half a second each, and nothing new to say"


def test_nobody_looks_at_a_quiet_partition_while_another_one_has_news(pair, monkeypatch):
    pair.add_partition(1)
    pair.run(600)
    quiet = pair.follower.partitions.find(TOPIC, 1).replica.follower
    looked_at: list[PartitionFollower] = []
    next_fetch = PartitionFollower.next_fetch

    def noted(follower: PartitionFollower, now_ms: int) -> FetchPosition | None:
        looked_at.append(follower)
        return next_fetch(follower, now_ms)

    monkeypatch.setattr(PartitionFollower, "next_fetch", noted)
    for _ in range(5):
        pair.leader.produce(acks=1)
        pair.run(10)
    assert len(looked_at) >= 5
    assert quiet not in looked_at
    pair.run(600)
    assert quiet in looked_at, "its log may have been cut at the start meanwhile"


def test_a_partition_that_is_followed_no_more_is_asked_for_no_more(pair):
    pair.add_partition(1)
    pair.run(600)
    gone = pair.follower.partitions.find(TOPIC, 1)
    pair.fetcher.remove(gone.key)
    pair.link.requests.clear()
    pair.leader.produce(acks=1)
    pair.run(10)
    (forgotten,) = pair.link.requests[0].forgotten_topics_data
    assert forgotten.partitions == [1]


def test_a_session_that_is_gone_is_begun_anew_at_once(pair):
    pair.run()
    pair.leader.sessions._sessions.clear()
    pair.leader.produce(acks=1)
    pair.run()
    assert pair.logs()[0] == pair.logs()[1]
    assert pair.logs()[0][0] == 1


def test_a_leader_that_cannot_be_reached_is_tried_once_more_and_left_alone_for_a_while(pair):
    pair.link.is_broken = True
    pair.run(900)
    assert len(pair.link.requests) == 2
    assert pair.told == [("lost", 1)]
    pair.link.is_broken = False
    pair.leader.produce(acks=1)
    pair.run(200)
    assert pair.logs()[0] == pair.logs()[1]
    assert pair.logs()[0][0] == 1
    assert pair.told == [("lost", 1), ("reached", 1)]


def test_a_leader_that_has_not_read_that_it_leads_is_asked_again_soon(pair):
    pair.leader.change(leader=2)
    pair.run(100)
    assert 3 <= len(pair.link.requests) <= 8


def test_a_follower_cuts_off_what_its_leader_does_not_have(pair):
    pair.leader.produce(acks=1)
    pair.run()
    # The follower has led meanwhile, and written what nobody took; then the other leads again.
    pair.follower.change(leader=FOLLOWER)
    pair.follower.produce(acks=1)
    for node in (pair.leader, pair.follower):
        if node is pair.leader:
            node.change(leader=FOLLOWER)
        node.change(leader=1)
    pair.leader.produce(acks=1)
    pair.leader.produce(acks=1)
    pair.fetcher.add(pair.follower.partition)
    pair.run(50)
    assert pair.logs()[0] == pair.logs()[1]
    assert pair.logs()[0][0] == 3


def lose_the_start(pair: Pair) -> None:
    """Have the leader delete what the follower has not fetched yet."""
    for _ in range(3):
        pair.leader.produce(acks=1)
    pair.leader.change(isr=[1])
    pair.leader.partition.log.advance_high_watermark(3)
    pair.leader.partition.log.delete_records_before(3)


def test_a_follower_whose_log_ends_before_its_leader_s_begins_starts_there(pair):
    lose_the_start(pair)
    pair.leader.produce(acks=1)
    pair.run(2_000)
    log = pair.follower.partition.log
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)


def test_a_refusal_of_the_question_for_offsets_waits_for_the_metadata(pair):
    lose_the_start(pair)
    pair.link.before_offsets = lambda: pair.leader.change(leader=1)
    pair.run(3_000)
    assert pair.follower.partition.replica.follower.state is FollowerState.FENCED
    asked = len(pair.link.requests)
    pair.run(3_000)
    assert len(pair.link.requests) == asked
    pair.link.before_offsets = lambda: None
    pair.follower.change(leader=1)
    pair.follower.change(leader=1)
    pair.fetcher.add(pair.follower.partition)
    pair.run(2_000)
    assert pair.follower.partition.log.log_end_offset == 3


def throttle(pair: Pair) -> None:
    """Let the follower be out of sync, throttled, and have just had too much."""
    for node in (pair.leader, pair.follower):
        node.change(isr=[1, 3])
    pair.follower.set_topic("follower.replication.throttled.replicas", "0:2")
    rate = pair.follower.throttles.follower.rate
    rate.limit_per_second = 1
    pair.leader.produce(acks=1)
    pair.run(10)
    assert rate.is_exceeded(pair.follower.clock.now_ms())


def test_a_throttled_follower_out_of_sync_asks_nothing_until_the_rate_allows_for_it(pair):
    throttle(pair)
    asked = len(pair.link.requests)
    pair.leader.produce(acks=1)
    pair.run(2_000)
    assert len(pair.link.requests) == asked
    assert pair.follower.partition.log.log_end_offset == 1
    pair.follower.throttles.follower.rate.limit_per_second = 1_000_000
    pair.run(1_000)
    assert pair.follower.partition.log.log_end_offset == 2


def test_a_throttled_follower_in_sync_goes_on(pair):
    throttle(pair)
    pair.follower.change(isr=[1, 2, 3])
    pair.leader.produce(acks=1)
    pair.run(1_000)
    assert pair.follower.partition.log.log_end_offset == 2


def disturb(pair: Pair, random: Random) -> None:
    """Let anything happen to the two that they may have to stand."""
    leader = pair.leader
    rates = [leader.throttles.leader.rate, pair.follower.throttles.follower.rate]
    match random.randrange(8):
        case 0 | 1 | 2:
            leader.produce(acks=1)
        case 3:
            leader.follow(3, leader.partition.log.log_end_offset)
        case 4:
            pair.link.is_broken = not pair.link.is_broken
        case 5:
            leader.sessions._sessions.clear()
        case 6:
            random.choice(rates).limit_per_second = random.choice([1, 1_000_000])
        case 7:
            isr = random.choice([[1, 2, 3], [1, 3]])
            for node in (leader, pair.follower):
                node.change(isr=isr)
    pair.run(random.choice([0, 1, 30, 600]))
    pair.link.requests.clear()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_disturbs_them_the_two_are_equal_in_the_end(pair, seed):
    """Sessions that are lost or at rest, throttles, broken connections, another in-sync set."""
    random = Random(seed)
    pair.leader.set_topic("leader.replication.throttled.replicas", "*")
    pair.follower.set_topic("follower.replication.throttled.replicas", "*")
    for _ in range(40):
        disturb(pair, random)
    pair.link.is_broken = False
    for rate in (pair.leader.throttles.leader.rate, pair.follower.throttles.follower.rate):
        rate.limit_per_second = 1_000_000
    pair.run(3_000)
    pair.leader.follow(3, pair.leader.partition.log.log_end_offset)
    pair.run(1_000)
    ours, theirs = pair.logs()
    assert ours == theirs
    assert pair.follower.high_watermark == pair.leader.high_watermark == ours[0]
