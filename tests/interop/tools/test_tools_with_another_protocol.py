"""A tool that speaks TLS to a listener without it, or the reverse, says what it probably is."""

import subprocess
from pathlib import Path

import pytest

from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOOLS = {
    "topics": ("--list",),
    "console-consumer": ("--topic", "t", "--timeout-ms", "1000"),
}


def run(broker: LocalBroker, tool: str, config: Path) -> str:
    connection = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config))
    done = subprocess.run(
        program_command("broker", tool, *TOOLS[tool], *connection),
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_without_tls_at_a_listener_with_tls(tool: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    with LocalBroker(security="ssl") as broker:
        assert "perhaps this listener speaks TLS" in run(broker, tool, config)


@pytest.mark.parametrize(
    ("tool", "hint"),
    [
        ("topics", "perhaps this listener speaks no TLS"),
        ("console-consumer", "connecting to a PLAINTEXT broker listener?"),
    ],
)
def test_a_tool_with_tls_at_a_listener_without_it(tool: str, hint: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\n")
    with LocalBroker() as broker:
        assert hint in run(broker, tool, config)
