"""What the mirror takes for an answer of a cluster, and what not."""

from typing import Any

import pytest

from millrace.connect.connectors import TopicPartition
from millrace.connect.errors import ConnectException
from mirror.cluster import MirrorCluster
from tests.lib.lost_leader import LostLeader


def test_an_end_that_a_lost_leader_did_not_tell_is_an_error() -> None:
    cluster: Any = MirrorCluster("b", {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
    cluster._admin = LostLeader()
    for ask in (cluster.end_offsets, cluster.start_offsets):
        with pytest.raises(ConnectException, match=r"cluster b: orders: .*lost before it told"):
            ask([TopicPartition("orders", 0)])
