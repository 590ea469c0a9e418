"""Changes that name more than one request may change, refused before they reach the controller.

Apache Kafka refuses what would take more than 10,000 records, after it has decided on everything,
and so does our controller (`metadata/control/limits.py`). What names more entries than that is
nearly always such a change; deciding on a million of them would keep every other change waiting for
seconds. So it is refused here, with the same error for every entry, step by step.
"""

from copy import copy

from broker.errors import ErrorCode, KafkaError
from broker.metadata.control.limits import MAX_RECORDS_PER_REQUEST
from broker.metadata.control.refusals import refuse
from broker.protocol.message import Message
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from broker.protocol.messages.alter_configs import AlterConfigsRequest
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from broker.protocol.messages.create_partitions import CreatePartitionsRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.server.network.dispatch import AnswerWalk
from broker.server.network.walks import QUICK_ITEMS_PER_STEP

NAMED: dict[type[Message], tuple[str, str]] = {
    CreateTopicsRequest: ("topics", "configs"),
    DeleteTopicsRequest: ("topics", ""),
    CreatePartitionsRequest: ("topics", ""),
    AlterConfigsRequest: ("resources", "configs"),
    IncrementalAlterConfigsRequest: ("resources", "configs"),
    AlterClientQuotasRequest: ("entries", "ops"),
    AlterPartitionReassignmentsRequest: ("topics", "partitions"),
    UpdateFeaturesRequest: ("feature_updates", ""),
}
"""The array of what is changed, and the array of changes in each of its entries."""
NAMES_OF_OLD_DELETIONS = "topic_names"


def is_excessive(request: Message) -> bool:
    """Tell whether a request names more than one may change."""
    named = NAMED.get(type(request))
    if named is None:
        return False
    entries, changes = getattr(request, _array_of(request, named)), named[1]
    if len(entries) > MAX_RECORDS_PER_REQUEST or not changes:
        return len(entries) > MAX_RECORDS_PER_REQUEST
    return sum(len(getattr(entry, changes)) for entry in entries) > MAX_RECORDS_PER_REQUEST


def refused_in_steps(request: Message, api_version: int) -> AnswerWalk:
    """Refuse a request that is excessive."""
    error = KafkaError(
        ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
    )
    array = _array_of(request, NAMED[type(request)])
    entries, part = getattr(request, array), copy(request)
    setattr(part, array, entries[:QUICK_ITEMS_PER_STEP])
    answer = refuse(part, api_version, error)
    for start in range(QUICK_ITEMS_PER_STEP, len(entries), QUICK_ITEMS_PER_STEP):
        yield
        setattr(part, array, entries[start : start + QUICK_ITEMS_PER_STEP])
        _add(answer, refuse(part, api_version, error))
    return answer


def _array_of(request: Message, named: tuple[str, str]) -> str:
    array, _ = named
    is_old = isinstance(request, DeleteTopicsRequest) and not request.topics
    return NAMES_OF_OLD_DELETIONS if is_old else array


def _add(answer: Message, more: Message) -> None:
    for name, field in answer.__fields__.items():
        if field.kind == "array":
            getattr(answer, name).extend(getattr(more, name))
