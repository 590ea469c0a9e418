"""A member of a share group that speaks the protocol itself: one session on one connection."""

from collections.abc import Sequence
from typing import Self, cast
from uuid import uuid4

from broker.coordinator.share_state.state import SharePartitionKey
from broker.server.coordinators.share_states import coordinator_key
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import share_acknowledge as acknowledge
from common.kafka.protocol.messages import share_fetch as fetch
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateData,
)
from common.kafka.protocol.messages.initialize_share_group_state import (
    PartitionData as InitializedState,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.lib.raw_kafka import RawConnection

VERSION = 2
UNSET = -1
Acknowledged = tuple[int, int, Sequence[int]]
"""First and last offset, and the types."""


def topic_id_of(bootstrap: str, topic: str) -> bytes:
    """Return the id of a topic."""
    with RawConnection(bootstrap) as connection:
        response = connection.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    found = cast(MetadataResponse, response).topics
    return next(each.topic_id for each in found if each.name == topic)


def initialize(
    bootstrap: str,
    group_id: str,
    topic_id: bytes,
    partitions: int = 1,
    *,
    start_offset: int = UNSET,
    state_epoch: int = 1,
) -> None:
    """Begin the states of a topic's share-partitions, as the group coordinator does."""
    keys = [
        coordinator_key(SharePartitionKey(group_id, topic_id, number))
        for number in range(partitions)
    ]
    with RawConnection(bootstrap) as connection:
        question = FindCoordinatorRequest(key_type=2, coordinator_keys=keys)
        connection.ask(ApiKey.FIND_COORDINATOR, 6, question)
        request = InitializeShareGroupStateRequest(
            group_id=group_id,
            topics=[
                InitializeStateData(
                    topic_id=topic_id,
                    partitions=[
                        InitializedState(
                            partition=number, state_epoch=state_epoch, start_offset=start_offset
                        )
                        for number in range(partitions)
                    ],
                )
            ],
        )
        response = connection.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
        for topic in cast(InitializeShareGroupStateResponse, response).results:
            for each in topic.partitions:
                assert each.error_code == ErrorCode.NONE, each


class ShareMember:
    """One member; `epoch` is that of its next request."""

    def __init__(
        self, bootstrap: str, group_id: str, topic_id: bytes, member_id: str | None = None
    ) -> None:
        self.connection = RawConnection(bootstrap, timeout_seconds=60)
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id or str(uuid4())
        self.topic_id = topic_id
        self.epoch = 0

    def fetch(
        self,
        partitions: Sequence[int] = (),
        acknowledged: dict[int, Sequence[Acknowledged]] | None = None,
        *,
        max_records: int = 500,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        batch_size: int = 500,
        is_record_limit: bool = False,
        acquire_mode: int | None = None,
        is_renew_ack: bool = False,
        forgotten: Sequence[int] = (),
        epoch: int | None = None,
    ) -> fetch.ShareFetchResponse:
        """Send a ShareFetch that names these partitions and acknowledgements."""
        batches = acknowledged or {}
        request = fetch.ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            share_acquire_mode=int(is_record_limit) if acquire_mode is None else acquire_mode,
            is_renew_ack=is_renew_ack,
            topics=[
                fetch.FetchTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        fetch.FetchPartition(
                            partition_index=number,
                            acknowledgement_batches=_batches(
                                fetch.AcknowledgementBatch, batches.get(number, ())
                            ),
                        )
                        for number in sorted({*partitions, *batches})
                    ],
                )
            ]
            if partitions or batches
            else [],
            forgotten_topics_data=[
                fetch.ForgottenTopic(topic_id=self.topic_id, partitions=list(forgotten))
            ]
            if forgotten
            else [],
        )
        response = cast(
            fetch.ShareFetchResponse, self.connection.ask(ApiKey.SHARE_FETCH, VERSION, request)
        )
        if epoch is None and response.error_code == ErrorCode.NONE:
            self.epoch += 1
        return response

    def acknowledge(
        self,
        acknowledged: dict[int, Sequence[Acknowledged]],
        *,
        is_renew_ack: bool = False,
        epoch: int | None = None,
    ) -> acknowledge.ShareAcknowledgeResponse:
        """Send a ShareAcknowledge."""
        request = acknowledge.ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=is_renew_ack,
            topics=[
                acknowledge.AcknowledgeTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        acknowledge.AcknowledgePartition(
                            partition_index=number,
                            acknowledgement_batches=_batches(
                                acknowledge.AcknowledgementBatch, batches
                            ),
                        )
                        for number, batches in acknowledged.items()
                    ],
                )
            ],
        )
        response = cast(
            acknowledge.ShareAcknowledgeResponse,
            self.connection.ask(ApiKey.SHARE_ACKNOWLEDGE, VERSION, request),
        )
        if epoch is None and response.error_code == ErrorCode.NONE:
            self.epoch += 1
        return response

    def close(self) -> None:
        """Close the connection, without a word to the broker."""
        self.connection.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _batches(kind: type, acknowledged: Sequence[Acknowledged]) -> list:
    return [
        kind(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in acknowledged
    ]


def acquired(response: fetch.ShareFetchResponse) -> dict[int, list[tuple[int, int, int]]]:
    """Return what a member got: first and last offset and delivery count, by partition."""
    return {
        each.partition_index: [
            (piece.first_offset, piece.last_offset, piece.delivery_count)
            for piece in each.acquired_records
        ]
        for topic in response.responses
        for each in topic.partitions
        if each.acquired_records
    }


def errors(
    response: fetch.ShareFetchResponse | acknowledge.ShareAcknowledgeResponse,
) -> list[tuple[int, ...]]:
    """Return each partition with its code, and with that of its acknowledgements in a fetch."""
    if isinstance(response, fetch.ShareFetchResponse):
        return [
            (each.partition_index, each.error_code, each.acknowledge_error_code)
            for topic in response.responses
            for each in topic.partitions
        ]
    return [
        (each.partition_index, each.error_code)
        for topic in response.responses
        for each in topic.partitions
    ]
