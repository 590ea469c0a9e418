"""What `millstream faults` refuses before it listens."""

import socket
from pathlib import Path

import pytest

from broker.cli.faults import main

UPSTREAM = ["--upstream", "localhost:9092"]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 1
    return capsys.readouterr().err


def test_a_control_for_other_machines_needs_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    for listen in (":19092", "0.0.0.0:19092", "192.0.2.1:19092"):
        said = refused(["--listen", listen, *UPSTREAM], capsys)
        assert said.startswith("millstream faults: the control at ")
        assert "--http-config" in said


def test_the_proxy_does_not_log_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={jaas} username="a" password="secret";\n'
    )
    arguments = ["--listen", "127.0.0.1:0", *UPSTREAM, "--command-config", str(file)]
    said = refused(arguments, capsys)
    assert "the proxy does not log in" in said
    assert "secret" not in said


def test_wrong_arguments_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--listen", "19092", *UPSTREAM], "'19092' is not HOST:PORT"),
        (["--listen", "127.0.0.1:99999", *UPSTREAM], "is not HOST:PORT"),
        (["--listen", "127.0.0.1:0"], "--upstream"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert words in capsys.readouterr().err
    assert "should be host:port" in refused(
        ["--listen", "127.0.0.1:0", "--upstream", "localhost:x"], capsys
    )


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(["--listen", f"127.0.0.1:{port}", *UPSTREAM], capsys)
    assert f"cannot listen on 127.0.0.1:{port}" in said
