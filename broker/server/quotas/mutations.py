"""Limits how many partitions a client creates and deletes: controller_mutation_rate (KIP-599).

Each partition takes a token from the client's bucket. A topic is refused with
THROTTLING_QUOTA_EXCEEDED if the bucket is in debt and the version of the request knows that error;
in older versions every topic is passed on, and the client is muted until the debt is paid. Topics
that the controller refuses give their tokens back. The broker that a client is connected to counts:
a client of several brokers has a bucket at each.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from broker.quotas.accounts import Accounts
from broker.quotas.rate import TokenBucket
from broker.server.network.dispatch import Answer, Handler, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

EXCEEDED = "The throttling quota has been exceeded."
FIRST_VERSION_WITH_TOPIC_STATES = 6

PartitionCount = Callable[[str | None, bytes | None], int]
"""Returns the number of partitions of a topic, by its name or its id; 0 for an unknown topic.

Without either: the number of partitions of a new topic by default."""


class Limited(NamedTuple):
    """How one API is limited. An item is a topic of the request."""

    first_strict_version: int
    items: Callable[[Any, int], list[Any]]
    keep: Callable[[Any, int, list[Any]], None]
    """Sets the items that are passed on."""
    amount: Callable[[Any, PartitionCount], int]
    refusal: Callable[[Any], Any]
    """Makes the result of an item that is not passed on."""
    results: Callable[[Any], list[Any]]
    key: Callable[[Any], Any]
    """Returns the name of an item; a deleted topic may have only an id."""
    new_response: Callable[[], Any]


class Creations:
    """The tokens of topics that a request creates besides: Metadata, and a streams group's member.

    A topic without a token is not created; the client asks for it again.
    """

    def __init__(self, accounts: Accounts, now_ms: Callable[[], int]) -> None:
        self._accounts = accounts
        self._now_ms = now_ms

    def take(self, context: RequestContext, wanted: Mapping[str, int]) -> list[str]:
        """Take the tokens of topics, by their partitions, and return those that have them."""
        bucket = self._bucket_of(context)
        if bucket is None:
            return list(wanted)
        taken = []
        for name, count in wanted.items():
            if bucket.excess_ms(self._now_ms()):
                break
            bucket.record(count, self._now_ms())
            taken.append(name)
        return taken

    def give_back(self, context: RequestContext, count: int) -> None:
        """Give back the tokens of partitions that were not created."""
        bucket = self._bucket_of(context)
        if bucket is not None:
            bucket.record(-count, self._now_ms())

    def _bucket_of(self, context: RequestContext) -> TokenBucket | None:
        if self._accounts.is_empty:
            return None
        user = context.connection.peer.principal.partition(":")[2]
        account = self._accounts.of(user, context.header.client_id or "", self._now_ms())
        if account.mutations is None:
            return None
        bucket = account.mutations.used
        assert isinstance(bucket, TokenBucket), account.mutations.key
        return bucket


class Mutations:
    """Passes on the topics for which a client has tokens."""

    def __init__(self, count_of: PartitionCount, now_ms: Callable[[], int]) -> None:
        self._count_of = count_of
        self._now_ms = now_ms

    def limited(
        self, bucket: TokenBucket, handler: Handler, context: RequestContext, request: Any
    ) -> Steps[Answer]:
        """Answer a request with the results of the topics passed on and of those refused."""
        if getattr(request, "validate_only", False):
            return (yield from _answered(handler(context, request)))
        kind = LIMITED_APIS[ApiKey(context.header.api_key)]
        version = context.api_version
        passed, refused = self._divided(bucket, kind, kind.items(request, version), version)
        response: Any = kind.new_response()
        if passed or not refused:
            kind.keep(request, version, [item for item, _ in passed])
            response = yield from _answered(handler(context, request))
            failed = {
                key
                for result in kind.results(response)
                if result.error_code
                for key in (result.name, getattr(result, "topic_id", None))
            }
            unused = sum(amount for item, amount in passed if kind.key(item) in failed)
            bucket.record(-unused, self._now_ms())
        kind.results(response).extend(map(kind.refusal, refused))
        return response  # type: ignore[no-any-return]

    def _divided(
        self, bucket: TokenBucket, kind: Limited, items: list[Any], version: int
    ) -> tuple[list[tuple[Any, int]], list[Any]]:
        """Return the items to pass on, each with its tokens, and those to refuse."""
        passed, refused = [], []
        for item in items:
            if version >= kind.first_strict_version and bucket.excess_ms(self._now_ms()):
                refused.append(item)
            else:
                amount = kind.amount(item, self._count_of)
                bucket.record(amount, self._now_ms())
                passed.append((item, amount))
        return passed, refused


def _answered(answer: Answer | Steps[Answer]) -> Steps[Answer]:
    return (yield from answer) if isinstance(answer, Generator) else answer


def _new_partitions(topic: CreatableTopic, count_of: PartitionCount) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return topic.num_partitions if topic.num_partitions > 0 else count_of(None, None)


def _more_partitions(topic: CreatePartitionsTopic, count_of: PartitionCount) -> int:
    return max(0, topic.count - count_of(topic.name, None))


def _deleted_topics(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= FIRST_VERSION_WITH_TOPIC_STATES:
        return request.topics
    return [DeleteTopicState(name=name) for name in request.topic_names]


def _keep_deleted(request: DeleteTopicsRequest, version: int, kept: list[DeleteTopicState]) -> None:
    if version >= FIRST_VERSION_WITH_TOPIC_STATES:
        request.topics = kept
    else:
        request.topic_names = [state.name or "" for state in kept]


def _keep_topics(request: Any, version: int, kept: list[Any]) -> None:
    request.topics = kept


def _topics(request: Any, version: int) -> list[Any]:
    topics: list[Any] = request.topics
    return topics


def _name(topic: Any) -> str:
    name: str = topic.name
    return name


LIMITED_APIS: dict[ApiKey, Limited] = {
    ApiKey(CreateTopicsRequest.__api_key__): Limited(
        first_strict_version=6,
        items=_topics,
        keep=_keep_topics,
        amount=_new_partitions,
        refusal=lambda topic: CreatableTopicResult(
            name=topic.name,
            error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            error_message=EXCEEDED,
        ),
        results=lambda response: response.topics,
        key=_name,
        new_response=CreateTopicsResponse,
    ),
    ApiKey(CreatePartitionsRequest.__api_key__): Limited(
        first_strict_version=3,
        items=_topics,
        keep=_keep_topics,
        amount=_more_partitions,
        refusal=lambda topic: CreatePartitionsTopicResult(
            name=topic.name,
            error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            error_message=EXCEEDED,
        ),
        results=lambda response: response.results,
        key=_name,
        new_response=CreatePartitionsResponse,
    ),
    ApiKey(DeleteTopicsRequest.__api_key__): Limited(
        first_strict_version=5,
        items=_deleted_topics,
        keep=_keep_deleted,
        amount=lambda state, count_of: count_of(state.name, state.topic_id),
        refusal=lambda state: DeletableTopicResult(
            name=state.name,
            topic_id=state.topic_id,
            error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            error_message=EXCEEDED,
        ),
        results=lambda response: response.responses,
        key=lambda state: state.name or state.topic_id,
        new_response=DeleteTopicsResponse,
    ),
}
"""The APIs that create or delete partitions."""
