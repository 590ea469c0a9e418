"""Eligible leader replicas (KIP-966): who may lead when nobody is in sync."""

from typing import Any

import pytest

from broker.log.config import LogConfig
from broker.metadata.delta import Elections
from broker.metadata.parts.topics import RECOVERING
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from common.kafka.protocol.messages.alter_configs import AlterConfigsRequest
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.lib.controlled_cluster import ControlledCluster

ELR = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


def alter(
    cluster: ControlledCluster, kind: int, name: str, operation: int, value: str | None
) -> tuple[int, str | None]:
    config = AlterableConfig(name=MIN_ISR, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0]
    return answer.error_code, answer.error_message


def turn_on(cluster: ControlledCluster, **more: Any) -> None:
    update = FeatureUpdateKey(feature=ELR, max_version_level=1)
    assert cluster.ask(UpdateFeaturesRequest(feature_updates=[update], **more)).error_code == 0


def with_elr(*brokers: int) -> ControlledCluster:
    cluster = ControlledCluster(*brokers)
    turn_on(cluster)
    cluster.create("orders", list(brokers))
    assert alter(cluster, TOPIC, "orders", SET, "2")[0] == 0
    return cluster


def test_eligible_replicas_lead_when_nobody_is_in_sync() -> None:
    cluster = with_elr(1, 2, 3)
    for broker_id in (1, 2, 3):
        cluster.lose(broker_id)
    partition = cluster.partition("orders")
    assert (partition.isr, partition.elr, partition.leader) == ((), (2, 3), -1)
    cluster.heartbeat(1)
    assert cluster.partition("orders").leader == -1
    cluster.heartbeat(2)
    partition = cluster.partition("orders")
    assert (partition.isr, partition.elr, partition.leader) == ((2,), (3,), 2)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_broker_stays_eligible_only_after_a_clean_shutdown(is_clean: bool) -> None:
    cluster = with_elr(1, 2, 3)
    for broker_id in (1, 2, 3):
        cluster.lose(broker_id)
    previous = cluster.broker(2).epoch if is_clean else -1
    cluster.start(2, incarnation=2, previous_broker_epoch=previous)
    assert cluster.partition("orders").leader == (2 if is_clean else -1)
    assert cluster.partition("orders").elr == (3,)


def test_eligible_replicas_are_forgotten_when_fewer_need_be_in_sync() -> None:
    cluster = with_elr(1, 2, 3)
    cluster.lose(1)
    cluster.lose(2)
    assert (cluster.partition("orders").isr, cluster.partition("orders").elr) == ((3,), (2,))
    assert alter(cluster, TOPIC, "orders", SET, "1")[0] == 0
    assert (cluster.partition("orders").isr, cluster.partition("orders").elr) == ((3,), ())


def test_the_feature_is_not_lowered_while_a_partition_lives_by_it() -> None:
    cluster = with_elr(1)
    cluster.lose(1)
    assert cluster.partition("orders").elr == (1,)
    update = FeatureUpdateKey(
        feature="eligible.leader.replicas.version", max_version_level=0, upgrade_type=2
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    assert cluster.ask(request).error_code == ErrorCode.INVALID_UPDATE_VERSION
    cluster.heartbeat(1)
    assert cluster.ask(request).error_code == 0
    assert cluster.partition("orders").elr == ()


def test_the_only_replica_leads_again_after_it_was_killed() -> None:
    cluster = with_elr(1)
    cluster.tick(after_ms=20_000)
    for incarnation in (2, 3):
        cluster.start(1, incarnation)
        partition = cluster.partition("orders")
        assert (partition.leader, partition.isr) == (1, (1,))
        assert partition.leader_recovery_state == RECOVERING
        cluster.tick(after_ms=20_000)
        assert cluster.partition("orders").leader == -1


# --- how many must be in sync ---


def test_turning_it_on_leaves_one_number_for_the_cluster() -> None:
    cluster = ControlledCluster(1, 2, log=LogConfig(min_insync_replicas=2))
    settings_of = cluster.image.configs.settings_of
    for broker_id in ("1", "2"):
        assert alter(cluster, BROKER, broker_id, SET, "3") == (0, None)
    turn_on(cluster, validate_only=True)
    assert settings_of(BROKER, "1") == {MIN_ISR: "3"}
    turn_on(cluster)
    assert settings_of(BROKER, "") == {MIN_ISR: "2"}
    assert settings_of(BROKER, "1") == settings_of(BROKER, "2") == {}
    assert cluster.replayed() == cluster.image


def test_a_number_that_the_cluster_has_stays() -> None:
    cluster = ControlledCluster(1)
    assert alter(cluster, BROKER, "", SET, "3") == (0, None)
    turn_on(cluster)
    assert cluster.image.configs.settings_of(BROKER, "") == {MIN_ISR: "3"}
    before = len(cluster.log)
    turn_on(cluster)
    assert len(cluster.log) == before


def test_while_it_is_on_no_broker_has_a_number_of_its_own_and_the_cluster_keeps_one() -> None:
    cluster = with_elr(1)
    of_broker = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    of_cluster = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert alter(cluster, BROKER, "1", SET, "2") == (ErrorCode.INVALID_CONFIG, of_broker)
    assert alter(cluster, BROKER, "1", DELETE, None) == (ErrorCode.INVALID_CONFIG, of_broker)
    assert alter(cluster, BROKER, "", DELETE, None) == (ErrorCode.INVALID_CONFIG, of_cluster)
    others = [ReplacedConfig(name="log.retention.ms", value="5")]
    resource = ReplacedResource(resource_type=BROKER, resource_name="", configs=others)
    answer = cluster.ask(AlterConfigsRequest(resources=[resource])).responses[0]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_CONFIG, of_cluster)
    assert alter(cluster, BROKER, "", SET, "2") == (0, None)
    assert alter(cluster, TOPIC, "orders", DELETE, None) == (0, None)


def test_a_cluster_that_is_formatted_with_it_records_its_number() -> None:
    features = {"metadata.version": 30, ELR: 1}
    cluster = ControlledCluster(1, features_at_format=features)
    assert cluster.image.features == features
    assert cluster.image.configs.settings_of(BROKER, "") == {MIN_ISR: "1"}
    cluster.elect_controller()
    assert cluster.last_records == []


# --- what is counted ---


def test_elections_are_counted_by_what_was_known_of_the_new_leader() -> None:
    cluster = with_elr(1, 2, 3)
    cluster.take_delta()
    for broker_id in (1, 2, 3):
        cluster.lose(broker_id)
    assert cluster.take_delta().elections == Elections(all_count=2)
    cluster.start(3, incarnation=2, previous_broker_epoch=cluster.broker(3).epoch)
    assert cluster.take_delta().elections == Elections(all_count=1, eligible_count=1)
    alone = with_elr(1)
    alone.lose(1)
    alone.take_delta()
    alone.start(1, incarnation=2)
    assert alone.take_delta().elections == Elections(all_count=1, unclean_count=1)
