"""What tools ask a controller itself, without any broker: ours and Apache's (KIP-919)."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.__main__ import main as tool
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.envelope import EnvelopeRequest
from common.kafka.protocol.principal import PrincipalData, encode_principal
from millstream.testing import LocalCluster
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop
CONFIGS, ACLS = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        brokers=1,
        controllers=1,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    ) as made:
        yield made


def controller(cluster: LocalCluster) -> str:
    return f"127.0.0.1:{cluster._controller_ports[cluster.controller_ids[0]]}"


def test_our_tools(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--bootstrap-controller", controller(cluster))
    rule = ("--allow-principal", "User:ann", "--operation", "Read", "--topic", "t")
    assert tool(["acls", *where, "--add", *rule]) == 0
    assert tool(["acls", *where, "--list"]) == 0
    assert "(principal=User:ann, host=*, operation=READ" in capsys.readouterr().out
    node = ("--entity-type", "brokers", "--entity-name", str(cluster.controller_ids[0]))
    assert tool(["configs", *where, "--describe", *node, "--all"]) == 0
    assert "num.partitions=" in capsys.readouterr().out
    user = ("--entity-type", "users", "--entity-name", "bob")
    for added in ("SCRAM-SHA-256=[password=p]", "producer_byte_rate=1000"):
        assert tool(["configs", *where, "--alter", *user, "--add-config", added]) == 0
    assert tool(["configs", *where, "--describe", *user]) == 0
    said = capsys.readouterr().out
    assert "SCRAM-SHA-256=iterations=4096" in said
    assert "producer_byte_rate=1000" in said


def test_apaches_tools(cluster: LocalCluster) -> None:
    where = ("--bootstrap-controller", controller(cluster))
    node = ("--entity-type", "brokers", "--entity-name", str(cluster.controller_ids[0]))
    rule = ("--allow-principal", "User:bob", "--operation", "Write", "--topic", "t")
    told = run_tools(
        kafka_libs(),
        [
            Tool(ACLS, (*where, "--add", *rule)),
            Tool(ACLS, (*where, "--list")),
            Tool(CONFIGS, (*where, "--describe", *node, "--all")),
        ],
    )
    assert [result.status for result in told] == [0] * len(told), told
    assert "principal=User:bob, host=*, operation=WRITE" in told[1].output
    assert "num.partitions=" in told[2].output


def test_a_forwarded_request_has_the_rights_of_the_brokers_client(cluster: LocalCluster) -> None:
    def forwarded(user: str) -> int:
        topic = CreatableTopic(name="forwarded", num_partitions=1, replication_factor=1)
        frame = encode_request(
            ApiKey.CREATE_TOPICS, 7, 3, "its client", CreateTopicsRequest(topics=[topic])
        )
        envelope = EnvelopeRequest(
            request_data=frame[4:],
            request_principal=encode_principal(PrincipalData(type="User", name=user)),
            client_host_address=bytes([10, 0, 0, 1]),
        )
        with RawConnection(controller(cluster)) as connection:
            answer: Any = connection.ask(ApiKey.ENVELOPE, 0, envelope)
        assert answer.error_code == ErrorCode.NONE
        response: Any = decode_response(ApiKey.CREATE_TOPICS, 7, answer.response_data)[1]
        return int(response.topics[0].error_code)

    assert forwarded("eve") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert forwarded("ANONYMOUS") == ErrorCode.NONE
    assert forwarded("ANONYMOUS") == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    "envelope",
    [
        EnvelopeRequest(),
        EnvelopeRequest(
            request_data=b"\0" * 12, request_principal=b"\0\0", client_host_address=b"x"
        ),
        EnvelopeRequest(request_data=b"\x00\x3a\0\0\0\0\0\0\xff\xff", client_host_address=bytes(4)),
    ],
)
def test_an_envelope_with_anything_else_is_refused(
    cluster: LocalCluster, envelope: EnvelopeRequest
) -> None:
    with RawConnection(controller(cluster)) as connection:
        answer: Any = connection.ask(ApiKey.ENVELOPE, 0, envelope)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
