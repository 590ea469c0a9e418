"""Delegation tokens with Apache's tools and ours, on one broker and on a cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.__main__ import main as tool
from millstream.testing import LocalBroker, LocalCluster
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools
from tests.lib.waiting import until

pytestmark = pytest.mark.interop
SECRET_KEY = "the key of all nodes"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(
        security="sasl_plaintext",
        users={"ann": "a", "bob": "b"},
        delegation_token_secret_key=SECRET_KEY,
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users="User:admin",
    ) as made:
        yield made


def of_token(folder: Path, token_id: str, hmac: str) -> Path:
    file = folder / "token.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token_id}" password="{hmac}" tokenauth="true";\n'
    )
    return file


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    capsys.readouterr()
    assert tool(list(arguments)) == status
    said = capsys.readouterr()
    return (said.out if status == 0 else said.err).splitlines()


def test_apaches_tool_and_a_java_client_with_a_token(broker: LocalBroker, tmp_path: Path) -> None:
    libs = kafka_libs()
    where = ("--bootstrap-server", broker.bootstrap_servers)
    admin = (*where, "--command-config", str(broker.client_file("admin")))
    command = f"{TOOLS}.DelegationTokenCommand"
    renewer = ("--renewer-principal", "User:ann")
    creation = Tool(command, (*admin, "--create", "--max-life-time-period", "-1", *renewer))
    (made,) = run_tools(libs, [creation])
    assert made.status == 0, made
    token_id, hmac, owner, *_ = made.output.splitlines()[-1].split()
    assert owner == "User:admin"
    of_ann = (*where, "--command-config", str(broker.client_file("ann")))
    of_bob = (*where, "--command-config", str(broker.client_file("bob")))
    by_token = (*where, "--command-config", str(of_token(tmp_path, token_id, hmac)))
    topics = f"{TOOLS}.TopicCommand"
    told = run_tools(
        libs,
        [
            Tool(command, (*of_ann, "--renew", "--renew-time-period", "-1", "--hmac", hmac)),
            Tool(command, (*of_bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac)),
            Tool(command, (*of_bob, "--describe", "--owner-principal", "User:admin")),
            Tool(command, (*admin, "--describe", "--owner-principal", "User:admin")),
            Tool(topics, (*by_token, "--create", "--topic", "made-by-token")),
            Tool(command, (*by_token, "--create", "--max-life-time-period", "-1")),
            Tool(command, (*admin, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)),
            Tool(topics, (*by_token, "--list")),
        ],
    )
    assert "Completed renew operation" in told[0].output
    assert "DelegationTokenOwnerMismatch" in told[1].errors + told[1].output
    assert "Total number of tokens : 0" in told[2].output
    assert token_id in told[3].output
    assert told[4].status == 0, told[4]
    assert "not allowed on PLAINTEXT" in told[5].errors + told[5].output
    assert "Completed expire operation" in told[6].output
    assert "authentication" in (told[7].errors + told[7].output).lower()
    assert hmac not in broker.log()


def test_a_token_made_at_one_node_is_known_to_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalCluster(
        brokers=3, security="sasl_plaintext", delegation_token_secret_key=SECRET_KEY
    ) as cluster:
        admin = ("--command-config", str(cluster.client_file()))
        nodes = cluster.bootstrap_servers.split(",")
        created = printed(
            capsys, "delegation-tokens", "--bootstrap-server", nodes[0], *admin, "--create",
            "--max-life-time-period", "-1", "--renewer-principal", "User:rob",
        )  # fmt: skip
        token_id, hmac = created[-1].split()[:2]
        by_token = ("--command-config", str(of_token(tmp_path, token_id, hmac)))
        for node in nodes:
            asked = ("--describe", "--owner-principal", "User:rob")

            def knows_it(node: str = node, asked: tuple[str, ...] = asked) -> bool:
                servers = ("--bootstrap-server", node)
                known = printed(capsys, "delegation-tokens", *servers, *admin, *asked)
                return known[-1].startswith(token_id)

            until(knows_it)
            printed(capsys, "topics", "--bootstrap-server", node, *by_token, "--list")
        refused = printed(
            capsys, "delegation-tokens", "--bootstrap-server", nodes[1], *by_token, "--describe",
            status=1,
        )  # fmt: skip
        assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused[-1]
        printed(
            capsys, "delegation-tokens", "--bootstrap-server", nodes[2], *admin, "--expire",
            "--hmac", hmac, "--expiry-time-period", "-1",
        )  # fmt: skip
        printed(capsys, "topics", "--bootstrap-server", nodes[0], *by_token, "--list", status=1)
