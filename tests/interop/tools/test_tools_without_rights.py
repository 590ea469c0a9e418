"""Clients among the tools, run by a user without rights: one line says why, and the status is 1."""

import subprocess
from collections.abc import Iterator

import pytest

from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOPIC = "orders"
IN_A_GROUP = [
    ("console-consumer", "--topic", TOPIC, "--group", "g"),
    ("consumer-perf-test", "--topic", TOPIC, "--group", "g", "--num-records", "3"),
    ("verifiable-consumer", "--topic", TOPIC, "--group-id", "g"),
]
NOT_ALLOWED = [
    (("console-producer", "--topic", TOPIC), "TOPIC_AUTHORIZATION_FAILED"),
    (("console-producer", "--topic", TOPIC, "--sync"), "TOPIC_AUTHORIZATION_FAILED"),
    *((command, "GROUP_AUTHORIZATION_FAILED") for command in IN_A_GROUP),
]
"""Commands of a user without any right, and the error that they name."""


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(
        security="sasl_plaintext",
        users={"bob": "his", "amy": "hers"},
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:admin;User:ANONYMOUS",
    ) as broker:
        broker.create_topic(TOPIC)
        done = run(
            broker,
            "admin",
            *("acls", "--add", "--allow-principal", "User:amy", "--operation", "Read"),
            *("--group", "*"),
        )
        assert done.returncode == 0, done.stderr
        yield broker


def run(broker: LocalBroker, user: str, *command: str) -> subprocess.CompletedProcess[str]:
    connection = ("--bootstrap-server", broker.bootstrap_servers)
    return subprocess.run(
        program_command(
            "broker", *command, *connection, "--command-config", str(broker.client_file(user))
        ),
        env=program_environment(),
        input="one\ntwo\n",
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("command", "error"), NOT_ALLOWED, ids=lambda each: " ".join(each)[:40])
def test_a_client_without_rights_says_so_and_ends(
    broker: LocalBroker, command: tuple[str, ...], error: str
) -> None:
    done = run(broker, "bob", *command)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert error in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        *IN_A_GROUP,
        ("console-consumer", "--topic", TOPIC, "--partition", "0", "--timeout-ms", "1000"),
    ],
    ids=" ".join,
)
def test_a_consumer_that_may_not_read_the_topic_says_so_and_ends(
    broker: LocalBroker, command: tuple[str, ...]
) -> None:
    done = run(broker, "amy", *command)
    assert done.returncode == 1, done
    assert "TOPIC_AUTHORIZATION_FAILED" in done.stderr
