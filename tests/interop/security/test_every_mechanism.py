"""Unmodified clients by every mechanism, with what is right and with what is wrong.

A row that no client can do is in CANNOT, with the reason.
"""

import asyncio
import gc
import logging
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import kafka
import kafka.errors
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaException, Producer
from kafka.net.sasl import oauth

from broker.__main__ import main as tool
from common.credentials.jaas import ALLOWED_URLS
from millstream.processes.settings_files import properties_text, write_private
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, ToolResult, kafka_libs, run_tools
from tests.lib.every_mechanism import (
    ALICE,
    CERTIFICATE,
    MECHANISMS,
    Clients,
    broker_of_every_mechanism,
    topics_of,
)
from tests.lib.kerberos import running_realm, why_no_realm
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

CANNOT = {
    ("confluent-kafka", "GSSAPI"): "No provider for SASL mechanism GSSAPI",
}
"""The wheels of confluent-kafka are built without libsasl2, and say so."""
SASL_PLUGINS = (
    "/usr/lib/x86_64-linux-gnu/sasl2",
    "/usr/lib/aarch64-linux-gnu/sasl2",
    "/usr/lib/sasl2",
)
Secured = tuple[LocalBroker, Clients]


class Refused(Exception):  # noqa: N818 - how a client's attempt ends
    """A client says that it was not let in."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with ExitStack() as stack:
        realm = None
        if not why_no_realm():
            realm = stack.enter_context(running_realm(tmp_path_factory.mktemp("realm")))
        folder = tmp_path_factory.mktemp("clients")
        yield stack.enter_context(broker_of_every_mechanism(folder, realm))


# --- clients: each sends a record or raises Refused ---


def by_confluent_kafka(clients: Clients, mechanism: str, is_right: bool, topic: str) -> None:
    errors: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": clients.address(mechanism),
        "ssl.ca.location": str(clients.ca_file),
        "log_level": 0,
        "error_cb": lambda error: errors.append(error.str()),
    }
    if mechanism == CERTIFICATE:
        shown = clients.certificate(is_right)
        settings["ssl.certificate.location"] = str(shown.certificate)
        settings["ssl.key.location"] = str(shown.key)
    if mechanism == "OAUTHBEARER":
        token = clients.token(is_right)
        settings["oauth_cb"] = lambda _: (token, time.time() + 60)
    elif mechanism not in (CERTIFICATE, "GSSAPI"):
        settings |= {"sasl.username": ALICE, "sasl.password": clients.password(is_right)}
    if mechanism != CERTIFICATE:
        settings["sasl.mechanism"] = mechanism
    settings["security.protocol"] = "SSL" if mechanism == CERTIFICATE else "SASL_SSL"
    try:
        producer = Producer(settings)
    except KafkaException as error:
        raise Refused(str(error)) from error
    delivered: list[Any] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: delivered.append(error))

    def has_ended() -> bool:
        producer.poll(0.1)
        return bool(delivered or errors)

    until(has_ended)
    producer.purge()
    producer.flush(10)
    if errors:
        raise Refused(errors[0])
    assert delivered == [None]


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class BlockingTokens(oauth.AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def of_python(clients: Clients, mechanism: str, is_right: bool, tokens: Any) -> dict[str, Any]:
    """Return the settings that aiokafka and kafka-python share."""
    context = ssl.create_default_context(cafile=str(clients.ca_file))
    settings: dict[str, Any] = {
        "bootstrap_servers": clients.address(mechanism),
        "security_protocol": "SSL" if mechanism == CERTIFICATE else "SASL_SSL",
        "ssl_context": context,
    }
    if mechanism == CERTIFICATE:
        shown = clients.certificate(is_right)
        context.load_cert_chain(shown.certificate, shown.key)
        return settings
    settings["sasl_mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = tokens(clients.token(is_right))
    elif mechanism == "GSSAPI":
        settings["sasl_kerberos_service_name"] = "kafka"
    else:
        settings["sasl_plain_username"] = ALICE
        settings["sasl_plain_password"] = clients.password(is_right)
    return settings


def by_aiokafka(clients: Clients, mechanism: str, is_right: bool, topic: str) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(**of_python(clients, mechanism, is_right, Tokens))
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"x")
        finally:
            await producer.stop()

    try:
        asyncio.run(send())
    except Exception as error:
        raise Refused(repr(error)) from error


def by_kafka_python(clients: Clients, mechanism: str, is_right: bool, topic: str) -> None:
    settings = of_python(clients, mechanism, is_right, BlockingTokens)
    try:
        # A wrong one is tried again for all of this time.
        told = {**settings, "bootstrap_timeout_ms": 10_000 if is_right else 1_000}
        with kafka.KafkaProducer(**told) as producer:
            producer.send(topic, b"x").get(10)
    except Exception as error:  # noqa: BLE001 - whatever it is
        raise Refused(repr(error)) from None


def by_our_tools(clients: Clients, mechanism: str, is_right: bool, topic: str) -> None:
    file = clients.folder / f"ours-{mechanism}-{is_right}.properties"
    write_private(file, properties_text(clients.properties(mechanism, is_right)))
    where = ("--bootstrap-server", clients.address(mechanism), "--command-config", str(file))
    if tool(["topics", *where, "--create", "--topic", topic]) != 0:
        raise Refused("see standard output")


CLIENTS: dict[str, Callable[[Clients, str, bool, str], None]] = {
    "confluent-kafka": by_confluent_kafka,
    "aiokafka": by_aiokafka,
    "kafka-python": by_kafka_python,
    "millstream": by_our_tools,
}


def require(clients: Clients, mechanism: str) -> None:
    if mechanism == "GSSAPI" and clients.realm is None:
        pytest.skip(why_no_realm())


# A producer of kafka-python that cannot authenticate leaves a pair of sockets open, and every
# connection whose TLS handshake failed; one of aiokafka that has no ticket its connection.
@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client(
    secured: Secured,
    client: str,
    mechanism: str,
    is_right: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker, clients = secured
    require(clients, mechanism)
    # A captured record of its log has an exception, which has the sockets: they would be collected
    # in another test.
    caplog.set_level(logging.CRITICAL, logger="kafka")
    for name, value in clients.environment(is_right).items():
        monkeypatch.setenv(name, value)
    topic = f"{client}-{mechanism}-{is_right}"
    reason = CANNOT.get((client, mechanism))
    if is_right and reason is None:
        CLIENTS[client](clients, mechanism, is_right, topic)
        assert topic in topics_of(broker)
    else:
        with pytest.raises(Refused, match=reason):
            CLIENTS[client](clients, mechanism, is_right, topic)
        assert topic not in topics_of(broker)
    gc.collect()


# --- kcat: all rows at the same time, each in a process ---


@pytest.fixture(scope="module")
def of_kcat(secured: Secured) -> dict[tuple[str, bool], "subprocess.CompletedProcess[bytes]"]:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed here")
    _, clients = secured
    rows = [
        row
        for row in product(MECHANISMS, (True, False))
        if row[0] != "GSSAPI" or clients.realm is not None
    ]
    with ThreadPoolExecutor(4) as threads:
        return dict(zip(rows, threads.map(lambda row: _kcat(clients, *row), rows), strict=True))


def _kcat(clients: Clients, mechanism: str, is_right: bool) -> "subprocess.CompletedProcess[bytes]":
    settings = {
        "bootstrap.servers": clients.address(mechanism),
        "ssl.ca.location": clients.ca_file,
        "security.protocol": "SSL" if mechanism == CERTIFICATE else "SASL_SSL",
        **_kcat_login(clients, mechanism, is_right),
    }
    # It has no callback for tokens, so it makes unsecured ones. Only one listener takes those.
    if mechanism == "OAUTHBEARER" and is_right:
        settings["bootstrap.servers"] = clients.addresses["UNSECURED"]
    topic = f"kcat-{mechanism}-{is_right}"
    told = [f"-X{name}={value}" for name, value in settings.items()]
    act = ["-P", "-t", topic] if is_right else ["-L", "-m", "3"]
    return subprocess.run(
        ["kcat", *told, *act],
        input=b"x",
        env={**os.environ, **clients.environment(is_right)},
        capture_output=True,
        check=False,
        timeout=60,
    )


def _kcat_login(clients: Clients, mechanism: str, is_right: bool) -> dict[str, Any]:
    match mechanism:
        case "OAUTHBEARER":
            return {
                "sasl.mechanism": mechanism,
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={ALICE}",
            }
        case "GSSAPI":
            return {
                "sasl.mechanism": mechanism,
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.keytab": clients.keytab(is_right),
                "sasl.kerberos.principal": clients.principal(is_right),
            }
        case "SSL":
            shown = clients.certificate(is_right)
            return {
                "ssl.certificate.location": shown.certificate,
                "ssl.key.location": shown.key,
            }
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": ALICE,
        "sasl.password": clients.password(is_right),
    }


SAID = {
    "OAUTHBEARER": "uthentication failed|invalid_token",
    "GSSAPI": "kinit.+failed|GSSAPI",
    CERTIFICATE: "SSL|isconnected|certificate",
}


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(
    secured: Secured,
    of_kcat: dict[tuple[str, bool], "subprocess.CompletedProcess[bytes]"],
    mechanism: str,
    is_right: bool,
) -> None:
    broker, clients = secured
    require(clients, mechanism)
    if mechanism == "GSSAPI" and not _has_kerberos_plugin():
        pytest.skip("no GSSAPI for libsasl2: apt-get install libsasl2-modules-gssapi-mit")
    ended = of_kcat[mechanism, is_right]
    if is_right:
        assert ended.returncode == 0, ended
        assert f"kcat-{mechanism}-True" in topics_of(broker)
    else:
        assert ended.returncode != 0
        assert re.search(SAID.get(mechanism, "uthentication failed"), ended.stderr.decode()), ended


def _has_kerberos_plugin() -> bool:
    return any(Path(folder).glob("libgssapiv2.so*") for folder in SASL_PLUGINS)


# --- Apache's tools: all rows in one process ---


@pytest.fixture(scope="module")
def of_java(secured: Secured) -> dict[tuple[str, bool], ToolResult]:
    _, clients = secured
    rows = [
        row
        for row in product(MECHANISMS, (True, False))
        if row[0] != "GSSAPI" or clients.realm is not None
    ]
    tools = []
    for mechanism, is_right in rows:
        file = clients.folder / f"java-{mechanism}-{is_right}.properties"
        told = {**clients.properties(mechanism, is_right), "default.api.timeout.ms": "8000"}
        told["request.timeout.ms"] = "4000"
        write_private(file, properties_text(told))
        where = ("--bootstrap-server", clients.address(mechanism), "--command-config", str(file))
        topic = f"java-{mechanism}-{is_right}"
        tools.append(Tool(f"{TOOLS}.TopicCommand", (*where, "--create", "--topic", topic)))
    urls = ",".join(clients.token_file(is_right).as_uri() for is_right in (True, False))
    options = [f"-D{ALLOWED_URLS}={urls}"]
    if clients.realm is not None:
        options.append(f"-Djava.security.krb5.conf={clients.realm.configuration}")
    return dict(zip(rows, run_tools(kafka_libs(), tools, *options), strict=True))


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_apaches_tools(
    secured: Secured, of_java: dict[tuple[str, bool], ToolResult], mechanism: str, is_right: bool
) -> None:
    broker, clients = secured
    require(clients, mechanism)
    ended = of_java[mechanism, is_right]
    assert (ended.status == 0) is is_right, ended
    assert (f"java-{mechanism}-{is_right}" in topics_of(broker)) is is_right


# --- our tools with clients of librdkafka ---


CONSOLE = {
    "console-producer": "",
    "console-consumer --from-beginning --max-messages 1": "a line",
    "producer-perf-test --num-records 5 --record-size 10 --throughput -1": "5 records sent",
    "consumer-perf-test --num-records 5": "5",
    "verifiable-producer --max-messages 2": '"acked":2',
    "verifiable-consumer --group-id v --max-messages 2 --reset-policy earliest": "records_consumed",
}
"""What each tool prints."""


def console(
    clients: Clients, mechanism: str, is_right: bool, name: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    file = clients.folder / f"console-{mechanism}-{is_right}.properties"
    write_private(file, properties_text(clients.properties(mechanism, is_right)))
    where = ("--bootstrap-server", clients.address(mechanism), "--command-config", str(file))
    return subprocess.run(
        [sys.executable, "-m", "millstream", name, *where, "--topic", "console", *arguments],
        input="a line\n",
        env={**os.environ, **clients.environment(is_right)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_console_tools_by_token(secured: Secured) -> None:
    _, clients = secured
    for said, shown in CONSOLE.items():
        name, *arguments = said.split()
        ended = console(clients, "OAUTHBEARER", True, name, *arguments)
        assert ended.returncode == 0, (name, ended)
        assert shown in ended.stdout, (name, ended)


def test_console_tools_say_what_their_library_cannot(secured: Secured) -> None:
    _, clients = secured
    require(clients, "GSSAPI")
    ended = console(clients, "GSSAPI", True, "console-producer")
    assert ended.returncode != 0
    assert "confluent-kafka is built without it" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
