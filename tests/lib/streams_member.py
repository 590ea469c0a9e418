"""A member of a streams group that does as it is told; its requests are those of the protocol."""

from typing import Self

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from tests.lib.raw_kafka import RawConnection
from tests.lib.streams_group_scenario import as_task_ids, tasks_of, topology

GROUP = "counter"
ALL_TASKS = frozenset({("0", 0), ("0", 1), ("1", 0), ("1", 1)})


class StreamsMember:
    """A member of the group that does as it is told."""

    def __init__(self, bootstrap: str, member_id: str) -> None:
        self.connection = RawConnection(bootstrap)
        self.connection.find_coordinator(GROUP)
        self.member_id = member_id
        self.epoch = 0
        self.active: frozenset[tuple[str, int]] = frozenset()

    def beat(self, **changes: object) -> StreamsGroupHeartbeatResponse:
        is_joining = self.epoch == 0
        fields = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "active_tasks": as_task_ids(self.active),
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": self.member_id,
            "topology": topology() if is_joining else None,
            "rebalance_timeout_ms": 60_000 if is_joining else -1,
        }
        request = StreamsGroupHeartbeatRequest(**{**fields, **changes})
        answer = self.connection.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
        assert isinstance(answer, StreamsGroupHeartbeatResponse)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active = tasks_of(answer.active_tasks)
        return answer

    def commit(self, topic: str, partition: int, offset: int) -> None:
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        answer = self.connection.ask(ApiKey.OFFSET_COMMIT, 9, request)
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.socket.close()

    def leave(self) -> None:
        self.beat(member_epoch=-1)

    def has_all(self) -> bool:
        self.beat()
        return self.active == ALL_TASKS
