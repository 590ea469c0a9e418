"""The arguments of `millrace lab`."""

import argparse
import logging

from rich.console import Console

from millrace.command_parser import CommandParser, add_command
from millrace.lab.failover import Failover
from millrace.lab.mirror import (
    MirrorBothWays,
    MirrorFailover,
    MirrorHubAndSpoke,
    MirrorMigration,
    MirrorWalk,
)
from millrace.lab.steps import StepFailedError, Steps
from millrace.testing import BrokerFailedError

REPLICATION_FACTOR = 3
INTERRUPTED = 130
WALKS = {
    "failover": "a broker is killed under load, and comes back",
    "mirror-failover": "a group goes on in a mirrored cluster, and comes back",
    "mirror-both-ways": "two clusters follow each other, nothing goes round",
    "mirror-hub-and-spoke": "branches' orders come together, prices go to all branches",
    "mirror-migration": "a topic and its group move house while orders come in",
}


def main(arguments: list[str]) -> int:
    """Run one walk; 1 when a step does not come true."""
    options = _parser().parse_args(arguments)
    # The clients' own words about a broker that is gone would stand between the steps.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    logging.getLogger("aiokafka").propagate = False
    console = Console(highlight=False)
    steps = Steps(console, options.patience_seconds)
    try:
        _walk(options, steps).walk()
    except (StepFailedError, BrokerFailedError) as error:
        console.print(f"[red]It did not come true:[/] {error}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("stopped")
        return INTERRUPTED
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="millrace lab",
        description="Show on this machine, step by step, what clusters do when something breaks.",
        examples=["millrace lab failover", "millrace lab mirror-failover --patience-seconds 120"],
    )
    walks = parser.add_subparsers(dest="walk", metavar="WALK", required=True)
    for name, what in WALKS.items():
        more = "--partitions 3" if name == "failover" else "--patience-seconds 120"
        walk = add_command(walks, name, what, f"millrace lab {name}", f"millrace lab {name} {more}")
        walk.add_argument(
            "--patience-seconds", type=float, default=60.0, help="how long a step may take"
        )
    failover, migration = walks.choices["failover"], walks.choices["mirror-migration"]
    failover.add_argument(
        "--replication-factor", type=int, default=REPLICATION_FACTOR, metavar="COUNT",
        help=f"replicas of each partition; default {REPLICATION_FACTOR}",
    )  # fmt: skip
    failover.add_argument(
        "--partitions", type=int, default=13, metavar="COUNT", help="of the topic; default 13"
    )
    migration.add_argument(
        "--from",
        dest="source",
        metavar="HOST:PORT",
        help="a Kafka to move topic `orders` from (one is started)",
    )
    return parser


def _walk(options: argparse.Namespace, steps: Steps) -> Failover | MirrorWalk:
    match options.walk:
        case "mirror-failover":
            return MirrorFailover(steps)
        case "mirror-both-ways":
            return MirrorBothWays(steps)
        case "mirror-hub-and-spoke":
            return MirrorHubAndSpoke(steps)
        case "mirror-migration":
            return MirrorMigration(steps, options.source)
        case _:
            return Failover(steps, options.partitions, options.replication_factor)
