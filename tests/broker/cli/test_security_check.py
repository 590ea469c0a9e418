"""`millstream security check`: what is open to whom, and no password in what it prints."""

from pathlib import Path

import pytest

from broker.__main__ import main
from millstream.processes.settings_files import PLAIN_MODULE

AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
TOKENS = "org.apache.kafka.common.security.oauthbearer.internals.unsecured"


def check(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str, mode: int = 0o600
) -> tuple[int, str]:
    file = folder / "server.properties"
    file.write_text(text)
    file.chmod(mode)
    status = main(["security", "check", str(file), *options])
    return status, capsys.readouterr().out


def test_on_loopback_there_is_nothing_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = check(tmp_path, capsys, "listeners=PLAINTEXT://127.0.0.1:9092\n", "--strict")
    assert status == 0
    assert "Nothing to change." in said
    assert said.splitlines()[1].split("\t")[0].strip() == "PLAINTEXT"
    assert "may do everything: there is no authorizer" in said


def test_an_open_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://h:9092\n"
    status, said = check(tmp_path, capsys, text + "http.listener=0.0.0.0:8080\n", "--strict")
    assert status == 1
    assert "everybody who reaches the port may be User:ANONYMOUS" in said
    assert "authorizer.class.name: it is not set" in said
    assert "http.listener: health and metrics are open" in said
    assert "max.connections.per.ip" in said


def test_an_open_controller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@h:9093\n"
    )
    _, said = check(tmp_path, capsys, text)
    assert "may change the metadata of the cluster" in said


def test_weak_users_and_open_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jaas = f'{PLAIN_MODULE} required username="n" password="hidden-one" user_ann="hidden-one"'
    text = (
        f"listeners=SASL_PLAINTEXT://:9092\nadvertised.listeners=SASL_PLAINTEXT://h:9092\n"
        f"sasl.enabled.mechanisms=PLAIN\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
        f"sasl.jaas.config={jaas};\n{AUTHORIZER}allow.everyone.if.no.acl.found=true\n"
        "super.users=User:ANONYMOUS\ndelegation.token.secret.key=short\n"
    )
    status, said = check(tmp_path, capsys, text, mode=0o644)
    assert status == 0
    for expected in (
        "PLAIN sends what proves a user",
        "the password of ann has fewer than 12 characters",
        "a session lasts for ever",
        "what no rule mentions is open to everybody",
        "clients that prove nothing may do everything",
        "delegation.token.secret.key: it has fewer than 32 characters",
        "server.properties: other users of this machine can read its secret",
    ):
        assert expected in said
    assert "hidden-one" not in said
    assert "short" not in said.replace("shorter", "")


def test_unsecured_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "listeners=SASL_PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093\n"
        "inter.broker.listener.name=PLAINTEXT\nsasl.enabled.mechanisms=OAUTHBEARER\n"
        f"sasl.server.callback.handler.class={TOKENS}.OAuthBearerUnsecuredValidatorCallbackHandler\n"
    )
    _, said = check(tmp_path, capsys, text)
    assert "unsecured tokens are accepted" in said
    assert "users by OAUTHBEARER" in said


def test_settings_that_start_no_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = check(tmp_path, capsys, "listeners=SSL://:9092\n")
    assert status == 2
    assert "would not start" in said
    assert main(["security", "check", str(tmp_path / "none")]) == 2


OF_NODES = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:9092\nsasl.enabled.mechanisms=OAUTHBEARER\n"
    "sasl.mechanism.inter.broker.protocol=OAUTHBEARER\n"
    "sasl.oauthbearer.jwks.endpoint.url=file:///keys\n"
)
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls=file:///keys"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def test_what_proves_a_node_is_kept_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = tmp_path / "token"
    held.write_text("a.b.c")
    held.chmod(0o644)
    for url in (held.as_uri(), "http://issuer.example/token"):
        jaas = f'sasl.jaas.config={MODULE} required clientId="a" clientSecret="swordfish";\n'
        text = f"{OF_NODES}{ALLOWED},{url}\nsasl.oauthbearer.token.endpoint.url={url}\n{jaas}"
        _, said = check(tmp_path, capsys, text)
        assert "swordfish" not in said
        is_file = url.startswith("file:")
        assert (f"{held}: other users of this machine can read" in said) is is_file
        assert ("sends its client secret over a readable connection" in said) is not is_file
