"""`millstream faults` before Millstream's brokers and before Apache Kafka, with stock clients."""

import re
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from common.kafka.protocol.messages.list_groups import ListGroupsRequest
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.testing import (
    ClusterView,
    LocalBroker,
    LocalCluster,
    LocalFaultProxy,
    RunningBrokers,
)
from millstream.testing.broker_control import ControlError
from millstream.testing.faults import Faults, Rule
from millstream.testing.topics import create_topic
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.faulty_clients import COMMANDS, FaultyClient
from tests.lib.raw_kafka import RawConnection
from tests.lib.running_program import running

pytestmark = [pytest.mark.slow, pytest.mark.interop]

READY = re.compile(
    r"millstream faults ready on 127.0.0.1:\d+ before localhost:1, control http://127.0.0.1:\d+\n"
)
WAIT = 60


class Proxied(NamedTuple):
    """A Kafka, and a proxy before it."""

    upstream: str
    proxy: LocalFaultProxy
    view: ClusterView


@contextmanager
def proxied(upstream: str) -> Iterator[Proxied]:
    with LocalFaultProxy(upstream) as proxy, ClusterView(upstream) as view:
        yield Proxied(upstream, proxy, view)


@contextmanager
def apache(folder: Path) -> Iterator[str]:
    with running_node(kafka_libs(), folder) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="module", params=["millstream", "apache"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    if request.param == "apache":
        with apache(tmp_path_factory.mktemp("apache")) as bootstrap, proxied(bootstrap) as found:
            yield found
    else:
        with (
            LocalCluster(brokers=2, is_testing=False) as cluster,
            proxied(cluster.bootstrap_servers) as found,
        ):
            yield found


Clients = dict[str, FaultyClient]


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(FaultyClient(COMMANDS[name]()))
            for name in ("confluent-kafka", "Java")
        }


@pytest.fixture(params=["confluent-kafka", "Java"])
def client(request: pytest.FixtureRequest, clients: Clients) -> FaultyClient:
    return clients[request.param]


def produce(kafka: Proxied, client: FaultyClient, topic: str) -> str:
    """Return the error; "" if a record was delivered."""
    return client.ask("produce", kafka.proxy.bootstrap_servers, topic, "true")


@pytest.fixture
def topic(kafka: Proxied, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W+", "-", request.node.name)
    create_topic({"bootstrap.servers": kafka.proxy.bootstrap_servers}, name, 2, 1, {})
    return name


PRODUCED: dict[str, Callable[[Faults, str], Rule]] = {
    "error": lambda f, t: f.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=t, partition=0).once(),
    "lost answer": lambda f, t: f.lose_answer("Produce", topic=t).once(),
    "torn answer": lambda f, t: f.tear("Produce", topic=t).once(),
}


@pytest.mark.parametrize("fault", PRODUCED)
def test_a_producer_that_meets_a_fault_delivers_once(
    kafka: Proxied, client: FaultyClient, topic: str, fault: str
) -> None:
    rule = PRODUCED[fault](kafka.proxy.faults, topic)
    assert produce(kafka, client, topic) == ""
    assert rule.hits == 1
    rule.remove()
    assert len(kafka.view.records(topic)) == 1
    assert kafka.proxy.requests.count(api="Produce", topic=topic) == 2


def test_clients_in_a_black_hole_deliver_nothing(
    kafka: Proxied, clients: Clients, topic: str
) -> None:
    rule = kafka.proxy.faults.black_hole(client_id=topic).always()
    with ThreadPoolExecutor() as executor:  # Each waits until it gives up.
        assert all(executor.map(lambda each: produce(kafka, each, topic), clients.values()))
    rule.remove()
    assert kafka.view.records(topic) == []


CONSUMED: dict[str, Callable[[Faults, str], Rule]] = {
    "error": lambda f, t: f.error("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=t).once(),
    "error of a group": lambda f, t: f.error("JoinGroup", "NOT_COORDINATOR", group=t).once(),
    "damage": lambda f, t: f.damage_records(topic=t).once(),
}


@pytest.mark.parametrize("fault", CONSUMED)
def test_a_consumer_that_meets_a_fault_reads_on(
    kafka: Proxied, client: FaultyClient, topic: str, fault: str
) -> None:
    assert produce(kafka, client, topic) == ""
    rule = CONSUMED[fault](kafka.proxy.faults, topic)
    said = client.ask("consume", kafka.proxy.bootstrap_servers, topic, topic)
    rule.wait_hit(WAIT)
    rule.remove()
    # Java's consumer gives a damaged record to its program as an error, again and again.
    assert said.endswith("|value") or (fault == "damage" and said == "KafkaException|"), said


REQUESTS: dict[str, tuple[int, Message]] = {
    "ApiVersions": (3, ApiVersionsRequest(client_software_name="a", client_software_version="1")),
    "ListGroups": (4, ListGroupsRequest()),
    "ListOffsets": (
        7,
        ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name="nothing",
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)],
                )
            ]
        ),
    ),
    "DescribeConfigs": (
        4,
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="nothing")]
        ),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_without_rules_the_answers_have_the_same_bytes(kafka: Proxied, name: str) -> None:
    version, request = REQUESTS[name]
    frame = encode_request(request.__api_key__, version, 7, "raw", request)
    answers = []
    for address in (kafka.upstream.partition(",")[0], kafka.proxy.bootstrap_servers):
        connection = RawConnection(address)
        with connection:
            connection.send(frame)
            answers.append(connection.receive_frame())
    assert answers[0] == answers[1]
    assert len(answers[0]) > len(ApiKey.METADATA.name)


def test_the_control_says_what_a_proxy_has_not(kafka: Proxied) -> None:
    brokers = RunningBrokers([kafka.proxy.control_url])
    with pytest.raises(ControlError, match="only a broker that runs with --testing"):
        brokers.clock.advance(hours=1)
    with pytest.raises(ControlError, match="a proxy has no disk"):
        kafka.proxy.faults.disk("full").always()
    for path in ("/health/ready", "/metrics", "/openapi.json", "/"):
        with urllib.request.urlopen(kafka.proxy.control_url + path, timeout=WAIT) as answer:
            assert answer.status == 200
    kafka.proxy.faults.clear(allow_unused=True)


def test_the_command_says_who_and_where_it_is_and_ends_when_it_is_told() -> None:
    command = ["faults", "--listen", "127.0.0.1:0", "--upstream", "localhost:1"]
    with running([sys.executable, "-m", "millstream", *command]) as process:
        assert process.stdout is not None
        assert READY.fullmatch(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0


def test_a_secured_broker_is_reached_by_tls_and_its_users_log_in(tmp_path: Path) -> None:
    with LocalBroker(security="sasl_ssl") as broker:
        broker.create_topic("orders")
        file = tmp_path / "tls.properties"
        lines = Path(broker.client_file()).read_text().splitlines()
        kept = [line for line in lines if line.startswith("ssl.")]
        file.write_text("\n".join(["security.protocol=SSL", *kept, ""]))
        settings = broker.client_settings()
        left = {name: value for name, value in settings.items() if not name.startswith("ssl.")}
        with LocalFaultProxy(broker.bootstrap_servers, command_config=str(file)) as proxy:
            left |= {"bootstrap.servers": proxy.bootstrap_servers}
            left |= {"security.protocol": "SASL_PLAINTEXT"}
            proxy.faults.close("Produce", after=True).once()
            producer = Producer({**left, "enable.idempotence": True, "log_level": 0})
            producer.produce("orders", b"one")
            assert producer.flush(WAIT) == 0
        assert len(broker.records("orders")) == 1
