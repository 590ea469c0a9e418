"""Validation of the epoch and the leader that a message claims.

Any process that can connect may send a message with an epoch and a leader. If no correct node can
make the claim, the node refuses the message, ignores its other fields, and keeps running.

- An epoch has one leader. It need not be a voter by this node's log: the voters may have changed
  in records that this node does not have yet (KIP-853). But a voter that is alone, and knows that
  to be committed, has written every later record itself, so it believes no other node
  (`RaftState.is_stranger`).
- Epochs are numbers of 31 bits, and every election uses the next one. A node therefore accepts only
  epochs within `MAX_EPOCH_STEP` of its own, so that one forged message cannot exhaust the numbers.
  A node that missed `MAX_EPOCH_STEP` elections (194 days at one per second) must be formatted anew.
"""

from broker.raft.config import RaftConfig
from broker.raft.quorum_state import MAX_EPOCH, NO_NODE, QuorumState
from common.kafka.errors import ErrorCode

MAX_EPOCH_STEP = 2**24


def check_claim(
    config: RaftConfig, quorum: QuorumState, epoch: int, leader_id: int, *, needs_leader: bool
) -> ErrorCode:
    """Return the error for a claim about this or a later epoch; NONE if the claim is possible.

    With `needs_leader`, the sender claims to be or to have been the leader of the epoch, so
    `leader_id` must be another node.
    """
    if epoch > min(quorum.leader_epoch + MAX_EPOCH_STEP, MAX_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if leader_id < NO_NODE or (needs_leader and leader_id in (NO_NODE, config.node_id)):
        return ErrorCode.INVALID_REQUEST
    is_known = epoch == quorum.leader_epoch and quorum.has_leader
    if is_known and leader_id not in (NO_NODE, quorum.leader_id):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
