"""Our tools, and what a user may not ask, on a secured node of Apache Kafka.

It has SASL_SSL and an authorizer. Its controller confirms a change before its broker shows it, so
what is read is waited for.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.__main__ import main as tool
from common.credentials.jaas import SCRAM_MODULE
from millstream.processes.settings_files import login_text, properties_text
from millstream.testing.security import USER, LocalSecurity
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.explained import Explained
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OWN = {
    # The listener keeps its name.
    "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "delegation.token.secret.key": "the key of all nodes",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{USER};User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LocalSecurity]]:
    folder = tmp_path_factory.mktemp("apache")
    security = LocalSecurity("sasl_ssl", folder / "security")
    given = {
        name.replace("listener.name.sasl_ssl.", "listener.name.plaintext."): value
        for name, value in security.broker_settings().items()
    }
    with running_node(kafka_libs(), folder, {**given, **OWN}) as bootstrap:
        yield bootstrap, security


def test_users_rules_and_tokens(
    secured: tuple[str, LocalSecurity], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap, security = secured
    admin = str(security.client_file())

    def said(name: str, *arguments: str, file: str = admin, status: int = 0) -> str:
        capsys.readouterr()
        given = ["--bootstrap-server", bootstrap, "--command-config", file, *arguments]
        found = tool([name, *given])
        told = capsys.readouterr()
        assert found == status, told
        return told.out + told.err

    carol = ("--entity-type", "users", "--entity-name", "carol")
    said("configs", "--alter", *carol, "--add-config", "SCRAM-SHA-512=[password=c]")
    until(lambda: "SCRAM-SHA-512=iterations=" in said("configs", "--describe", *carol))
    files = []
    for password in ("c", "wrong"):
        login = login_text(SCRAM_MODULE, username="carol", password=password)
        own = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}
        path = tmp_path / f"{password}.properties"
        path.write_text(properties_text({**security.client_properties(), **own}))
        files.append(os.fspath(path))
    right, wrong = files
    assert "uthentication failed" in said("topics", "--list", file=wrong, status=1)
    created = ("--create", "--topic", "t-1", "--partitions", "1")
    assert "uthoriz" in said("topics", *created, file=right, status=1)
    rule = ("--allow-principal", "User:carol", "--operation", "Create", "--topic", "t-")
    prefixed = ("--resource-pattern-type", "prefixed")
    said("acls", "--add", *rule, *prefixed)
    until(lambda: "name=t-, patternType=PREFIXED" in said("acls", "--list"))
    said("topics", *created, file=right)
    made = said("delegation-tokens", "--create", "--max-life-time-period", "-1", file=right)
    assert "User:carol" in made
    until(lambda: "User:carol" in said("delegation-tokens", "--describe", file=right))
    said("acls", "--remove", "--force", *rule, *prefixed)
    until(lambda: "patternType=PREFIXED" not in said("acls", "--list"))
    assert Explained(bootstrap, right).topic("t-1").codes == {"asking-not-allowed"}
