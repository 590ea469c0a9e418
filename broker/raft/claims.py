"""What a node believes of what another one says, so that no message can break the quorum's rules.

Whoever reaches the port can claim an epoch and a leader. A claim that no correct node makes is
refused, and nothing else in its message is looked at: it is neither obeyed nor the end of the node.

- Only a voter leads, and an epoch has one leader.
- Epochs are numbers of 31 bits and every election needs the next one. So an epoch is believed only
  a bounded step ahead of the own one: one forged message cannot use them up. A node that was away
  for `MAX_EPOCH_STEP` elections, 194 days of one a second, would have to be formatted anew.
"""

from broker.errors import ErrorCode
from broker.raft.config import RaftConfig
from broker.raft.quorum_state import MAX_EPOCH, NO_NODE, QuorumState

MAX_EPOCH_STEP = 2**24


def check_claim(
    config: RaftConfig, quorum: QuorumState, epoch: int, leader_id: int, *, needs_leader: bool
) -> ErrorCode:
    """Say why a claim about this or a later epoch cannot be believed, NONE when it can.

    With `needs_leader` it comes from somebody who says to lead, or to have led: another voter.
    """
    if epoch > min(quorum.leader_epoch + MAX_EPOCH_STEP, MAX_EPOCH):
        return ErrorCode.INVALID_REQUEST
    may_lead = config.other_voters if needs_leader else (NO_NODE, *config.voters)
    if leader_id not in may_lead:
        return ErrorCode.INCONSISTENT_VOTER_SET
    is_known = epoch == quorum.leader_epoch and quorum.has_leader
    if is_known and leader_id not in (NO_NODE, quorum.leader_id):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
