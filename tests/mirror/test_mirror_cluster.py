"""What the mirror takes for an answer of a cluster, and what not."""

from typing import Any

import pytest

from common.kafka.errors import ErrorCode, KafkaError
from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConfigException, ConnectException
from mirror.cluster import MirrorCluster

SETTINGS = {"bootstrap.servers": "127.0.0.1:1"}
SILENT = 0.2
ORDERS = TopicPartition("orders", 0)


def refusing(code: ErrorCode) -> Any:
    """Return a cluster whose every answer is this error."""
    cluster: Any = MirrorCluster("a", SETTINGS, SILENT)

    def asked(what: str, _: object) -> object:
        raise ConnectException(f"cluster a: {what}") from KafkaError(code)

    cluster._asked = asked
    return cluster


def test_a_cluster_that_does_not_answer_is_named() -> None:
    cluster = MirrorCluster("b", SETTINGS, SILENT)
    for ask in (cluster.topic_names, cluster.groups, lambda: cluster.end_offsets([ORDERS])):
        with pytest.raises(ConnectException, match=r"cluster b: .*127\.0\.0\.1:1"):
            ask()


def test_a_lost_leader_is_an_error_and_a_missing_topic_is_none() -> None:
    cluster: Any = MirrorCluster("b", SETTINGS, SILENT)
    cluster._asked = lambda *_: {ORDERS: KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)}
    for ask in (cluster.end_offsets, cluster.start_offsets):
        with pytest.raises(ConnectException, match="cluster b: orders: LEADER_NOT_AVAILABLE"):
            ask([ORDERS])
    cluster._asked = lambda *_: {ORDERS: KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    assert cluster.end_offsets([ORDERS]) == {}


def test_rules_that_a_user_may_not_see_are_an_error() -> None:
    with pytest.raises(ConnectException, match="cluster a: ACLs"):
        refusing(ErrorCode.CLUSTER_AUTHORIZATION_FAILED).acls()


def test_a_cluster_without_an_authorizer_has_no_rules() -> None:
    assert refusing(ErrorCode.SECURITY_DISABLED).acls() is None
    assert refusing(ErrorCode.TOPIC_ALREADY_EXISTS).create("orders", 1, 1, {}) is False


def test_settings_that_no_client_can_have_are_refused() -> None:
    with pytest.raises(ConfigException, match=r"sasl\.mechanism"):
        MirrorCluster("a", {**SETTINGS, "security.protocol": "SASL_PLAINTEXT"}, SILENT)
