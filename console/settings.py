"""The command line of the console."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from common.credentials.access import KafkaAccess, add_option, kafka_access
from common.credentials.translation import ClientSettingsError
from common.http.security import OPEN, HttpSecurity, add_http_option, http_security
from common.process.command_parser import CommandParser
from console.records.masking import MaskError, MaskRule

DEFAULT_PORT: Final = 8088
_LOOPBACK: Final = "127.0.0.1"


class SettingsError(ValueError):
    """The console cannot be started like this; the message says why."""


@dataclass(frozen=True)
class ConsoleSettings:
    """What the console shows, to whom, and what it may change."""

    kafka: KafkaAccess
    http: HttpSecurity = OPEN
    host: str = _LOOPBACK
    port: int = DEFAULT_PORT
    schema_registry: str = ""
    connect: tuple[str, ...] = ()
    is_read_only: bool = False
    masks: tuple[MaskRule, ...] = field(default_factory=tuple)
    allowed_hosts: str = ""
    neighbours: str = ""
    stack: str = ""
    """The folder of the stack that started the console."""


def read_settings(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> ConsoleSettings:
    """Read the settings of a process. Raise SettingsError; wrong arguments end the program."""
    options: Any = _parser(environment).parse_args(arguments)
    for url in (options.schema_registry, *options.connect):
        if url and not url.startswith(("http://", "https://")):
            raise SettingsError(f"{url!r} is no address: http://host:port")
    try:
        return ConsoleSettings(
            kafka=kafka_access(
                options.bootstrap_servers, options.command_config, needs_librdkafka=False
            ),
            http=http_security(options.http_config),
            host=options.host,
            port=options.port,
            schema_registry=options.schema_registry,
            connect=tuple(each.rstrip("/") for each in options.connect),
            is_read_only=options.read_only,
            masks=tuple(MaskRule.of(each) for each in options.mask),
            allowed_hosts=options.allowed_hosts,
            neighbours=options.neighbours,
            stack=options.stack,
        )
    except (ClientSettingsError, MaskError) as error:
        raise SettingsError(str(error)) from None


def _parser(environment: Mapping[str, str]) -> CommandParser:
    parser = CommandParser(
        prog="millstream console",
        description="Show what is in a Kafka cluster, and change it, in a browser.",
        examples=[
            "millstream console --bootstrap-server localhost:9092",
            "millstream console --bootstrap-server kafka:9092 --read-only "
            "--mask 'customers*:value.email'",
        ],
    )
    add = parser.add_argument
    add(
        "--bootstrap-server",
        "--bootstrap-servers",
        dest="bootstrap_servers",
        default=environment.get("KAFKA_BOOTSTRAP_SERVERS", f"{_LOOPBACK}:9092"),
        metavar="HOST:PORT",
        help="Kafka's addresses, several with commas",
    )
    add_option(parser, environment)
    add(
        "--schema-registry",
        default=environment.get("SCHEMA_REGISTRY_URL", ""),
        metavar="URL",
        help="the schema registry, by which records are decoded",
    )
    add(
        "--connect",
        action="append",
        default=[],
        metavar="URL",
        help="a Connect worker; may be given several times",
    )
    add("--read-only", action="store_true", help="refuse every change")
    add(
        "--mask",
        action="append",
        default=[],
        metavar="TOPICS:PLACE",
        help="hide a part of records, as customers*:value.email; may be given several times",
    )
    add("--host", default=_LOOPBACK, help="the address to listen on: this machine's own by default")
    add("--port", type=int, default=DEFAULT_PORT, help=f"the port, {DEFAULT_PORT} by default")
    add_http_option(parser, environment)
    add(
        "--allowed-hosts",
        default=environment.get("MILLSTREAM_ALLOWED_HOSTS", ""),
        help="more names by which browsers may reach the console, with commas; *: all",
    )
    add(
        "--neighbours",
        default=environment.get("MILLSTREAM_NEIGHBOURS", ""),
        help="servers to link to: name=http://..., with commas between",
    )
    add("--stack", default="", metavar="FOLDER", help="the stack it belongs to; given by up")
    return parser
