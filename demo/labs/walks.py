"""Runs one walk by its name: the clusters and clients of all walks are imported here."""

import argparse
import logging

from rich.console import Console

from common.process.ending import INTERRUPTED
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


def run_walk(options: argparse.Namespace) -> int:
    """Run the walk of the parsed arguments; return 1 if a step fails."""
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
