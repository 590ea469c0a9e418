"""The state that a node must never forget: epoch, vote and leader, Kafka's file `quorum-state`.

The file is one line of JSON, data version 1 (KIP-853):

    {"leaderId":1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAA...","data_version":1}

The decoder also reads version 0. Within an epoch, the vote and the leader are set at most once:
they change only together with the epoch.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

from common.kafka.protocol.wire import ZERO_UUID

NO_NODE = -1
FILE_NAME = "quorum-state"
DATA_VERSION = 1
MAX_EPOCH = 2**31 - 2
"""The largest epoch: one less than 31 bits hold, so that a count of epochs also fits."""

MAX_NODE_ID = 2**31 - 1


class DamagedQuorumState(Exception):  # noqa: N818 - a storage failure, named like CorruptBatch
    """The file exists but cannot be read. A node without its vote could vote twice in an epoch."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Epoch, leader and vote. A new node begins in epoch 0, with neither vote nor leader."""

    leader_epoch: int = 0
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    voted_directory_id: bytes = ZERO_UUID

    @property
    def has_leader(self) -> bool:
        """True if the leader of this epoch is known; it may be this node."""
        return self.leader_id != NO_NODE

    @property
    def has_voted(self) -> bool:
        """True if this node has voted in this epoch, perhaps for itself."""
        return self.voted_id != NO_NODE


def encode_quorum_state(state: QuorumState) -> bytes:
    """Return the file's content."""
    voted_directory_id = urlsafe_b64encode(state.voted_directory_id).rstrip(b"=").decode()
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": voted_directory_id,
        "data_version": DATA_VERSION,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_quorum_state(data: bytes) -> QuorumState:
    """Return the state that the file's content holds; raise DamagedQuorumState."""
    try:
        fields = json.loads(data)
        if fields["data_version"] not in (0, DATA_VERSION):
            raise ValueError(f"data_version {fields['data_version']}")
        voted_directory_id = ZERO_UUID
        if "votedDirectoryId" in fields:
            voted_directory_id = urlsafe_b64decode(fields["votedDirectoryId"] + "==")
            if len(voted_directory_id) != len(ZERO_UUID):
                raise ValueError(f"votedDirectoryId {fields['votedDirectoryId']}")
        return QuorumState(
            leader_epoch=_within(fields, "leaderEpoch", 0, MAX_EPOCH),
            leader_id=_within(fields, "leaderId", NO_NODE, MAX_NODE_ID),
            voted_id=_within(fields, "votedId", NO_NODE, MAX_NODE_ID),
            voted_directory_id=voted_directory_id,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedQuorumState(f"{FILE_NAME} cannot be read: {error!r}") from error


def _within(fields: dict[str, object], name: str, lowest: int, highest: int) -> int:
    number = fields[name]
    if not isinstance(number, int) or not lowest <= number <= highest:
        raise ValueError(f"{name} {number!r}")
    return number
