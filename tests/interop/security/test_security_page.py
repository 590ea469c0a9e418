"""The commands of docs/security-programs.md are typed, against a broker with an authorizer."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.kafka.rights import programs
from millstream.launch import program_environment
from millstream.processes.cluster_layout import free_ports
from millstream.processes.settings_files import properties_text, write_private
from tests.lib.running_program import running
from tests.lib.secured_broker import SecuredBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "security-programs.md"
COMMAND = re.compile(r"^    (millstream .*?)(?:\s+#.*)?$", re.MULTILINE)
SERVES = ("millstream registry", "millstream service")


@pytest.fixture(scope="module")
def commands() -> list[str]:
    return COMMAND.findall(PAGE.read_text())


@pytest.fixture
def broker() -> Iterator[SecuredBroker]:
    with SecuredBroker(programs()) as running_broker:
        running_broker.broker.create_topic("orders", 6)
        yield running_broker


def typed(command: str, broker: SecuredBroker) -> list[str]:
    command = command.replace("localhost:9092", broker.bootstrap_servers)
    return [sys.executable, "-m", "millstream", *shlex.split(command)[1:]]


def environment() -> dict[str, str]:
    return {**program_environment(), "PYTHONPATH": str(PAGE.parents[1])}


def test_every_command_does_what_the_page_says(
    commands: list[str], broker: SecuredBroker, tmp_path: Path
) -> None:
    for user in ("admin", "registry", "fraud"):
        text = Path(broker.broker.client_file(user)).read_text()
        write_private(tmp_path / f"{user}.properties", text + _of_registry())
    write_private(tmp_path / "users.properties", properties_text({"anna": "hers"}))
    write_private(tmp_path / "http.properties", _http_file())
    short = [each for each in commands if not each.startswith(SERVES)]
    # The certificates that servers need come first.
    short.sort(key=lambda each: "certificates certificates" not in each)
    shown = {each: _run(typed(each, broker), tmp_path) for each in short}
    (listed,) = (text for command, text in shown.items() if "--list" in command)
    assert "(principal=User:fraud, host=*, operation=READ, permissionType=ALLOW)" in listed
    served = [each for each in commands if each.startswith(SERVES)]
    assert len(served) == 2
    registry_port = next(free_ports())
    with running(
        [*typed(served[0], broker), "--http-port", str(registry_port)],
        cwd=tmp_path,
        env=environment(),
    ) as registry:
        assert registry.stdout is not None
        url = f"https://127.0.0.1:{registry_port}"
        assert f" ready on {url}" in registry.stdout.readline()
        # It has to create a topic, which `orders` does in the pipeline.
        for name in ("order-validations", "orders.dead-letter"):
            broker.broker.create_topic(name, 6)
        service = [*typed(served[1], broker), "--registry-url", url]
        with running(service, cwd=tmp_path, env=environment()) as fraud:
            assert fraud.stdout is not None
            assert " ready on https://" in fraud.stdout.readline()


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def _http_file() -> str:
    block = PAGE.read_text().split("# http.properties\n")[1].split("\n\n")[0]
    return "\n".join(line.strip() for line in block.splitlines()).replace("anna:...", "anna:hers")


def _of_registry() -> str:
    block = PAGE.read_text().split("# of a secured schema registry\n")[1].split("\n\n")[0]
    lines = "\n".join(line.strip() for line in block.splitlines())
    return lines.replace("fraud:...", "anna:hers") + "\n"
