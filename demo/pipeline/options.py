"""The options of the demo, from the command line or, with `make demo`, from the environment."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from common.credentials.access import MEANING
from common.process.command_parser import CommandParser

_SWITCHES = {
    "once": "end after the orders instead of running on",
    "lite": "without Spark, streams and the dashboard",
    "mirror": "with a second cluster, to which a mirror copies",
    "connect": "with a Connect worker even if it is lite: a database and files, see --shop",
    "secure": "with TLS, passwords, and a user with the least rights for each program",
}
_TEXTS = {
    "orders": "file or folder of real orders (CSV or CSV.gz of the Online Retail shape)",
    "bootstrap": "use this Kafka, host:port, instead of the demo's own brokers",
    "command_config": f"{MEANING}, of the Kafka of BOOTSTRAP",
    "shop": "database of products, stock and customers: postgresql://user@host/database; "
    "default: a file of SQLite",
    "install_command": "if Spark and Faust are missing, install them with this command while the "
    "pipeline runs, and start streams, Spark and the dashboard then",
    "elasticsearch": "also write orders to this server: http://user:password@host:9200",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run."""

    once: bool
    lite: bool
    mirror: bool
    connect: bool
    secure: bool
    orders: Path | None
    limit: int | None
    bootstrap: str
    shop: str
    elasticsearch: str
    install_command: str
    command_config: str
    count: int
    seed: int
    rate: float
    folder: Path
    ports: int


def parse_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Parse the options; invalid ones end the program with a message."""
    parser = CommandParser(
        prog="millstream demo",
        description="Run the whole order pipeline on this machine, and send orders through it.",
        epilog="Each option is also an environment variable: ONCE=1, ORDERS=..., and so on.",
        examples=["millstream demo", "millstream demo --lite --once --count 200"],
    )
    value = environment.get
    for name, meaning in _SWITCHES.items():
        is_set = value(name.upper(), "") not in ("", "0")
        parser.add_argument(f"--{name}", action="store_true", default=is_set, help=meaning)
    for name, meaning in _TEXTS.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, default=value(name.upper(), ""), help=meaning)
    parser.add_argument(
        "--limit", type=_count, default=value("LIMIT") or None, help="send only the first N orders"
    )
    parser.add_argument(
        "--count", type=_count, default=value("COUNT") or "500", help="number of generated orders"
    )
    parser.add_argument(
        "--seed", type=int, default=value("SEED") or "1", help="seed of the generated orders"
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=value("RATE") or None,
        help="orders per second; 0: as fast as possible; default 100 for generated orders, else 0",
    )
    parser.add_argument(
        "--ports",
        type=int,
        default=value("PORTS") or "0",
        help="use this port and the ports after it; default: free ports",
    )
    found = parser.parse_args(arguments)
    orders = Path(found.orders) if found.orders else None
    if orders is not None and not orders.exists():
        parser.error(f"ORDERS: {orders} does not exist")
    if found.secure and found.bootstrap:
        parser.error("SECURE: only the demo's own brokers; for BOOTSTRAP there is COMMAND_CONFIG")
    if found.secure and find_spec("cryptography") is None:
        parser.error("SECURE needs: pip install 'millstream[security]'")
    if found.command_config and not found.bootstrap:
        parser.error("COMMAND_CONFIG: the demo's own brokers need none; it goes with BOOTSTRAP")
    return Options(
        once=found.once,
        lite=found.lite,
        mirror=found.mirror,
        connect=found.connect or bool(found.shop or found.elasticsearch),
        secure=found.secure,
        orders=orders,
        limit=found.limit,
        bootstrap=found.bootstrap,
        shop=found.shop,
        elasticsearch=found.elasticsearch,
        install_command=found.install_command,
        command_config=found.command_config,
        count=found.count,
        seed=found.seed,
        rate=(0.0 if orders else 100.0) if found.rate is None else found.rate,
        folder=Path("build") / "demo",
        ports=found.ports,
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
