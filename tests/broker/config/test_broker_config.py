"""Settings as typed values: defaults, limits, listeners."""

import pytest

from broker.config.broker_config import BrokerConfig, Endpoint
from broker.errors import ErrorCode, KafkaError


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_settings(
        {name.replace("_", "."): value for name, value in settings.items()}
    )


def test_the_defaults_make_one_node_on_loopback() -> None:
    built = config()
    assert built.node_id == 1
    assert built.listeners == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert built.advertised_listeners == built.listeners
    assert built.partition_count == 1
    assert built.auto_create_topics
    assert built.group.group_initial_rebalance_delay_ms == 3000
    assert built.offsets_partition_count == 50


def test_a_combined_kafka_configuration_is_understood() -> None:
    built = config(
        process_roles="broker,controller",
        node_id="3",
        listeners="PLAINTEXT://:19092,CONTROLLER://:19093",
        advertised_listeners="PLAINTEXT://shop.example:19092",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        log_dirs="/a,/b",
        log_retention_hours="2",
    )
    assert built.node_id == 3
    assert built.listeners == (Endpoint("PLAINTEXT", "", 19092),)
    assert built.advertised_listeners == (Endpoint("PLAINTEXT", "shop.example", 19092),)
    assert built.log_dirs == ("/a", "/b")
    assert built.log.retention_ms == 2 * 3_600_000


def test_log_dirs_wins_over_log_dir() -> None:
    assert config(log_dir="/a").log_dirs == ("/a",)
    assert config(log_dir="/a", log_dirs="/b").log_dirs == ("/b",)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_partitions": "0"},
        {"num_partitions": "many"},
        {"num_partitions": "2147483648"},
        {"auto_create_topics_enable": "yes"},
        {"listeners": "PLAINTEXT//x:1"},
        {"listeners": "PLAINTEXT://x:70000"},
        {"listeners": "SSL://x:1"},
        {"listeners": "CONTROLLER://x:1"},
        {"listeners": "PLAINTEXT://x:1,PLAINTEXT://x:2"},
        {"listeners": "EXTERNAL://x:1"},
        {"advertised_listeners": "PLAINTEXT://0.0.0.0:1"},
        {"authorizer_class_name": "org.example.Authorizer"},
        {"log_dirs": "/a,/a"},
        {"node_id": "-1"},
        {"group_min_session_timeout_ms": "10", "group_max_session_timeout_ms": "5"},
        {"log_cleanup_policy": "shred"},
    ],
)
def test_a_bad_value_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(KafkaError) as refused:
        config(**settings)
    assert refused.value.code == ErrorCode.INVALID_CONFIG
