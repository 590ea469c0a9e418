"""`millstream demo --secure`: orders end as in a plain demo, and no secret is in what it writes."""

import json
import re
import shlex
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from common.credentials.access import kafka_access
from common.credentials.jaas import parse_jaas
from common.kafka.rights import unnamed
from common.process.properties import parse_properties
from tests.e2e.test_demo import environment
from tests.lib.process_tree import processes_below
from tests.lib.running_program import running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]

DEMO = [sys.executable, "-m", "millstream", "demo", "--secure", "--lite", "--connect"]
PATHS = ("/", "/metrics", "/health/ready", "/connectors?expand=status&expand=info")
MORE = ["--rate", "5", "--seconds", "1"]


class Demo(NamedTuple):
    """What a secured demo has shown and written while it served."""

    shown: str
    report: dict[str, Any]
    secrets: dict[str, str]
    written: dict[str, bytes]
    """Everything that may not have a secret in it, by where it was found."""
    context: ssl.SSLContext
    """It trusts the demo's authority."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    told = environment(COUNT="30")
    with running(DEMO, cwd=folder, env=told, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        shown = "".join(takewhile(lambda line: "serving until" not in line, process.stdout))
        assert process.poll() is None, shown
        more = re.search(r"^more orders: (.+)$", shown, re.MULTILINE)
        assert more is not None, shown
        command = [*shlex.split(more[1]), *MORE]
        loaded = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, timeout=60, check=True
        )
        (place,) = folder.glob("build/demo/data-*/secrets")
        written = {"standard output": shown.encode(), "load": loaded.stdout + loaded.stderr}
        written |= dict(_answers(shown)) | dict(_processes(process.pid))
        written |= dict(_descriptions(shown, str(place / "admin.properties")))
        written |= dict(_files(folder, place))
        report = json.loads((folder / "build/demo/report.json").read_text())
        context = ssl.create_default_context(cafile=place / "certificates" / "ca.pem")
        yield Demo(shown, report, _secrets(place), written, context)


def _secrets(place: Path) -> dict[str, str]:
    """Return passwords and private keys by what they are of."""
    found = {}
    for file in place.glob("*.properties"):
        for name, value in parse_properties(file.read_text()).items():
            if name.endswith("sasl.jaas.config"):
                for option, secret in parse_jaas(value).options.items():
                    if option == "password" or option.startswith("user_"):
                        found[f"{file.stem} {option}"] = secret
    for file in place.glob("certificates/*.key"):
        found[file.name] = file.read_text().splitlines()[1]
    return found


def _files(folder: Path, secrets: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file() and secrets not in file.parents:
            yield str(file.relative_to(folder)), file.read_bytes()


def _answers(shown: str) -> Iterator[tuple[str, bytes]]:
    for name, url in re.findall(r"^([\w-]+) +(http://\S+)$", shown, re.MULTILINE):
        for path in PATHS:
            try:
                asked = Request(url + path, headers={"Accept": "text/html"})
                with urlopen(asked, timeout=20) as answer:
                    yield f"{name}{path}", answer.read()
            except URLError:
                continue  # it has no such page


def _processes(parent: int) -> Iterator[tuple[str, bytes]]:
    for pid in (parent, *processes_below(parent)):
        for name in ("cmdline", "environ"):
            yield f"process {pid} {name}", Path(f"/proc/{pid}/{name}").read_bytes()


def _descriptions(shown: str, admin_file: str) -> Iterator[tuple[str, bytes]]:
    (servers,) = re.findall(r"^kafka +(\S+)$", shown, re.MULTILINE)
    client = AdminClient(kafka_access(servers, admin_file).librdkafka())
    nodes = client.list_topics(timeout=20).brokers
    for node in nodes:
        asked = [ConfigResource(ConfigResource.Type.BROKER, str(node))]
        (answer,) = client.describe_configs(asked).values()
        described = {name: entry.value for name, entry in answer.result(20).items()}
        assert described["ssl.keystore.location"], "what is not secret is shown"
        yield f"settings of {node}", repr(described).encode()


def test_every_order_ends_as_in_a_plain_demo(demo: Demo) -> None:
    assert "WRONG" not in demo.shown
    counted = demo.report
    assert counted["posted"] == 30
    ends = {"VALIDATED": "PAID", "FAILED": "FAILED"}
    assert counted["final_states"] == {
        ends[state]: count for state, count in counted["states"].items()
    }
    assert counted["mails"] == counted["documents"] == counted["accepted"]


def test_the_rules_of_the_cluster_are_shown(demo: Demo) -> None:
    shown = [line.split() for line in demo.shown.splitlines() if line.startswith("  User:")]
    assert {line[0] for line in shown} == {f"User:{program}" for program in unnamed()}
    assert ["User:fraud", "ALLOW", "READ", "on", "topic", "orders"] in shown


def test_no_secret_is_in_what_was_written(demo: Demo) -> None:
    assert len(demo.secrets) > 2 * len(unnamed())
    assert len(demo.written) > 50
    found = [
        f"{what} is in {place}"
        for place, content in demo.written.items()
        for what, secret in demo.secrets.items()
        if secret.encode() in content
    ]
    assert found == []


def test_what_is_searched_would_show_a_secret(demo: Demo) -> None:
    """The search looks where programs write: each kind of place is there, and is not empty."""
    for place in (
        "build/demo/logs/broker-1.log",
        "build/demo/logs/orders.log",
        "build/demo/logs/connect.log",
        "orders/metrics",
        "connect/connectors?expand=status&expand=info",
        "settings of 1",
    ):
        assert demo.written[place], place


def test_only_the_administrator_uses_the_console(demo: Demo) -> None:
    (console,) = re.findall(r"^console +(https://\S+)$", demo.shown, re.MULTILINE)

    def status(user: str) -> int:
        login = f"{user}:{demo.secrets[f'{user} password']}"
        asked = Request(f"{console}/api/topics/orders/records")
        asked.add_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
        try:
            with urlopen(asked, timeout=20, context=demo.context) as answer:
                kinds = {row["value"]["kind"] for row in json.load(answer)["rows"]}
                assert kinds == {"avro"}, "the registry lets the console in"
                return int(answer.status)
        except HTTPError as refused:
            with refused:
                return refused.code

    assert status("admin") == 200
    assert status("fraud") == 401
    assert re.search(
        r"^console: user admin, password in \S+console-users$", demo.shown, re.MULTILINE
    )


def test_a_stranger_is_not_let_in(demo: Demo) -> None:
    (registry,) = re.findall(r"^registry +(\S+)$", demo.shown, re.MULTILINE)
    asked = Request(f"{registry}/subjects")
    with pytest.raises(HTTPError) as refused, urlopen(asked, timeout=20, context=demo.context):
        pass
    with refused.value as answer:
        assert answer.code == 401
    login = f"fraud:{demo.secrets['fraud password']}"
    asked.add_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    with urlopen(asked, timeout=20, context=demo.context) as answer:
        assert "orders-value" in json.load(answer)
    (servers,) = re.findall(r"^kafka +(\S+)$", demo.shown, re.MULTILINE)
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
