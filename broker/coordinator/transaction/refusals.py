"""Turns an answer that can no longer be sent into a refusal of the same kind.

If a batch cannot be appended, or is not committed in time, or the shard moves to another broker,
every client that waits for an answer gets an error instead, and retries.
"""

from broker.coordinator.output import Reply
from broker.coordinator.transaction.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from common.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from common.kafka.protocol.messages.describe_transactions import TransactionState
from common.kafka.protocol.messages.end_txn import EndTxnResponse
from common.kafka.protocol.messages.init_producer_id import InitProducerIdResponse


def refuse(reply: Reply, code: ErrorCode) -> Reply:
    """Return the reply as a refusal. A listing becomes an empty one."""
    return Reply(reply.token, _refused(reply.response, code))


def _refused(response: object, code: ErrorCode) -> object:
    match response:
        case InitProducerIdResponse() | EndTxnResponse():
            refused = type(response)(error_code=code)
            refused.producer_id, refused.producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
            return refused
        case AddOffsetsToTxnResponse():
            return AddOffsetsToTxnResponse(error_code=code)
        case AddPartitionsToTxnResult():
            for topic in response.topic_results:
                for partition in topic.results_by_partition:
                    partition.partition_error_code = code
            return response
        case TransactionState():
            return TransactionState(error_code=code, transactional_id=response.transactional_id)
        case list():
            return []
        case _:
            raise AssertionError(response)
