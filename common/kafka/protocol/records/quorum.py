"""The values of control records in the metadata log, which Raft itself writes.

`api_key` is the type of the control record: a new leader's first record, `LeaderChangeMessage`
(KIP-595), the header and footer of a snapshot (KIP-630), and the voters (KIP-853). Each repeats its
version as a field.
"""

from common.kafka.protocol.message import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
    uuid,
)


class Voter(Struct):
    voter_id: int = int32()
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message, api_key=2, versions="0-1", flexible="0+"):
    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)


class SnapshotHeaderRecord(Message, api_key=3, versions="0", flexible="0+"):
    version: int = int16()
    last_contained_log_timestamp: int = int64()


class SnapshotFooterRecord(Message, api_key=4, versions="0", flexible="0+"):
    version: int = int16()


class KRaftVersionRecord(Message, api_key=5, versions="0", flexible="0+"):
    version: int = int16()
    k_raft_version: int = int16()


class VoterEndpoint(Struct):
    name: str = string()
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class VotersRecordVoter(Struct):
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[VoterEndpoint] = array(VoterEndpoint)
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


class VotersRecord(Message, api_key=6, versions="0", flexible="0+"):
    version: int = int16()
    voters: list[VotersRecordVoter] = array(VotersRecordVoter)
