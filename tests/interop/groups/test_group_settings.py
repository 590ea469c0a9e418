"""Settings about groups, of the broker and of one group, as members of a real broker feel them."""

from collections.abc import Iterator
from importlib import import_module

import confluent_kafka.admin
import pytest

from broker.cli import client_metrics
from broker.cli.admin_settings import admin_settings
from broker.cli.configs import main
from broker.server.clock import SystemClock
from broker.server.settings.config_entries import CLIENT_METRICS, GROUP
from common.kafka.admin.client import AdminClient
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from millstream.testing import LocalBroker
from tests.lib.coordinator_requests import TOPIC, Asks
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

BY_DEFAULT_MS = 5_000
SETTINGS = {
    "group.max.size": "1",
    "group.consumer.max.size": "2",
    "offsets.retention.check.interval.ms": "100",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(**SETTINGS) as started:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": started.bootstrap_servers})
        admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        yield started


@pytest.fixture
def asks(broker: LocalBroker) -> Iterator[Asks]:
    with RawConnection(broker.bootstrap_servers) as connection:
        asks = Asks(connection)
        until(lambda: asks.has_coordinators(0, ["any"]))
        until(lambda: asks.heartbeat("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID)
        yield asks


def test_a_classic_group_takes_no_more_members_than_it_may(asks: Asks) -> None:
    member_id = asks.join("small").member_id
    assert asks.join("small", member_id).error_code == ErrorCode.NONE
    other = asks.join("small")
    assert asks.join("small", other.member_id).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_consumer_group_takes_no_more_members_than_it_may(asks: Asks) -> None:
    codes = [asks.modern_join(group="modern-small", member_id=f"m-{number}") for number in range(3)]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_group_s_own_setting_is_told_to_its_members_and_to_no_others(
    broker: LocalBroker, asks: Asks
) -> None:
    assert asks.modern_join(group="own", member_id="m") == ErrorCode.NONE
    assert asks.modern_join(group="other", member_id="m") == ErrorCode.NONE
    main(
        [
            *["--bootstrap-server", broker.bootstrap_servers, "--alter", "--entity-type", "groups"],
            *["--entity-name", "own", "--add-config", "consumer.heartbeat.interval.ms=7000"],
        ]
    )
    until(lambda: asks.modern("m", 1, "own").heartbeat_interval_ms == 7_000)
    until(lambda: asks.modern("m", 1, "other").heartbeat_interval_ms == BY_DEFAULT_MS)


def test_an_offset_is_forgotten_when_its_time_is_over_and_no_other(asks: Asks) -> None:
    kept, short = 0, 1
    for partition, retention_ms in ((kept, -1), (short, 200)):
        request = OffsetCommitRequest(
            group_id="forgetful",
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=5, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        answer = asks.ask(ApiKey.OFFSET_COMMIT, 3, request)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    until(lambda: committed(asks, "forgetful") == [5, -1])


def committed(asks: Asks, group: str) -> list[int]:
    wanted = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1])
    request = OffsetFetchRequest(group_id=group, topics=[wanted])
    (topic,) = asks.ask(ApiKey.OFFSET_FETCH, 5, request).topics
    return [partition.committed_offset for partition in topic.partitions]


def test_log_levels_of_a_broker_are_changed_and_described(
    broker: LocalBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    def configs(*arguments: str) -> int:
        return main(["--bootstrap-server", broker.bootstrap_servers, *arguments])

    assert configs("--alter", "--broker-logger", "1", "--add-config", "millstream.node=ERROR") == 0
    capsys.readouterr()
    assert configs("--describe", "--broker-logger", "1") == 0
    assert "  millstream.node=ERROR sensitive=false" in capsys.readouterr().out
    assert "log level changed logger=millstream.node from=INFO to=ERROR principal=" in broker.log()
    assert configs("--alter", "--broker-logger", "1", "--add-config", "no.such=INFO") == 1
    assert "INVALID_CONFIG: Logger no.such does not exist!" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("configs", "--alter --broker-logger 99 --add-config millstream.node=ERROR"),
        ("configs", "--alter --broker 99 --add-config log.cleaner.threads=2"),
        ("transactions", "find-hanging --broker-id 99"),
        ("transactions", "describe-producers --topic orders --partition 0 --broker-id 99"),
        ("features", "describe --node-id 99"),
    ],
)
def test_a_broker_that_is_not_there_is_told_at_once(
    tool: str, arguments: str, broker: LocalBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"broker.cli.{tool}")
    clock = SystemClock()
    start_ms = clock.now_ms()
    status = module.main(["--bootstrap-server", broker.bootstrap_servers, *arguments.split()])
    assert status == 1
    assert "There is no node 99, or it is down. There are: 1." in capsys.readouterr().err
    assert clock.now_ms() - start_ms < 10_000


def described(bootstrap: str) -> list[object]:
    """Give a group and a subscription a setting each; return what is described of them all."""
    client_metrics.main(
        ["--bootstrap-server", bootstrap, "--alter", "--name", "some", "--interval", "1000"]
    )
    main(
        f"--bootstrap-server {bootstrap} --alter --entity-type groups --entity-name described "
        "--add-config share.auto.offset.reset=earliest,streams.num.standby.replicas=1".split()
    )
    wanted = (
        *((GROUP, name) for name in ("described", "unheard-of", "")),
        *((CLIENT_METRICS, name) for name in ("some", "none", "")),
    )
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in wanted
        ],
        include_synonyms=True,
    )
    with AdminClient(admin_settings(bootstrap, None, None)) as client:
        results = client.ask(request, DescribeConfigsResponse).results
    for result in results:
        result.configs.sort(key=lambda config: config.name)
    return list(results)


def test_all_settings_of_groups_and_subscriptions_are_described_as_by_kafka(
    apache_kafka: str,
) -> None:
    with LocalBroker() as broker:
        assert described(broker.bootstrap_servers) == described(apache_kafka)
