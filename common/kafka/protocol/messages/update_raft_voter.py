"""UpdateRaftVoter (key 82), version 0: a voter's endpoints and versions, for the leader (KIP-853).

Controllers send it among themselves. With kraft.version 0 it is how the leader learns the directory
ids of the voters, which an upgrade to kraft.version 1 needs.
"""

from common.kafka.protocol.message import (
    Message,
    Struct,
    array,
    int16,
    int32,
    nested,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class CurrentLeader(Struct):
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


class UpdateRaftVoterRequest(Message, api_key=82, versions="0", flexible="0+"):
    cluster_id: str | None = string(nullable="0+", default=None)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


class UpdateRaftVoterResponse(Message, api_key=82, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = nested(CurrentLeader, tag=0)
