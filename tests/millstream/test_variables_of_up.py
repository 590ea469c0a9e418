"""The variables that `millstream up` prints are the defaults of every command."""

import os

import pytest

from broker.cli.arguments import add_connection, connection_of, tool_parser
from common.kafka.settings import KafkaSettings
from common.process.settings import read_settings
from connect.client.arguments import parse_arguments
from demo.load.options import parse_options
from rest_proxy.settings import read_settings as read_proxy_settings

ADDRESS = "127.0.0.1:19092"


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", ADDRESS)
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", "http://127.0.0.1:18081")
    monkeypatch.setenv("CONNECT_URL", "http://127.0.0.1:18083")
    monkeypatch.setenv("KAFKA_REST_URL", "http://127.0.0.1:18082")


def bootstrap_of(*arguments: str) -> tuple[tuple[tuple[str, int], ...], bool]:
    parser = tool_parser("topics", "A tool.")
    add_connection(parser, is_required=True)
    settings = connection_of(parser.parse_args(list(arguments)))
    return settings.bootstrap, settings.is_controller_bootstrap


def test_a_tool_takes_the_brokers_from_the_variable() -> None:
    assert bootstrap_of() == ((("127.0.0.1", 19092),), False)


def test_a_flag_wins_over_the_variable() -> None:
    assert bootstrap_of("--bootstrap-server", "a:1") == ((("a", 1),), False)
    assert bootstrap_of("--bootstrap-server=a:1") == ((("a", 1),), False)


def test_the_address_of_a_controller_wins_over_the_variable() -> None:
    assert bootstrap_of("--bootstrap-controller", "a:1") == ((("a", 1),), True)


def test_programs_take_the_addresses_from_the_variables() -> None:
    settings = read_settings(KafkaSettings, "program", "A program.", [], os.environ)
    assert settings.bootstrap_servers == ADDRESS
    assert read_proxy_settings([])["bootstrap.servers"] == ADDRESS
    assert parse_arguments(["list"]).url == "http://127.0.0.1:18083"
    options = parse_options(["--orders-url", "http://127.0.0.1:18090"])
    assert options.kafka.bootstrap_servers == ADDRESS
    assert options.registry_url == "http://127.0.0.1:18081"
