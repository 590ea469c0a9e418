"""The compose file and the image, held against the programs they start; no container is started."""

import re
import shutil
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.sources import collect_settings
from broker.raft.voter_set import Endpoint
from broker.server.quorum.initial_controllers import read_initial_controllers
from broker.server.quorum.voters import controller_endpoints
from millstream.cli.commands import PROGRAMS, SERVICES
from tests.lib.docker_compose import compose_command

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IS_READY = ROOT / "deploy" / "docker" / "is-ready"
BASH = shutil.which("bash")


def commands() -> dict[str, list[str]]:
    """Return each service's command, from the plain text: one line, as a list in brackets."""
    found = re.findall(
        r"^  ([\w-]+):\n(?:    .*\n|\n)*?    command: \[(.+)\]$", COMPOSE, re.MULTILINE
    )
    return {name: re.findall(r'"([^"]+)"', command) for name, command in found}


def broker_environment() -> dict[str, str]:
    """Return the broker container's variables: the image's, then the compose file's."""
    image = re.findall(r"(KAFKA_\w+)=(\S+)", DOCKERFILE)
    # Of the three brokers, the first: what they share, and what is its own.
    first = COMPOSE[: COMPOSE.index("  broker-2:")]
    compose = re.findall(r'^ +(KAFKA_\w+): "(.*)"$', first, re.MULTILINE)
    with_defaults = [(name, re.sub(r"\$\{\w+:-(.*?)\}", r"\1", text)) for name, text in compose]
    return dict(image + with_defaults)


@pytest.fixture
def program() -> Iterator[HTTPServer]:
    """A program that answers /health/ready with the status in `program.status`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.status if self.path == "/health/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def is_ready(port: int) -> bool:
    assert BASH is not None
    return subprocess.run([BASH, str(IS_READY), str(port)], capture_output=True).returncode == 0


def test_compose_accepts_the_file() -> None:
    command = compose_command()
    if command is None:
        pytest.skip("no Docker Compose here")
    done = subprocess.run([*command, "config", "-q"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_program_has_its_container() -> None:
    expected = {name: ["service", name] for name in SERVICES}
    connect = ["connect", "start", "/etc/millstream/connect.properties"]
    assert commands() == {**expected, "registry": ["registry"], "connect": connect}
    assert re.findall(r"^  (broker-\d):\n    <<: \*broker$", COMPOSE, re.MULTILINE) == [
        "broker-1",
        "broker-2",
        "broker-3",
    ]
    assert {"broker", "registry", "connect"} <= set(PROGRAMS)


def test_only_this_machine_reaches_the_published_ports() -> None:
    ports = re.findall(r'^ +- "(\S*:\d+)"$', COMPOSE, re.MULTILINE)
    assert len(ports) == 9
    assert all(port.startswith("127.0.0.1:$") for port in ports), ports


def test_the_broker_understands_its_variables(caplog: pytest.LogCaptureFixture) -> None:
    settings = collect_settings(file=None, environment=broker_environment(), overrides=[])
    config = BrokerConfig.from_settings(settings)
    assert caplog.text == ""  # it warns of a variable that names no setting
    told = {place.name: (place.host, place.port) for place in config.advertised_listeners}
    assert told == {"PLAINTEXT": ("broker-1", 29092), "HOST": ("127.0.0.1", 9092)}
    assert [str(folder) for folder in config.log_dirs] == ["/data"]


def test_the_controllers_find_each_other_by_the_names_of_their_containers() -> None:
    settings = collect_settings(file=None, environment=broker_environment(), overrides=[])
    config = BrokerConfig.from_settings(settings)
    found = re.search(r'^  INITIAL_CONTROLLERS: "(.*)"$', COMPOSE, re.MULTILINE)
    assert found is not None
    controllers = read_initial_controllers(found[1])
    addresses = [(each.host, each.port) for each in controllers]
    assert addresses == [("broker-1", 29093), ("broker-2", 29093), ("broker-3", 29093)]
    assert [*config.bootstrap_servers] == addresses
    # A container that is made anew has another host name, so it must not tell that to the others.
    told = [re.findall(r"CONTROLLER://(broker-\d):(\d+)", line) for line in COMPOSE.splitlines()]
    assert [(host, int(port)) for line in told for host, port in line] == addresses
    assert controller_endpoints(config, {}) == (Endpoint("CONTROLLER", "broker-1", 29093),)


def test_the_build_context_holds_what_the_distribution_is_made_of() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        build = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", "README.md", *build["packages"], *build["force-include"]}
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert needed <= set(allowed)


def test_the_image_is_built_by_every_builder() -> None:
    """Nothing that only BuildKit knows: mounts, linked copies, documents within the file."""
    assert not re.search(r"--mount|--link|<<", DOCKERFILE)
    assert re.search(r"^USER \d+:\d+$", DOCKERFILE, re.MULTILINE)


@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_a_program_is_ready_when_it_says_so(program: HTTPServer) -> None:
    for status, expected in ((200, True), (503, False), (404, False)):
        program.status = status
        assert is_ready(program.server_port) is expected


@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_a_program_that_is_not_there_is_not_ready(program: HTTPServer) -> None:
    port = program.server_port
    program.server_close()
    assert not is_ready(port)
