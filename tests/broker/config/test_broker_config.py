"""Settings as typed values: defaults, limits, listeners."""

import pytest

from broker.config.broker_config import BrokerConfig, Endpoint, Voter
from broker.config.internal_topics import InternalTopic
from common.kafka.errors import ErrorCode, KafkaError


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
    assert built.internal_topics["__consumer_offsets"].partition_count == 50
    assert built.internal_topics["__transaction_state"].partition_count == 50


def test_an_empty_group_waits_a_moment_for_more_members_even_with_a_delay_of_zero() -> None:
    for given, waits_ms in (("0", 60), ("59", 60), ("61", 61)):
        built = config(group_initial_rebalance_delay_ms=given)
        assert built.group.group_initial_rebalance_delay_ms == waits_ms


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


def test_brokers_speak_to_each_other_by_a_listener_of_their_own() -> None:
    protocols = "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT"
    both = {
        "listeners": "BETWEEN://x:1,PLAINTEXT://x:2",
        "listener_security_protocol_map": protocols,
    }
    assert config(**both).replication.listener_name == "PLAINTEXT"
    named = config(**both, inter_broker_listener_name="BETWEEN")
    assert named.replication.listener_name == "BETWEEN"


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
        {"inter_broker_listener_name": "NOSUCH"},
        {"authorizer_class_name": "org.example.Authorizer"},
        {"transaction_two_phase_commit_enable": "true"},
        {"principal_builder_class": "org.example.Builder"},
        {"max_connection_creation_rate": "-1"},
        {"max_connections_per_ip_overrides": "127.0.0.1"},
        {"max_connections_per_ip_overrides": "some.host:5"},
        {"max_connections_per_ip_overrides": "127.0.0.1:many"},
        {"client_quota_callback_class": "org.example.Quotas"},
        {"create_topic_policy_class_name": "org.example.Policy"},
        {"alter_config_policy_class_name": "org.example.Policy"},
        {"queued_max_request_bytes": "1048576"},
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


def test_what_is_not_built_may_be_given_with_its_default() -> None:
    config(queued_max_request_bytes="-1")


def test_connections_are_limited_for_the_broker_its_listeners_and_some_addresses() -> None:
    given = {
        "listeners": "PLAINTEXT://x:1,BETWEEN://x:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT",
        "max.connections": "100",
        "listener.name.between.max.connections": "7",
        "max.connections.per.ip": "5",
        "max.connections.per.ip.overrides": "127.0.0.1:50, [::1]:60",
        "max.connection.creation.rate": "20",
        "listener.name.between.max.connection.creation.rate": "3",
    }
    quotas = BrokerConfig.from_settings(given).quotas
    limits = quotas.connections
    assert (limits.max_connections, limits.listeners) == (100, {"BETWEEN": 7})
    hosts = ("127.0.0.1", "::1", "10.0.0.1")
    assert [limits.of_address(host) for host in hosts] == [50, 60, 5]
    assert quotas.creation_rates == {"": 20, "PLAINTEXT": 2**31 - 1, "BETWEEN": 3}


def test_one_node_alone_has_both_roles_and_opens_no_controller_port() -> None:
    built = config()
    assert built.is_broker
    assert built.is_controller
    assert built.voters == ()
    assert built.controller_listeners == ()
    assert built.quorum.detects_failures_fast
    assert built.metadata_log_dir == built.log_dirs[0]


def test_three_combined_nodes() -> None:
    built = config(
        node_id="2",
        listeners="PLAINTEXT://:19092,CONTROLLER://127.0.0.1:19093",
        controller_quorum_voters="2@b:19093, 1@a:19093,3@[::1]:19093",
    )
    assert built.voters == (Voter(1, "a", 19093), Voter(2, "b", 19093), Voter(3, "::1", 19093))
    assert built.controller_listeners == (Endpoint("CONTROLLER", "127.0.0.1", 19093),)
    assert built.listeners == (Endpoint("PLAINTEXT", "", 19092),)


def test_a_controller_of_its_own_has_no_client_listener() -> None:
    built = config(process_roles="controller", listeners="CONTROLLER://:19093")
    assert not built.is_broker
    assert built.listeners == built.advertised_listeners == ()


def test_a_broker_of_its_own_follows_the_voters_or_asks_for_them() -> None:
    voters = {"process_roles": "broker", "controller_quorum_voters": "9@a:19093"}
    assert config(**voters).voters == (Voter(9, "a", 19093),)
    asks = config(process_roles="broker", controller_quorum_bootstrap_servers="a:1,b:2")
    assert asks.bootstrap_servers == (("a", 1), ("b", 2))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"process_roles": "zookeeper"}, "must be broker, controller or both"),
        ({"process_roles": "broker,broker"}, "must be broker, controller or both"),
        ({"process_roles": "broker"}, "there is no controller to follow"),
        ({"controller_quorum_voters": "2@a:1"}, "must be one of the voters"),
        ({"controller_quorum_voters": "1@a:1,1@b:1"}, "a voter is named twice"),
        ({"controller_quorum_voters": "a:1"}, "expected id@host:port"),
        ({"controller_quorum_voters": "1@0.0.0.0:1"}, "that others can reach"),
        (
            {"process_roles": "broker", "controller_quorum_voters": "1@a:1"},
            "must not be one of the voters",
        ),
        ({"process_roles": "controller"}, "only controller listeners"),
        (
            {
                "process_roles": "broker",
                "controller_quorum_voters": "9@a:1",
                "listeners": "PLAINTEXT://:1,CONTROLLER://:2",
            },
            "must not name a controller listener",
        ),
        ({"controller_quorum_bootstrap_servers": "a"}, "expected host:port"),
    ],
)
def test_a_role_without_what_it_needs_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(KafkaError, match=says) as refused:
        config(**settings)
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_leaderships_are_given_back_as_often_as_is_configured() -> None:
    interval = {"leader.imbalance.check.interval.seconds": "7"}
    off = {**interval, "auto.leader.rebalance.enable": "false"}
    read = [BrokerConfig.from_settings(given).quorum for given in ({}, interval, off)]
    assert [each.leader_imbalance_check_interval_ms for each in read] == [300_000, 7_000, 0]


def test_the_offsets_topic_has_as_many_replicas_as_is_configured() -> None:
    def topic(**settings: str) -> InternalTopic:
        return config(**settings).internal_topics["__consumer_offsets"]

    assert topic().replication_factor == 3
    assert topic(offsets_topic_replication_factor="2").replication_factor == 2


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({}, [1, 2, 3, 3]),
        ({"controller_quorum_voters": "1@a:1", "listeners": "PLAINTEXT://:1,CONTROLLER://:2"},
         [1, 2, 3, 3]),
        ({"offsets_topic_replication_factor": "3"}, [3, 3, 3, 3]),
        ({"controller_quorum_voters": "1@a:1,2@b:1,3@c:1",
          "listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, [3, 3, 3, 3]),
        ({"process_roles": "broker", "controller_quorum_voters": "9@a:1"}, [3, 3, 3, 3]),
        ({"process_roles": "broker", "controller_quorum_bootstrap_servers": "a:1"}, [3, 3, 3, 3]),
    ],
)  # fmt: skip
def test_only_a_node_that_is_alone_makes_internal_topics_with_fewer_replicas(
    settings: dict[str, str], factors: list[int]
) -> None:
    topic = config(**settings).internal_topics["__consumer_offsets"]
    assert [topic.on(count).replication_factor for count in (1, 2, 3, 5)] == factors


def test_fewer_replicas_ask_for_fewer_in_sync() -> None:
    topic = config().internal_topics["__transaction_state"]
    assert topic.settings["min.insync.replicas"] == "2"
    assert topic.on(1).settings["min.insync.replicas"] == "1"
    assert topic.on(2).settings["min.insync.replicas"] == "2"


def test_the_topic_of_share_state_is_made_as_is_configured() -> None:
    given = config(
        share_coordinator_state_topic_num_partitions="7",
        share_coordinator_state_topic_min_isr="1",
        share_coordinator_snapshot_update_records_per_snapshot="3",
    )
    topic = given.internal_topics["__share_group_state"]
    assert (topic.partition_count, topic.replication_factor) == (7, 3)
    assert topic.settings == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
    assert given.share_state.updates_per_snapshot == 3


def test_a_snapshot_of_share_state_follows_500_updates_at_the_latest() -> None:
    with pytest.raises(KafkaError, match="at most 500"):
        config(share_coordinator_snapshot_update_records_per_snapshot="501")


def test_the_topic_of_transactions_is_made_as_is_configured() -> None:
    given = config(
        transaction_state_log_replication_factor="3",
        transaction_state_log_min_isr="2",
        transaction_state_log_num_partitions="7",
    )
    topic = given.internal_topics["__transaction_state"]
    assert (topic.partition_count, topic.replication_factor) == (7, 3)
    assert topic.settings["min.insync.replicas"] == "2"
    assert topic.settings["unclean.leader.election.enable"] == "false"
