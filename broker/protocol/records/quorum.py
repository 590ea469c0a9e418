"""Control records of the metadata log: values of the records that Raft itself writes.

`api_key` is the control record's type: a new leader's first record, `LeaderChangeMessage`
(KIP-595), and what opens and closes a snapshot (KIP-630). Each repeats its version as a field.
"""

from broker.protocol.message import Message, Struct, array, int16, int32, int64, uuid


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
