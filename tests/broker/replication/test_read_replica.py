"""The replica that a consumer is told to read from (KIP-392)."""

import pytest

from broker.metadata.image import PartitionImage
from broker.replication.leader import PartitionLeader
from broker.replication.read_replica import LEADER, preferred_read_replica
from tests.sim.replica_log import ReplicaLog

RACKS = {1: "north", 2: "south", 3: "south", 4: None}


def leader_with(positions: dict[int, int], isr=(1, 2, 3, 4)) -> PartitionLeader[str]:
    log = ReplicaLog()
    leader: PartitionLeader[str] = PartitionLeader(
        1, log, lambda broker: broker, min_insync_replicas=1, lag_time_max_ms=100
    )
    leader.lead(PartitionImage(0, (1, 2, 3, 4), isr, leader=1), 0)
    for _ in range(9):
        log.append_as_leader(0, 0)
    for replica, offset in positions.items():
        leader.note_fetch(replica, replica, offset, 2, 0)
    return leader


@pytest.mark.parametrize(
    ("rack", "offset", "chosen"),
    [
        ("", 3, LEADER),
        ("north", 3, LEADER),
        ("west", 3, LEADER),
        ("south", 3, 3),
        ("south", 8, 3),
        ("south", 9, LEADER),
        ("south", 1, LEADER),
    ],
)
def test_the_most_caught_up_replica_of_the_consumers_rack_is_chosen(rack, offset, chosen):
    leader = leader_with({2: 5, 3: 8, 4: 9})
    assert preferred_read_replica(leader, rack, offset, RACKS.get) == chosen


def test_a_replica_that_is_not_in_sync_is_not_chosen():
    leader = leader_with({2: 5, 3: 4}, isr=(1, 2))
    leader.isr.commit((1, 2))
    assert preferred_read_replica(leader, "south", 3, RACKS.get) == 2
