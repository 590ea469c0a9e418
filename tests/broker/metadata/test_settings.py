"""Settings, quotas, feature levels and producer ids: what may be changed, and to what."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.metadata.control.producer_ids import BLOCK_SIZE
from broker.metadata.control.settings import quotas
from broker.metadata.control.settings.operations import APPEND, DELETE, SET, SUBTRACT
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from common.kafka.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from common.kafka.protocol.messages.alter_configs import AlterConfigsRequest
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
)
from common.kafka.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from common.kafka.protocol.records.metadata import FeatureLevelRecord, ProducerIdsRecord
from tests.lib.controlled_cluster import ControlledCluster

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
ELR = "eligible.leader.replicas.version"


def operate(
    cluster: ControlledCluster, kind: int, name: str, *operations: tuple[Any, ...], **more: Any
) -> int:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], **more)
    return int(cluster.ask(request).responses[0].error_code)


def replace(cluster: ControlledCluster, kind: int, name: str, settings: dict[str, Any]) -> int:
    configs = [ReplacedConfig(name=key, value=value) for key, value in settings.items()]
    resource = ReplacedResource(resource_type=kind, resource_name=name, configs=configs)
    return int(cluster.ask(AlterConfigsRequest(resources=[resource])).responses[0].error_code)


def with_topic(**config: Any) -> ControlledCluster:
    cluster = ControlledCluster(1, **config)
    cluster.create("orders")
    return cluster


def test_operations_change_what_they_name_and_the_old_request_replaces_all() -> None:
    cluster = with_topic()
    settings = cluster.image.configs.settings_of
    assert operate(cluster, TOPIC, "orders", ("retention.ms", SET, "5")) == 0
    assert operate(cluster, TOPIC, "orders", ("cleanup.policy", APPEND, "compact")) == 0
    expected = {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert settings(TOPIC, "orders") == expected
    assert operate(cluster, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert settings(TOPIC, "orders")["cleanup.policy"] == "compact"
    assert operate(cluster, TOPIC, "orders", ("retention.ms", DELETE, None)) == 0
    assert settings(TOPIC, "orders") == {"cleanup.policy": "compact"}
    assert replace(cluster, TOPIC, "orders", {"segment.ms": "7"}) == 0
    assert settings(TOPIC, "orders") == {"segment.ms": "7"}
    before = len(cluster.log)
    assert replace(cluster, TOPIC, "orders", {"segment.ms": "7"}) == 0
    assert len(cluster.log) == before


def test_validating_only_changes_nothing() -> None:
    cluster = with_topic()
    before = len(cluster.log)
    operation = ("retention.ms", SET, "5")
    assert operate(cluster, TOPIC, "orders", operation, validate_only=True) == 0
    assert len(cluster.log) == before


@pytest.mark.parametrize(
    ("kind", "name", "operations", "code"),
    [
        (TOPIC, "none", [("retention.ms", SET, "5")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", [("retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a/b", [("retention.ms", SET, "5")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "orders", [("retention.weeks", SET, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", [("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", [("segment.ms", SET, "5")] * 2, ErrorCode.INVALID_REQUEST),
        (BROKER, "seven", [("a", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "-1", [("a", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "9" * 5000, [("a", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "7", [("a", SET, "5")], ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "1", [("a", SET, "5")], ErrorCode.NONE),
        (BROKER, "", [("a", SET, "5")], ErrorCode.NONE),
        (BROKER, "", [("bad", SET, "5")], ErrorCode.INVALID_CONFIG),
        (LOGGER, "1", [("a", SET, "5")], ErrorCode.INVALID_REQUEST),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "45000")], ErrorCode.NONE),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "0")], ErrorCode.INVALID_CONFIG),
        (GROUP, "g", [("a", SET, "5")], ErrorCode.INVALID_CONFIG),
        (GROUP, "", [("consumer.session.timeout.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (METRICS, "m", [("interval.ms", SET, "1000")], ErrorCode.NONE),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "70000")], ErrorCode.INVALID_CONFIG),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        (METRICS, "m", [("interval.ms", SET, "10")], ErrorCode.INVALID_REQUEST),
        (METRICS, "m", [("interval.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        (METRICS, "m", [("a", SET, "10")], ErrorCode.INVALID_REQUEST),
        (77, "x", [("a", SET, "10")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_settings_of_each_kind_of_resource(
    kind: int, name: str, operations: Any, code: ErrorCode
) -> None:
    def validate(settings: Mapping[str, str], *, is_for_all: bool) -> None:
        if "bad" in settings:
            raise KafkaError(ErrorCode.INVALID_CONFIG)

    cluster = with_topic(validate_broker_settings=validate)
    before = len(cluster.log)
    assert operate(cluster, kind, name, *operations) == code
    assert (len(cluster.log) > before) == (code == ErrorCode.NONE)


def test_a_broker_setting_is_written_also_when_it_is_the_same() -> None:
    cluster = with_topic(broker_list_default=lambda name: "" if name == "a.list" else None)
    operate(cluster, BROKER, "1", ("a", SET, "5"))
    before = len(cluster.log)
    operate(cluster, BROKER, "1", ("a", SET, "5"))
    assert len(cluster.log) == before + 1
    assert operate(cluster, BROKER, "1", ("a.list", APPEND, "x")) == 0
    assert operate(cluster, BROKER, "1", ("a", APPEND, "x")) == ErrorCode.INVALID_CONFIG


def test_a_resource_that_is_named_twice_is_refused() -> None:
    cluster = with_topic()
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders")
    answers = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource] * 2)).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2


def test_the_old_request_refuses_nulls_and_repeated_names() -> None:
    cluster = with_topic()
    assert replace(cluster, TOPIC, "orders", {"segment.ms": None}) == ErrorCode.INVALID_REQUEST
    config = ReplacedConfig(name="segment.ms", value="7")
    resource = ReplacedResource(
        resource_type=TOPIC, resource_name="orders", configs=[config, config]
    )
    answer = cluster.ask(AlterConfigsRequest(resources=[resource])).responses[0]
    assert answer.error_code == ErrorCode.INVALID_REQUEST


# --- quotas ---

Entity = dict[str, str | None]


def alter_quotas(cluster: ControlledCluster, *entries: tuple[Entity, dict[str, Any]]) -> list[int]:
    """A value of None takes a quota away."""
    request = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name) for kind, name in of.items()
                ],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in wanted.items()
                ],
            )
            for of, wanted in entries
        ]
    )
    return [answer.error_code for answer in cluster.ask(request).entries]


def describe_quotas(
    cluster: ControlledCluster, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    answer = cluster.ask(request)
    if answer.error_code:
        return answer.error_code
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]


@pytest.mark.parametrize("key", [*quotas.USER_AND_CLIENT_QUOTAS, *quotas.IP_QUOTAS])
def test_every_quota_can_be_set_and_taken_away(key: str) -> None:
    cluster = ControlledCluster()
    entity = {"ip" if key in quotas.IP_QUOTAS else "user": None}
    assert alter_quotas(cluster, (entity, {key: 20_000.0})) == [0]
    assert describe_quotas(cluster) == [(entity, {key: 20_000.0})]
    assert alter_quotas(cluster, (entity, {key: None})) == [0]
    assert describe_quotas(cluster) == []


def test_quotas_are_set_found_and_taken_away() -> None:
    cluster = ControlledCluster()
    ann: tuple[Entity, dict[str, Any]] = ({"user": "ann"}, {"producer_byte_rate": 100.0})
    anyone: tuple[Entity, dict[str, Any]] = ({"user": None}, {"request_percentage": 0.5})
    pair: tuple[Entity, dict[str, Any]] = (
        {"client-id": "app", "user": "ann"},
        {"consumer_byte_rate": 5.0},
    )
    assert alter_quotas(cluster, ann, anyone, pair) == [0, 0, 0]
    assert describe_quotas(cluster) == [ann, anyone, pair]
    assert describe_quotas(cluster, ("user", 0, "ann")) == [ann, pair]
    assert describe_quotas(cluster, ("user", 0, "ann"), strict=True) == [ann]
    assert describe_quotas(cluster, ("user", 1, None)) == [anyone]
    assert describe_quotas(cluster, ("user", 2, None), ("client-id", 0, "app")) == [pair]
    before = len(cluster.log)
    assert alter_quotas(cluster, ann) == [0]
    assert len(cluster.log) == before
    assert alter_quotas(cluster, ({"user": "ann"}, {"producer_byte_rate": None})) == [0]
    assert describe_quotas(cluster) == [anyone, pair]


@pytest.mark.parametrize(
    ("entity", "wanted"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"group": "g"}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"user": "a"}, {"unknown": 1.0}),
        ({"user": "a"}, {"producer_byte_rate": 0.0}),
        ({"user": "a"}, {"producer_byte_rate": float("nan")}),
        ({"user": "a"}, {"producer_byte_rate": 1.5}),
        ({"user": "a"}, {"producer_byte_rate": float("inf")}),
        ({"user": "a"}, {"connection_creation_rate": 1.0}),
        ({"ip": "1.2.3.4"}, {"producer_byte_rate": 1.0}),
        ({"ip": "1.2.3.4"}, {"connection_creation_rate": 2.0**31}),
        ({"ip": "1.2.3"}, {"connection_creation_rate": 1.0}),
        ({"ip": "1.2.3.4", "user": "a"}, {"connection_creation_rate": 1.0}),
    ],
)
def test_quotas_that_cannot_be_are_refused(entity: Entity, wanted: dict[str, Any]) -> None:
    cluster = ControlledCluster()
    assert alter_quotas(cluster, (entity, wanted)) == [ErrorCode.INVALID_REQUEST]
    assert cluster.image.client_quotas == {}


def test_an_address_and_any_address_may_be_limited() -> None:
    cluster = ControlledCluster()
    limit = {"connection_creation_rate": 7.0}
    assert alter_quotas(cluster, ({"ip": "::1"}, limit), ({"ip": None}, limit)) == [0, 0]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("group", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense_are_refused(components: Any, code: ErrorCode) -> None:
    assert describe_quotas(ControlledCluster(), *components) == code


# --- features ---


def update(cluster: ControlledCluster, name: str, level: int, kind: int = 1, **more: Any) -> int:
    key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return int(cluster.ask(UpdateFeaturesRequest(feature_updates=[key], **more)).error_code)


def test_a_new_cluster_finalizes_its_levels_once() -> None:
    cluster = ControlledCluster()
    assert cluster.image.features == {"metadata.version": 30}
    before = len(cluster.log)
    cluster.elect_controller()
    assert len(cluster.log) == before


def test_levels_that_apache_kafka_has_finalized_are_kept() -> None:
    cluster = ControlledCluster()
    levels = {"share.version": 1, "streams.version": 1, ELR: 1}
    cluster.commit([FeatureLevelRecord(name=name, feature_level=levels[name]) for name in levels])
    cluster.elect_controller()
    assert cluster.image.features == {"metadata.version": 30, **levels}
    cluster.start(1)


def test_levels_are_raised_and_lowered() -> None:
    cluster = ControlledCluster(1)
    assert update(cluster, ELR, 1, validate_only=True) == 0
    assert ELR not in cluster.image.features
    assert update(cluster, ELR, 1) == 0
    assert cluster.image.features[ELR] == 1
    assert update(cluster, ELR, 0) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ELR, 0, 2) == 0
    assert ELR not in cluster.image.features


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (ELR, 2, 1),
        (ELR, -1, 1),
        (ELR, 1, 2),
        (ELR, 1, 9),
        ("metadata.version", 29, 2),
        ("metadata.version", 31, 1),
        ("transaction.version", 3, 1),
        ("unknown", 1, 1),
    ],
)
def test_a_level_that_cannot_be_is_refused(name: str, level: int, kind: int) -> None:
    cluster = ControlledCluster(1)
    before = len(cluster.log)
    assert update(cluster, name, level, kind) == ErrorCode.INVALID_UPDATE_VERSION
    assert len(cluster.log) == before


def test_a_level_must_be_supported_by_every_broker_that_registered() -> None:
    cluster = ControlledCluster(1)
    features = cluster.broker(1).features
    features[ELR] = (0, 0)
    assert update(cluster, ELR, 1) == ErrorCode.INVALID_UPDATE_VERSION


def test_a_level_is_raised_when_every_voter_has_said_that_it_can() -> None:
    cluster = ControlledCluster(1, node_id=1, voters=lambda: (1, 2))
    assert update(cluster, ELR, 1) == ErrorCode.INVALID_UPDATE_VERSION
    request = ControllerRegistrationRequest(controller_id=2)
    for highest, code in ((0, ErrorCode.INVALID_UPDATE_VERSION), (1, ErrorCode.NONE)):
        request.features = [
            Feature(name=ELR, min_supported_version=0, max_supported_version=highest)
        ]
        assert cluster.ask(request).error_code == 0
        assert update(cluster, ELR, 1) == code


# --- producer ids ---


def test_producer_ids_are_given_out_once_across_restarts() -> None:
    cluster = ControlledCluster(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.broker(1).epoch)
    first = cluster.ask(request)
    assert (first.producer_id_start, first.producer_id_len) == (0, BLOCK_SIZE)
    cluster.elect_controller()
    assert cluster.ask(request).producer_id_start == BLOCK_SIZE
    assert cluster.replayed().producer_ids.next_producer_id == 2 * BLOCK_SIZE


def test_producer_ids_are_for_registered_brokers_and_end() -> None:
    cluster = ControlledCluster(1)
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1)
    assert cluster.ask(stale).error_code == ErrorCode.STALE_BROKER_EPOCH
    cluster.commit([ProducerIdsRecord(next_producer_id=2**63 - BLOCK_SIZE)])
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.broker(1).epoch)
    assert cluster.ask(request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
