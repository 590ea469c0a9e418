"""A transaction coordinator whose answers the test decides, for a partition leader."""

from types import SimpleNamespace
from typing import Any

from broker.metadata.image import MetadataImage
from broker.metadata.topic_names import TRANSACTION_STATE
from broker.server.coordinators.transaction_verifier import (
    TransactionVerifier,
    VerifierConfig,
)
from broker.server.peers import Peers
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.records.metadata import PartitionRecord, TopicRecord

STATE_TOPIC_ID = b"t" * 16
COORDINATOR_ID = 3


class ScriptedCoordinator:
    """Keeps requests until the test answers them. The coordinator is broker 3."""

    def __init__(self) -> None:
        self.asked: list[tuple[AddPartitionsToTxnRequest, Any]] = []
        self.is_closed = False

    def connect(self, address: tuple[str, int]) -> Any:
        def ask(request: Any, api_version: int, timeout_ms: int, on_answer: Any) -> None:
            self.asked.append((request, on_answer))

        return SimpleNamespace(
            address=address, ask=ask, close=lambda: setattr(self, "is_closed", True)
        )

    def verifier(
        self, loop: Any, image: MetadataImage, partitions: Any, *, is_enabled: bool = True
    ) -> TransactionVerifier:
        metadata: Any = SimpleNamespace(image=image)
        peers = Peers(loop, metadata, self.connect, "PLAINTEXT")
        return TransactionVerifier(peers, partitions, VerifierConfig(is_enabled, 20, 100))

    @property
    def transactions(self) -> list[AddPartitionsToTxnTransaction]:
        """The content of the oldest request."""
        transactions: list[AddPartitionsToTxnTransaction] = self.asked[0][0].transactions
        return transactions

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Answer the oldest request, with the same result for every partition."""
        request, on_answer = self.asked.pop(0)
        on_answer(
            AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResult(
                        transactional_id=each.transactional_id,
                        topic_results=[
                            AddPartitionsToTxnTopicResult(
                                name=topic.name,
                                results_by_partition=[
                                    AddPartitionsToTxnPartitionResult(
                                        partition_index=index, partition_error_code=code
                                    )
                                    for index in topic.partitions
                                ],
                            )
                            for topic in each.topics
                        ],
                    )
                    for each in request.transactions
                ]
            )
        )

    def refuse_all(self, code: ErrorCode) -> None:
        """Refuse the oldest request as a whole."""
        self.asked.pop(0)[1](AddPartitionsToTxnResponse(error_code=code))

    def lose(self) -> None:
        """Close the connection before the answer."""
        self.asked.pop(0)[1](None)


def state_topic() -> tuple[TopicRecord, PartitionRecord]:
    """Return the records of a `__transaction_state` with one partition, led by broker 3."""
    return TopicRecord(name=TRANSACTION_STATE, topic_id=STATE_TOPIC_ID), PartitionRecord(
        partition_id=0,
        topic_id=STATE_TOPIC_ID,
        replicas=[COORDINATOR_ID],
        isr=[COORDINATOR_ID],
        leader=COORDINATOR_ID,
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes(16)],
    )
