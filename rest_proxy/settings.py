"""The settings, with the names of Confluent's REST proxy.

They come from a properties file (`--config`), from variables (`KAFKA_REST_BOOTSTRAP_SERVERS` is
`bootstrap.servers`, as in Confluent's images) and from `--override name=value`; the later wins. An
unknown name is refused: nothing is accepted and ignored.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from common.credentials.access import KafkaAccess, add_option, kafka_access
from common.credentials.translation import ClientSettingsError
from common.http.security import (
    OPEN,
    HttpSecurity,
    add_http_option,
    check_listener,
    http_security,
)
from common.process.command_parser import CommandParser
from common.process.properties import read_layers, suggestion
from rest_proxy.endpoints import EndpointLists
from rest_proxy.kafka.client_outcomes import client_outcomes

_ENVIRONMENT: Final = "KAFKA_REST_"
_OF_UP: Final = {
    "KAFKA_BOOTSTRAP_SERVERS": "bootstrap.servers",
    "SCHEMA_REGISTRY_URL": "schema.registry.url",
}
"""The variables of clients that `millstream up` prints are the weakest source of settings."""
_ADDRESS_OF_PROXY: Final = "KAFKA_REST_URL"
"""Where a proxy is, for its clients, as `millstream up` prints it; no setting of a proxy."""
_CLIENT: Final = "client."
_OF_CLIENTS: Final = (_CLIENT, "producer.", "consumer.", "admin.")


class SettingsError(ValueError):
    """A setting that cannot be used; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: its default as text, and its meaning."""

    default: str
    what: str


KNOWN: Final[dict[str, Setting]] = {
    "bootstrap.servers": Setting(
        default="127.0.0.1:9092", what="Kafka's host:port, several with commas"
    ),
    "schema.registry.url": Setting(
        default="http://127.0.0.1:8081", what="the schema registry; empty: none"
    ),
    "listeners": Setting(
        default="http://127.0.0.1:8082", what="the address at which HTTP is served"
    ),
    "advertised.listeners": Setting(
        default="", what="the address that links in answers have, http://host:port"
    ),
    "host.name": Setting(default="", what="the host that links in answers have"),
    "id": Setting(
        default="",
        what="this proxy's name, which becomes a part of the names of consumer instances",
    ),
    "consumer.request.timeout.ms": Setting(
        default="1000", what="how long a consumer's read waits for records at most"
    ),
    "consumer.request.max.bytes": Setting(
        default="67108864", what="how many bytes of records a consumer's read returns at most"
    ),
    "consumer.instance.timeout.ms": Setting(
        default="300000", what="how long a consumer instance may be unused before it is closed"
    ),
    "consumer.instances.max": Setting(
        default="1000", what="how many consumer instances there may be at a time"
    ),
    "consumer.join.timeout.ms": Setting(
        default="10000", what="how long a consumer's first read waits for partitions"
    ),
    "fetch.min.bytes": Setting(
        default="-1",
        what="a read returns when it has this many bytes; -1: it waits for its whole time",
    ),
    "max.poll.records": Setting(
        default="500", what="how many records a consumer takes from Kafka at once at most"
    ),
    "request.max.bytes": Setting(
        default="33554432", what="the largest body of a request, in bytes"
    ),
    "request.max.records": Setting(
        default="100000", what="how many records a request of version 2 has at most"
    ),
    "api.v2.enable": Setting(default="true", what="whether version 2 is served"),
    "api.v3.enable": Setting(default="true", what="whether version 3 is served"),
    "api.endpoints.allowlist": Setting(
        default="", what="the endpoints that are served, as api.v3.topics.list,api.v3.acls.*"
    ),
    "api.endpoints.blocklist": Setting(default="", what="the endpoints that are not served"),
    "api.v3.produce.batch.maximum.entries": Setting(
        default="10", what="how many records a batch of version 3 has at most"
    ),
    "api.v3.produce.rate.limit.enabled": Setting(
        default="false", what="whether the rate of records of version 3 is limited"
    ),
    "api.v3.produce.rate.limit.max.requests.per.sec": Setting(
        default="10000", what="the limit of records a second"
    ),
    "api.v3.produce.rate.limit.max.bytes.per.sec": Setting(
        default="10000000", what="the limit of bytes a second"
    ),
    "streaming.connection.max.duration.ms": Setting(
        default="86400000", what="how long one stream of records may be open"
    ),
    "allowed.hosts": Setting(
        default="", what="more names by which clients may reach the proxy; *: all"
    ),
    "access.control.allow.origin": Setting(
        default="", what="origins whose web pages may call the proxy, with commas; *: all"
    ),
    "neighbours": Setting(
        default="", what="servers to link to: name=http://..., with commas between"
    ),
    "producer.acks": Setting(
        default="all", what="which replicas must store a record before it is confirmed: 0, 1 or all"
    ),
    "producer.delivery.timeout.ms": Setting(
        default="10000", what="how long the proxy tries to have a record stored"
    ),
    "producer.linger.ms": Setting(
        default="1", what="how long a record waits for others to be sent with it"
    ),
    "producer.compression.type": Setting(
        default="none", what="the compression of records: none, gzip, snappy, lz4 or zstd"
    ),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; every known name has a value."""

    values: Mapping[str, str]
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of clients of Kafka, with their prefixes: see `rest_proxy.kafka.client_outcomes`."""
    http: HttpSecurity = OPEN
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to reach a secured schema registry."""

    @classmethod
    def of(cls, said: Mapping[str, str]) -> "Settings":
        """Check settings. Raises SettingsError."""
        of_clients = {
            name: value
            for name, value in said.items()
            if name not in KNOWN and name.startswith(_OF_CLIENTS)
        }
        unknown = sorted(said.keys() - KNOWN.keys() - of_clients.keys())
        if unknown:
            nearest = suggestion(unknown[0], KNOWN)
            raise SettingsError(f"{unknown[0]} is no setting of the REST proxy{nearest}")
        own = {name: said.get(name, each.default) for name, each in KNOWN.items()}
        settings = cls(own, of_clients)
        settings.check()
        return settings

    def check(self) -> None:
        """Read every value once; raises SettingsError."""
        for name, each in KNOWN.items():
            if each.default.lstrip("-").isdigit():
                self.whole(name)
            if each.default in ("true", "false"):
                self.flag(name)
        entries = self.whole("api.v3.produce.batch.maximum.entries")
        if not 1 <= entries <= 50:
            raise SettingsError(f"api.v3.produce.batch.maximum.entries={entries}: 1 to 50")
        self.address()
        try:
            client_outcomes(self.client)
        except ClientSettingsError as error:
            raise SettingsError(str(error)) from None
        try:
            self.endpoints()
        except ValueError as error:
            raise SettingsError(f"api.endpoints.allowlist or .blocklist: {error}") from None

    def endpoints(self) -> EndpointLists:
        """Return which endpoints are served; raises ValueError."""
        kinds = ("allowlist", "blocklist")
        return EndpointLists(*(_names(self.values[f"api.endpoints.{kind}"]) for kind in kinds))

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def whole(self, name: str) -> int:
        """Return a number; raises SettingsError."""
        try:
            number = int(self.values[name])
        except ValueError:
            raise SettingsError(f"{name}={self.values[name]!r} is no whole number") from None
        if number < -1 or (number < 0 and name != "fetch.min.bytes"):
            raise SettingsError(f"{name}={number} is below zero")
        return number

    def flag(self, name: str) -> bool:
        """Return a yes or no; raises SettingsError."""
        text = self.values[name].lower()
        if text not in ("true", "false"):
            raise SettingsError(f"{name}={self.values[name]!r}: true or false")
        return text == "true"

    def address(self) -> tuple[str, int]:
        """Return the host and the port to listen on; raises SettingsError."""
        return parse_listener("listeners", self.values["listeners"])


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def parse_listener(name: str, text: str) -> tuple[str, int]:
    """Return host and port of http://host:port; raises SettingsError."""
    parts = urlsplit(text.split(",")[0].strip())
    try:
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"{name}={text!r}: {error}") from None
    if "," in text or parts.scheme not in ("http", "https"):
        raise SettingsError(f"{name}={text!r}: one http://host:port or https://host:port")
    return parts.hostname or "", 8082 if port is None else port


def read_settings(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Read the settings of a process. Raises SettingsError; wrong arguments end the program."""
    parser = CommandParser(
        prog="millstream rest-proxy",
        description="Kafka over HTTP, with Confluent's REST API v2 and v3.",
        epilog="Settings: " + "; ".join(f"{k} ({s.what})" for k, s in KNOWN.items()),
        examples=[
            "millstream rest-proxy --config rest-proxy.properties",
            "millstream rest-proxy --override bootstrap.servers=localhost:9092 "
            "--override listeners=http://127.0.0.1:8082",
        ],
    )
    parser.add_argument("--config", type=Path, help="a properties file")
    parser.add_argument(
        "--override", action="append", default=[], metavar="NAME=VALUE", help="one setting"
    )
    add_option(parser, environment)
    add_http_option(parser, environment)
    options: Any = parser.parse_args(arguments)
    access = _access_of(options.command_config)
    said = {name: environment[each] for each, name in _OF_UP.items() if environment.get(each)}
    said |= {f"{_CLIENT}{name}": value for name, value in access.properties.items()}
    variables = {
        name.removeprefix(_ENVIRONMENT).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(_ENVIRONMENT) and name != _ADDRESS_OF_PROXY
    }
    try:
        said |= read_layers(options.config, variables, options.override)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    settings = replace(Settings.of(said), registry=access.registry)
    try:
        http = http_security(options.http_config)
        check_listener(http, settings["listeners"])
    except ClientSettingsError as error:
        raise SettingsError(str(error)) from None
    return replace(settings, http=http)


def _access_of(file: str) -> KafkaAccess:
    try:
        return kafka_access("", file)
    except ClientSettingsError as error:
        raise SettingsError(str(error)) from None
