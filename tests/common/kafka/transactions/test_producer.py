"""The producer of transactions with a client that answers as the test says."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.structs import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.transactions import messages
from common.kafka.transactions.producer import TransactionalProducer, TransactionError
from common.kafka.transactions.rules import ErrorCode, Member, Outcome
from common.processing.outbox import Outgoing

MEMBER = Member("echo", 5, "member-1")
INPUT = TopicPartition("in", 0)
RECORDS = [Outgoing("out", None, b"v", [], number) for number in (0, 1)]
LEADERS = {0: 1, 1: 2}
COORDINATOR = 3


class FakeCluster:
    def __init__(self) -> None:
        self.leaders = dict(LEADERS)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(self.leaders)

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(nodeId=COORDINATOR)]

    def leader_for_partition(self, partition: TopicPartition) -> int:
        return self.leaders[partition.partition]


class FakeClient:
    """Notes what is sent to whom; `script` has codes for the next requests of a kind."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.sent: list[tuple[int, Any]] = []
        self.script: dict[type[messages.Message], list[int | Exception]] = {}
        self.on_metadata: Callable[[], None] = lambda: None
        self.epoch = 0

    def get_random_node(self) -> int:
        return COORDINATOR

    async def force_metadata_update(self) -> None:
        self.on_metadata()

    async def send(self, node: int, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=0, coordinator_id=COORDINATOR)
        # What is sent can be read back: the schema takes the values.
        request.encode()
        self.sent.append((node, request))
        codes = self.script.get(type(request), [])
        code = codes.pop(0) if codes else ErrorCode.NONE
        if isinstance(code, Exception):
            raise code
        return self._answer(request, code)

    def _answer(self, request: Any, code: int) -> Any:
        match request:
            case messages.Produce9():
                return messages.ProduceResponse(
                    [
                        (topic, [(n, code, 0, -1, 0, [], None, {}) for n, *_ in found], {})
                        for topic, found, _ in request.topics
                    ],
                    0,
                    {},
                )
            case messages.TxnOffsetCommit3():
                topics = [
                    (topic, [(n, code, {}) for n, *_ in found], {})
                    for topic, found, _ in request.topics
                ]
                return messages.TxnOffsetCommitResponse(0, topics, {})
            case messages.AddPartitionsToTxn3():
                topics = [
                    (topic, [(n, code, {}) for n in found], {})
                    for topic, found, _ in request.topics
                ]
                return messages.AddPartitionsToTxnResponse3(0, topics, {})
            case messages.AddOffsetsToTxn3():
                return messages.AddOffsetsToTxnResponse3(0, code, {})
            case messages.EndTxn5():
                self.epoch += code == ErrorCode.NONE
                return messages.EndTxnResponse5(0, code, 7, self.epoch, {})
            case messages.EndTxn3():
                return messages.EndTxnResponse3(0, code, {})
            case messages.OffsetFetch7():
                topics = [
                    (topic, [(n, 10 + n, -1, "", code, {}) for n in found], {})
                    for topic, found, _ in request.topics
                ]
                return messages.OffsetFetchResponse7(0, topics, 0, {})
        return messages.InitProducerIdResponse4(0, code, 7, self.epoch, {})

    def kinds(self) -> list[str]:
        return [type(request).__name__ for _, request in self.sent]


class Rig:
    """A producer with its double, that holds the partitions."""

    def __init__(self, protocol: int = 2) -> None:
        self.client = FakeClient()
        self.producer = TransactionalProducer(KafkaAccess("nowhere:1"), "echo", timeout_ms=200)
        self.producer._client = self.client  # type: ignore[assignment]
        self.producer._protocol = protocol

    async def take(self, *numbers: int) -> None:
        await self.producer.take(numbers or (0, 1))
        self.client.sent.clear()

    async def commit(self) -> None:
        await self.producer.commit(RECORDS, {INPUT: 9}, MEMBER)


def run(check: Callable[[Rig], Any], protocol: int = 2) -> None:
    async def with_loop() -> None:
        await check(Rig(protocol))

    asyncio.run(with_loop())


def test_batch_goes_to_every_leader_at_once_and_is_ended() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        assert sorted(rig.client.kinds()[:-1]) == ["Produce12", "Produce12", "TxnOffsetCommit5"]
        assert {node for node, r in rig.client.sent if isinstance(r, messages.Produce9)} == {1, 2}
        end = rig.client.sent[-1][1]
        assert (type(end), end.producer_epoch, end.committed) == (messages.EndTxn5, 0, True)

    run(check)


def test_offsets_name_the_member_and_its_generation() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        (offsets,) = (r for _, r in rig.client.sent if isinstance(r, messages.TxnOffsetCommit3))
        assert (offsets.group_id, offsets.generation_id, offsets.member_id) == MEMBER[:3]
        assert offsets.topics == [("in", [(0, 9, -1, None, {})], {})]

    run(check)


def test_each_transaction_has_the_epoch_that_the_last_one_was_answered_with() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        await rig.commit()
        ends = [r.producer_epoch for _, r in rig.client.sent if isinstance(r, messages.EndTxn5)]
        assert ends == [0, 1]

    run(check)


def test_older_cluster_is_told_first_what_will_be_written() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        kinds = rig.client.kinds()
        assert kinds[:2] == ["AddPartitionsToTxn3", "AddOffsetsToTxn3"]
        assert sorted(kinds[2:-1]) == ["Produce9", "Produce9", "TxnOffsetCommit3"]
        assert kinds[-1] == "EndTxn3"

    run(check, protocol=1)


def test_taking_over_replaces_the_producers_of_all_partitions_that_are_held() -> None:
    async def check(rig: Rig) -> None:
        await rig.producer.take([4, 2, 3])
        ids = sorted(request.transactional_id for _, request in rig.client.sent)
        assert ids == ["echo-2", "echo-3", "echo-4"]
        rig.client.sent.clear()
        await rig.commit()
        assert rig.client.sent[-1][1].transactional_id == "echo-2"

    run(check)


def test_id_that_is_refused_to_all_is_one_error() -> None:
    async def check(rig: Rig) -> None:
        refused = 53
        rig.client.script[messages.InitProducerId4] = [refused] * 3
        with pytest.raises(TransactionError, match="TransactionalIdAuthorizationFailed"):
            await rig.producer.take([0, 1, 2])

    run(check)


def test_leader_that_has_moved_is_looked_up_and_sent_the_same_bytes() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script[messages.Produce12] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        rig.client.on_metadata = lambda: rig.client.cluster.leaders.update({0: 3})
        await rig.commit()
        produced = [
            (node, r.topics[0][1][0][1])
            for node, r in rig.client.sent
            if isinstance(r, messages.Produce12)
        ]
        assert [node for node, _ in produced] == [1, 2, 3]
        assert produced[0][1] == produced[2][1]

    run(check)


def test_answer_to_the_end_that_was_lost_is_asked_for_again() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script[messages.EndTxn5] = [KafkaConnectionError()]
        await rig.commit()
        ends = [r for _, r in rig.client.sent if isinstance(r, messages.EndTxn5)]
        assert [(r.producer_epoch, r.committed) for r in ends] == [(0, True), (0, True)]

    run(check)


@pytest.mark.parametrize(
    ("code", "outcome", "is_aborted"),
    [
        (ErrorCode.ILLEGAL_GENERATION, Outcome.GENERATION_OVER, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, Outcome.GENERATION_OVER, True),
        (ErrorCode.PRODUCER_FENCED, Outcome.FENCED, False),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Outcome.FENCED, False),
        (87, Outcome.ABORTED, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, Outcome.ABORTED, True),
    ],
)
def test_refused_batch_is_aborted_unless_there_is_nothing_left_to_abort(
    code: int, outcome: Outcome, is_aborted: bool
) -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script[messages.TxnOffsetCommit5] = [code] * 100
        with pytest.raises(TransactionError) as raised:
            await rig.commit()
        assert raised.value.outcome is outcome
        ends = [r.committed for _, r in rig.client.sent if isinstance(r, messages.EndTxn5)]
        assert ends == ([False] if is_aborted else [])

    run(check)


def test_end_that_stays_unanswered_is_not_aborted_for_it_may_have_been_committed() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script[messages.EndTxn5] = [KafkaConnectionError()] * 100
        with pytest.raises(TransactionError):
            await rig.commit()
        ends = [r.committed for _, r in rig.client.sent if isinstance(r, messages.EndTxn5)]
        assert set(ends) == {True}

    run(check)


def test_offsets_are_waited_for_until_no_transaction_can_change_them() -> None:
    async def check(rig: Rig) -> None:
        rig.client.script[messages.OffsetFetch7] = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
        found = await rig.producer.committed("echo", [INPUT, TopicPartition("in", 1)])
        assert found == {INPUT: 10, TopicPartition("in", 1): 11}
        assert [request.require_stable for _, request in rig.client.sent] == [True] * 3

    run(check)
