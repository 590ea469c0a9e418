"""What the mirror takes for an answer of a cluster, and what not."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation

from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConnectException
from mirror.cluster import MirrorCluster
from tests.lib.lost_leader import LostLeader


def test_an_end_that_a_lost_leader_did_not_tell_is_an_error() -> None:
    cluster: Any = MirrorCluster("b", {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
    cluster._admin = LostLeader()
    for ask in (cluster.end_offsets, cluster.start_offsets):
        with pytest.raises(ConnectException, match=r"cluster b: orders: .*lost before it told"):
            ask([TopicPartition("orders", 0)])


class Answered:
    """A future with a result."""

    def __init__(self, result: object) -> None:
        self._result = result

    def result(self, timeout: float) -> object:
        del timeout
        return self._result


class WithoutAcls:
    """An admin client as librdkafka has it: no rules, and the operations that a user may do."""

    def __init__(self, allowed: list[AclOperation] | None) -> None:
        self._allowed = allowed

    def describe_acls(self, *_: object, **__: object) -> Answered:
        return Answered([])

    def describe_cluster(self, **_: object) -> Answered:
        return Answered(SimpleNamespace(authorized_operations=self._allowed))


@pytest.mark.parametrize("allowed", [None, [AclOperation.CREATE]])
def test_rules_that_a_user_may_not_see_are_an_error(allowed: list[AclOperation] | None) -> None:
    """librdkafka shows the refusal as an empty list."""
    cluster: Any = MirrorCluster("a", {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
    cluster._admin = WithoutAcls(allowed)
    with pytest.raises(ConnectException, match=r"cluster a: .*not authorized to DESCRIBE"):
        cluster.acls()


def test_a_cluster_without_rules_has_none() -> None:
    cluster: Any = MirrorCluster("a", {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, 1)
    cluster._admin = WithoutAcls([AclOperation.DESCRIBE])
    assert cluster.acls() == []
