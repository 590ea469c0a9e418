"""`millstream cluster start`: the brokers of a machine with many cores, each a process of its own.

They run as by `millstream broker start`, with the settings that `machine` computes. A broker that
ends is started again; at SIGTERM all hand over what they lead, and end.
"""

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.sources import PREFIX, collect_settings
from broker.log.meta_properties import InconsistentLogDirectory
from broker.server.network.listener import bind
from broker.server.quorum.initial_controllers import format_if_new
from common.kafka.errors import KafkaError
from common.process.command_parser import CommandParser
from common.process.properties import read_properties
from common.process.starting import announce, configure_logging
from common.process.tasks import spawn
from millstream.processes.child_processes import Child, ChildDiedError
from millstream.processes.cluster_layout import random_cluster_id
from millstream.processes.switchboard import write_whole
from stack.machine import QUORUM, bound_endpoints, configs_of_brokers, whole_cluster

MAX_BROKERS: Final = 256
INVALID_CONFIGURATION: Final = 2
_IDENTITY: Final = ("CLUSTER_ID", "INITIAL_CONTROLLERS")
"""The variables with which a new broker is formatted."""
_STOP_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM; 2 for a wrong argument or setting, 1 if an address is taken."""
    options = parser().parse_args(arguments)
    configure_logging()
    try:
        brokers = brokers_of(options)
    except (KafkaError, InconsistentLogDirectory, ValueError, OSError) as error:
        print(f"millstream cluster start: {error}", file=sys.stderr)
        return 1 if isinstance(error, OSError) else INVALID_CONFIGURATION
    return asyncio.run(_run(brokers))


class _Broker(Child):
    """A broker with its arguments."""

    is_kept = True

    def __init__(self, node_id: int, arguments: list[str], environment: Mapping[str, str]) -> None:
        super().__init__(
            f"broker-{node_id}", None, environment=environment, stop_seconds=_STOP_SECONDS
        )
        self.arguments = arguments

    async def run(self) -> None:
        """Start it, again whenever it ends."""
        with suppress(ChildDiedError):
            await self.start("broker", "start", *self.arguments, ready_seconds=None)
        await self.watch()


def brokers_of(options: argparse.Namespace) -> list[_Broker]:
    """Check everything, format what is new, and return the brokers, which are not started.

    Raise KafkaError, InconsistentLogDirectory, ValueError, OSError.
    """
    folder: Path = options.dir.absolute()
    given = collect_settings(
        file=options.properties, environment=os.environ, overrides=options.override
    )
    settings = {**({} if options.properties else whole_cluster(options.brokers)), **given}
    configs = configs_of_brokers(settings, options.brokers, folder, socket.gethostname())
    for each in (at for config in configs for at in bound_endpoints(config)):
        bind(each.host, each.port).close()
    identity = {name: os.environ[name] for name in _IDENTITY if name in os.environ}
    if QUORUM in configs[0].given.keys() - settings.keys() and not identity:
        identity = _kept_identity(configs[0], folder / "cluster.env")
    for config in configs:
        with suppress(OSError):  # The disk of one broker is broken: the others do without it.
            format_if_new(config, identity)
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    shared = [str(options.properties)] if options.properties else []
    shared += [f"--override={each}" for each in options.override]
    return [
        _Broker(config.node_id, shared + _overrides(config, given), {**variables, **identity})
        for config in configs
    ]


def _kept_identity(controller: BrokerConfig, file: Path) -> dict[str, str]:
    """Return the variables of a cluster with this only controller, from the file if it is there."""
    if not file.exists():
        voter = f"{controller.node_id}@{controller.given[QUORUM]}:{random_cluster_id()}"
        pairs = zip(_IDENTITY, (random_cluster_id(), voter), strict=True)
        write_whole(file, "".join(f"{name}={value}\n" for name, value in pairs))
    return read_properties(file)


def _overrides(config: BrokerConfig, given: Mapping[str, str]) -> list[str]:
    """Return arguments for what the broker is not given already: that may be secret."""
    own = ((name, value) for name, value in config.given.items() if given.get(name) != value)
    return [f"--override={name}={value}" for name, value in own]


async def _run(brokers: Sequence[_Broker]) -> int:
    running = spawn(_run_all(brokers))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
    return 0


async def _run_all(brokers: Sequence[_Broker]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for each in brokers:
                group.create_task(each.run())
            group.create_task(_announce(brokers))
    finally:
        # The controller last: a broker that stops asks it for other leaders.
        await asyncio.gather(*(each.stop() for each in brokers[1:]))
        await brokers[0].stop()


async def _announce(brokers: Sequence[_Broker]) -> None:
    """Say that all are ready, with the addresses for clients."""
    while True:
        if all(each.is_ready for each in brokers):
            return announce("cluster", ",".join(each.address for each in brokers))
        await asyncio.sleep(_POLL_SECONDS)


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    found = CommandParser(
        prog="millstream cluster start",
        description="Run the brokers of a machine with many cores until SIGTERM. A broker that "
        "ends is started again. All have the settings of one file, but the n-th has the next "
        "node.id, the next port of every listener, and its own folder, and only the first is a "
        "controller. Without a file it is a whole cluster on this machine.",
        examples=[
            "millstream cluster start --brokers 3 --dir data",
            "millstream cluster start server.properties --brokers 8 --dir /var/lib/millstream",
        ],
    )
    found.add_argument(
        "properties", nargs="?", type=Path, help="a server.properties file, as Kafka's"
    )
    found.add_argument(
        "--brokers", type=_count, required=True, metavar="N", help="how many; about one a core"
    )
    found.add_argument(
        "--dir", type=Path, required=True, help="where the folders broker-1, broker-2, ... are"
    )
    found.add_argument(
        "--override", action="append", default=[], metavar="NAME=VALUE", help="one more setting"
    )
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_BROKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and {MAX_BROKERS}")
    return int(text)
