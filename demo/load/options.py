"""The options of `millstream load`."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from common.credentials import access
from common.credentials.access import KafkaAccess
from common.credentials.translation import ClientSettingsError
from common.process.command_parser import CommandParser
from demo.load.arrivals import PROFILES
from demo.load.faults import Slow, parse_slow

_ADDRESSES = (
    "--orders-url http://127.0.0.1:8090 --bootstrap-servers 127.0.0.1:9092 "
    "--registry-url http://127.0.0.1:8081"
)
EXAMPLES = (
    f"millstream load {_ADDRESSES} --catalogue --rate 100 --seconds 60",
    f"millstream load {_ADDRESSES} --declined 0.1 --poison 5 --report load.json",
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a load."""

    orders_url: str
    kafka: KafkaAccess
    registry_url: str
    rate: float
    seconds: float
    profile: str
    seed: int
    judged_seconds: float
    publishes_catalogue: bool
    declined: float
    poison: int
    slow: Sequence[Slow]
    report: Path | None


def parse_options(arguments: Sequence[str]) -> Options:
    """Parse the options; invalid ones end the program with a message."""
    parser = CommandParser(
        prog="millstream load",
        description="Send generated orders at a fixed rate (an open loop), and report their "
        "results. `millstream demo` prints the addresses when it is ready.",
        examples=EXAMPLES,
        # Without this, `--orders 500` would mean --orders-url.
        allow_abbrev=False,
    )
    parser.add_argument("--orders-url", type=_url, required=True, help="the orders service")
    _add_address(parser, "--bootstrap-servers", "KAFKA_BOOTSTRAP_SERVERS", "Kafka's host:port")
    access.add_option(parser)
    _add_address(parser, "--registry-url", "SCHEMA_REGISTRY_URL", "the schema registry", _url)
    parser.add_argument("--rate", type=_positive, default=50.0, help="highest orders per second")
    parser.add_argument("--seconds", type=_positive, default=30.0, help="the duration of the load")
    parser.add_argument(
        "--profile", choices=sorted(PROFILES), default="constant", help="the rate over time"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed sends the same orders")
    parser.add_argument(
        "--judged-seconds",
        type=_positive,
        default=60.0,
        help="the longest wait after the last order until all are VALIDATED or FAILED",
    )
    parser.add_argument(
        "--catalogue",
        action="store_true",
        help="first publish the products of the generated orders, with their stock",
    )
    parser.add_argument("--report", type=Path, help="also write the report to this JSON file")
    faults = parser.add_argument_group("faults to cause")
    faults.add_argument(
        "--declined", type=_share, default=0.0, help="share of orders with a declined payment"
    )
    faults.add_argument(
        "--poison", type=_count, default=0, help="number of invalid records in topic orders"
    )
    faults.add_argument(
        "--slow",
        type=parse_slow,
        action="append",
        default=[],
        metavar="URL=MS",
        help="make a service wait before each batch; it must run with --allow-faults 1",
    )
    found = parser.parse_args(arguments)
    try:
        kafka = access.kafka_access(found.bootstrap_servers, found.command_config)
    except ClientSettingsError as error:
        parser.error(str(error))
    return Options(
        orders_url=found.orders_url,
        kafka=kafka,
        registry_url=found.registry_url,
        rate=found.rate,
        seconds=found.seconds,
        profile=found.profile,
        seed=found.seed,
        judged_seconds=found.judged_seconds,
        publishes_catalogue=found.catalogue,
        declined=found.declined,
        poison=found.poison,
        slow=found.slow,
        report=found.report,
    )


def _add_address(
    parser: CommandParser, flag: str, variable: str, what: str, kind: Callable[[str], str] = str
) -> None:
    """Add an address whose default is a variable that `millstream up` prints."""
    default = os.environ.get(variable)
    parser.add_argument(
        flag, type=kind, default=default, required=not default, help=f"{what} ({variable})"
    )


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError("must be like http://127.0.0.1:8080")
    return text.rstrip("/")


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError("must be more than 0, and below a million")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number
