"""The arguments of `millstream lab`."""

import argparse
import logging

from rich.console import Console

from common.process.command_parser import CommandParser, add_command
from demo.labs.failover import Failover
from demo.labs.mirror import (
    MirrorBothWays,
    MirrorFailover,
    MirrorHubAndSpoke,
    MirrorMigration,
    MirrorWalk,
)
from demo.labs.steps import StepFailedError, Steps
from demo.labs.work_queue import WorkQueue
from millstream.testing import BrokerFailedError

REPLICATION_FACTOR = 3
INTERRUPTED = 130
WALKS = {
    "failover": "kill a broker under load, and restart it",
    "work-queue": "a share group as a work queue: workers die, one order cannot be packed",
    "mirror-failover": "move a group to a mirrored cluster, and back",
    "mirror-both-ways": "mirror two clusters to each other, without loops",
    "mirror-hub-and-spoke": "collect the orders of branches, send prices to all branches",
    "mirror-migration": "move a topic and its group to another cluster while orders arrive",
}


def main(arguments: list[str]) -> int:
    """Run one walk, or list them; return 1 if a step fails."""
    if not arguments:
        _parser().print_help()
        return 0
    options = _parser().parse_args(arguments)
    # The client's log messages about a dead broker would appear between the steps.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    logging.getLogger("aiokafka").propagate = False
    console = Console(highlight=False)
    steps = Steps(console, options.patience_seconds)
    try:
        _walk(options, steps).walk()
    except (StepFailedError, BrokerFailedError) as error:
        console.print(f"[red]The step failed:[/] {error}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("stopped")
        return INTERRUPTED
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="millstream lab",
        description="Show on this machine, step by step, what clusters do when something breaks.",
        examples=[
            "millstream lab failover",
            "millstream lab mirror-failover --patience-seconds 120",
        ],
    )
    walks = parser.add_subparsers(dest="walk", metavar="WALK", required=True)
    for name, what in WALKS.items():
        more = "--partitions 3" if name == "failover" else "--patience-seconds 120"
        walk = add_command(
            walks, name, what, f"millstream lab {name}", f"millstream lab {name} {more}"
        )
        walk.add_argument(
            "--patience-seconds", type=float, default=60.0, help="the longest time of a step"
        )
    failover, migration = walks.choices["failover"], walks.choices["mirror-migration"]
    failover.add_argument(
        "--replication-factor", type=int, default=REPLICATION_FACTOR, metavar="COUNT",
        help=f"replicas of each partition; default {REPLICATION_FACTOR}",
    )  # fmt: skip
    failover.add_argument(
        "--partitions",
        type=int,
        default=13,
        metavar="COUNT",
        help="number of partitions; default 13",
    )
    migration.add_argument(
        "--from",
        dest="source",
        metavar="HOST:PORT",
        help="the Kafka from which topic `orders` is moved; default: a new cluster",
    )
    return parser


def _walk(options: argparse.Namespace, steps: Steps) -> Failover | MirrorWalk | WorkQueue:
    match options.walk:
        case "work-queue":
            return WorkQueue(steps)
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
