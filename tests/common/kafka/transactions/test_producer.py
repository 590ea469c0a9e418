"""The producer of transactions with a client that answers as the test says."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from common.kafka.protocol.messages.end_txn import EndTxnResponse
from common.kafka.protocol.messages.init_producer_id import InitProducerIdResponse
from common.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from common.kafka.transactions.producer import TransactionalProducer, TransactionError
from common.kafka.transactions.rules import Member, Outcome
from common.processing.outbox import Outgoing

MEMBER = Member("echo", 5, "member-1")
INPUT = TopicPartition("in", 0)
RECORDS = [Outgoing("out", None, b"v", [], number) for number in (0, 1)]
LEADERS = {0: 1, 1: 2}
COORDINATOR = 3


class FakeClient:
    """Notes what is sent to whom; `script` has codes for the next requests of a kind."""

    def __init__(self) -> None:
        self.leaders = dict(LEADERS)
        self.refusal = ErrorCode.NONE
        self.sent: list[tuple[int, str, Any]] = []
        self.script: dict[str, list[int | Exception]] = {}
        self.on_metadata: Callable[[], None] = lambda: None
        self.epoch = 0

    async def metadata(self, topics: Iterable[str]) -> MetadataResponse:
        self.on_metadata()
        if self.refusal:
            return MetadataResponse(
                topics=[
                    MetadataResponseTopic(name=topic, error_code=self.refusal) for topic in topics
                ]
            )
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=leader)
            for number, leader in self.leaders.items()
        ]
        return MetadataResponse(
            topics=[MetadataResponseTopic(name=topic, partitions=partitions) for topic in topics]
        )

    async def coordinator(self, kind: int, key: str) -> int:
        return COORDINATOR

    async def ask(
        self, request: Message, answer: type[Message], node: int, *, max_version: int
    ) -> Message:
        # What is sent can be written: the version has all that is set.
        encode_request(request.__api_key__, max_version, 1, "test", request)
        kind = f"{type(request).__name__.removesuffix('Request')}{max_version}"
        self.sent.append((node, kind, request))
        codes = self.script.get(kind, [])
        code = codes.pop(0) if codes else ErrorCode.NONE
        if isinstance(code, Exception):
            raise code
        answered = self._answer(kind, request, code)
        assert isinstance(answered, answer)
        return answered

    def _answer(self, kind: str, request: Any, code: int) -> Message:
        match kind:
            case "Produce9" | "Produce12":
                return ProduceResponse(
                    responses=[
                        TopicProduceResponse(
                            name=topic.name,
                            partition_responses=[
                                PartitionProduceResponse(index=each.index, error_code=code)
                                for each in topic.partition_data
                            ],
                        )
                        for topic in request.topic_data
                    ]
                )
            case "TxnOffsetCommit3" | "TxnOffsetCommit5":
                return TxnOffsetCommitResponse(
                    topics=[
                        TxnOffsetCommitResponseTopic(
                            name=topic.name,
                            partitions=[
                                TxnOffsetCommitResponsePartition(
                                    partition_index=each.partition_index, error_code=code
                                )
                                for each in topic.partitions
                            ],
                        )
                        for topic in request.topics
                    ]
                )
            case "AddPartitionsToTxn3":
                return AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=number, partition_error_code=code
                                )
                                for number in topic.partitions
                            ],
                        )
                        for topic in request.v3_and_below_topics
                    ]
                )
            case "AddOffsetsToTxn3":
                return AddOffsetsToTxnResponse(error_code=code)
            case "EndTxn5":
                self.epoch += code == ErrorCode.NONE
                return EndTxnResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)
            case "EndTxn3":
                return EndTxnResponse(error_code=code)
            case "OffsetFetch7":
                return OffsetFetchResponse(
                    topics=[
                        OffsetFetchResponseTopic(
                            name=topic.name,
                            partitions=[
                                OffsetFetchResponsePartition(
                                    partition_index=number,
                                    committed_offset=10 + number,
                                    error_code=code,
                                )
                                for number in topic.partition_indexes
                            ],
                        )
                        for topic in request.topics
                    ]
                )
        return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def kinds(self) -> list[str]:
        return [kind for _, kind, _ in self.sent]

    def requests(self, *kinds: str) -> list[Any]:
        return [request for _, kind, request in self.sent if kind in kinds]


class Rig:
    """A producer with its double, that holds the partitions."""

    def __init__(self, protocol: int = 2) -> None:
        self.client = FakeClient()
        self.producer = TransactionalProducer(KafkaAccess("nowhere:1"), "echo", timeout_ms=200)
        self.producer._client = self.client  # type: ignore[assignment]
        self.producer._protocol = protocol
        self.producer._wanted = {"out"}

    async def take(self, *numbers: int) -> None:
        await self.producer._look_up_again()
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
        assert {node for node, kind, _ in rig.client.sent if kind == "Produce12"} == {1, 2}
        _, kind, end = rig.client.sent[-1]
        assert (kind, end.producer_epoch, end.committed) == ("EndTxn5", 0, True)

    run(check)


def test_offsets_name_the_member_and_its_generation() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        (offsets,) = rig.client.requests("TxnOffsetCommit5")
        assert (offsets.group_id, offsets.generation_id, offsets.member_id) == MEMBER[:3]
        (topic,) = offsets.topics
        (partition,) = topic.partitions
        assert (topic.name, partition.partition_index, partition.committed_offset) == ("in", 0, 9)

    run(check)


def test_each_transaction_has_the_epoch_that_the_last_one_was_answered_with() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        await rig.commit()
        await rig.commit()
        ends = [request.producer_epoch for request in rig.client.requests("EndTxn5")]
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
        ids = sorted(request.transactional_id for *_, request in rig.client.sent)
        assert ids == ["echo-2", "echo-3", "echo-4"]
        rig.client.sent.clear()
        await rig.commit()
        assert rig.client.sent[-1][2].transactional_id == "echo-2"

    run(check)


def test_id_that_is_refused_to_all_is_one_error() -> None:
    async def check(rig: Rig) -> None:
        refused = 53
        rig.client.script["InitProducerId4"] = [refused] * 3
        with pytest.raises(TransactionError, match="TransactionalIdAuthorizationFailed"):
            await rig.producer.take([0, 1, 2])

    run(check)


def test_leader_that_has_moved_is_looked_up_and_sent_the_same_bytes() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script["Produce12"] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        rig.client.on_metadata = lambda: rig.client.leaders.update({0: 3})
        await rig.commit()
        produced = [
            (node, request.topic_data[0].partition_data[0].records)
            for node, kind, request in rig.client.sent
            if kind == "Produce12"
        ]
        assert [node for node, _ in produced] == [1, 2, 3]
        assert produced[0][1] == produced[2][1]

    run(check)


def test_answer_to_the_end_that_was_lost_is_asked_for_again() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script["EndTxn5"] = [ConnectionFailed()]
        await rig.commit()
        ends = rig.client.requests("EndTxn5")
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
        rig.client.script["TxnOffsetCommit5"] = [code] * 100
        with pytest.raises(TransactionError) as raised:
            await rig.commit()
        assert raised.value.outcome is outcome
        ends = [request.committed for request in rig.client.requests("EndTxn5")]
        assert ends == ([False] if is_aborted else [])

    run(check)


def test_end_that_stays_unanswered_is_not_aborted_for_it_may_have_been_committed() -> None:
    async def check(rig: Rig) -> None:
        await rig.take()
        rig.client.script["EndTxn5"] = [ConnectionFailed()] * 100
        with pytest.raises(TransactionError):
            await rig.commit()
        ends = [request.committed for request in rig.client.requests("EndTxn5")]
        assert set(ends) == {True}

    run(check)


def test_offsets_are_waited_for_until_no_transaction_can_change_them() -> None:
    async def check(rig: Rig) -> None:
        rig.client.script["OffsetFetch7"] = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
        found = await rig.producer.committed("echo", [INPUT, TopicPartition("in", 1)])
        assert found == {INPUT: 10, TopicPartition("in", 1): 11}
        assert [request.require_stable for *_, request in rig.client.sent] == [True] * 3

    run(check)


def test_a_topic_that_nobody_may_write_is_refused_by_its_error() -> None:
    async def check(rig: Rig) -> None:
        rig.client.refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await rig.take()
        with pytest.raises(TransactionError, match=r"topic out error=TopicAuthorizationFailed"):
            await rig.commit()

    run(check)
