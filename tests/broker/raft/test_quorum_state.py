"""The file `quorum-state`, byte for byte as Kafka writes it."""

import pytest

from broker.raft.quorum_state import (
    DamagedQuorumState,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)

VERSION_1 = (
    b'{"leaderId":-1,"leaderEpoch":7,"votedId":2,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
)
VERSION_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)


def test_version_1_is_written_as_kafka_does():
    state = QuorumState(leader_epoch=7, voted_id=2, voted_directory_id=bytes(15) + b"\x01")
    assert encode_quorum_state(state) == VERSION_1
    assert decode_quorum_state(VERSION_1) == state


def test_version_0_is_read():
    assert decode_quorum_state(VERSION_0) == QuorumState(leader_epoch=3, leader_id=1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        VERSION_1.replace(b":1}", b":2}"),
        VERSION_1.replace(b"7", b'"x"'),
        VERSION_1.replace(b"7", b"2147483647"),
        VERSION_1.replace(b"-1", b"-2"),
        VERSION_1.replace(b":2,", b":2147483648,"),
        VERSION_1.replace(b"AAQ", b"A"),
        b"\xff\xfe",
    ],
)
def test_anything_else_is_refused_because_a_forgotten_vote_is_a_second_vote(data):
    with pytest.raises(DamagedQuorumState):
        decode_quorum_state(data)
