"""Settings that are changed while a node runs reach the parts that they are about."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.server.settings.config_entries import describe_topic
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import describe_configs, incremental_alter_configs
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.fuzz.in_process import InProcessNode, answer_to, combined_settings, in_process_node
from tests.fuzz.valid_requests import BROKER

BROKER_RESOURCE = 4


@pytest.fixture
def node() -> Iterator[InProcessNode]:
    with in_process_node() as node:
        ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        yield node


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(BROKER, frame, steps=300))


def alter(node: InProcessNode, name: str, value: str, broker: str = "") -> None:
    messages = incremental_alter_configs
    resource = messages.AlterConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=broker,
        configs=[messages.AlterableConfig(name=name, config_operation=0, value=value)],
    )
    answer = ask(node, messages.IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


def described(node: InProcessNode, name: str) -> Any:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name="1", configuration_keys=[name]
    )
    answer = ask(node, describe_configs.DescribeConfigsRequest(resources=[resource]), 4)
    (config,) = answer.results[0].configs
    return config


def test_groups_follow_their_intervals_of_assignment(node: InProcessNode) -> None:
    for kind in ("consumer", "share", "streams"):
        alter(node, f"group.{kind}.assignment.interval.ms", "7")
    broker = node.node._broker
    assert broker is not None
    assert broker.groups._shards
    for shard in broker.groups._shards.values():
        config = shard.state.config
        intervals = [
            each.assignment_interval_ms for each in (config.consumer, config.share, config.streams)
        ]
        assert intervals == [7, 7, 7]


def test_logs_follow_the_settings_of_producers(node: InProcessNode) -> None:
    alter(node, "producer.id.expiration.ms", "77")
    alter(node, "transaction.partition.verification.enable", "false")
    node.create_topic("later")
    ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    broker = node.node._broker
    assert broker is not None
    logs = [partition.log for partition in broker.partitions]
    assert any(log.topic_partition.topic == "later" for log in logs)
    assert {log.producers.expiration_ms for log in logs} == {77}
    assert {log.producers.requires_verification for log in logs} == {False}
    assert not broker.verifier._config.is_enabled


def test_what_does_nothing_is_shown_and_the_log_says_so_once(
    node: InProcessNode, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", logger="millstream.settings"):
        alter(node, "remote.log.reader.threads", "3")
        alter(node, "log.cleaner.threads", "2")
    assert [message for message in caplog.messages if "does nothing" in message] == [
        "the setting remote.log.reader.threads is taken and does nothing here: "
        "there is no remote storage"
    ]
    config = described(node, "remote.log.reader.threads")
    assert (config.value, config.read_only) == ("3", False)
    assert described(node, "log.retention.hours").read_only


def test_settings_of_a_topic_that_are_named_are_those_of_the_whole_list() -> None:
    own = {"retention.ms": "7", "min.insync.replicas": "2"}
    wanted = {"retention.ms", "segment.bytes", "unknown"}
    config = BrokerConfig.from_settings(combined_settings())
    whole, named = describe_topic(config, own), describe_topic(config, own, wanted)
    assert named == [one for one in whole if one.name in wanted]
    assert [one.name for one in named] == ["retention.ms", "segment.bytes"]
