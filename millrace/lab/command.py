"""The arguments of `millrace lab`."""

import argparse
import logging

from rich.console import Console

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


def main(arguments: list[str]) -> int:
    """Run one walk; 1 when a step does not come true."""
    parser = argparse.ArgumentParser(prog="millrace lab", description="Walks through what breaks.")
    walks = parser.add_subparsers(dest="walk", metavar="WALK", required=True)
    failover = walks.add_parser("failover", help="a broker is killed under load, and comes back")
    failover.add_argument(
        "--replication-factor", type=int, default=REPLICATION_FACTOR, metavar="COUNT"
    )
    failover.add_argument("--partitions", type=int, default=13, metavar="COUNT")
    walks.add_parser(
        "mirror-failover", help="a group goes on in a mirrored cluster, and comes back"
    )
    walks.add_parser("mirror-both-ways", help="two clusters follow each other, nothing goes round")
    walks.add_parser(
        "mirror-hub-and-spoke", help="branches' orders come together, prices go to all branches"
    )
    migration = walks.add_parser(
        "mirror-migration", help="a topic and its group move house while orders come in"
    )
    migration.add_argument(
        "--from",
        dest="source",
        metavar="HOST:PORT",
        help="a Kafka to move topic `orders` from (one is started)",
    )
    for each in walks.choices.values():
        each.add_argument(
            "--patience-seconds", type=float, default=60.0, help="how long a step may take"
        )
    options = parser.parse_args(arguments)
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
