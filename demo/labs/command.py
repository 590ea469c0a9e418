"""The arguments of `millstream lab`.

A lab is a page that is read and done; a walk runs by itself and shows what a cluster does.
"""

from rich.console import Console

from common.process.command_parser import CommandParser, add_command
from common.process.ending import INTERRUPTED
from demo.labs.pages import Page
from demo.labs.walkthrough import Walkthrough, labs, standing

REPLICATION_FACTOR = 3
WALKS = {
    "failover": "kill a broker under load, and restart it",
    "work-queue": "a share group as a work queue: workers die, one order cannot be packed",
    "mirror-failover": "move a group to a mirrored cluster, and back",
    "mirror-both-ways": "mirror two clusters to each other, without loops",
    "mirror-hub-and-spoke": "collect the orders of branches, send prices to all branches",
    "mirror-migration": "move a topic and its group to another cluster while orders arrive",
}


def main(arguments: list[str]) -> int:
    """Run a lab or a walk, or list them; return 1 if a step fails."""
    pages = labs()
    if not arguments:
        _list(pages, Console(highlight=False))
        return 0
    options = _parser(pages).parse_args(arguments)
    if options.walk in pages:
        return _do_lab(options.walk, pages[options.walk])
    # Imported here: the walks take two thirds of the start of a lab.
    from demo.labs.walks import run_walk

    return run_walk(options)


def _list(pages: dict[str, Page], console: Console) -> None:
    """Print the labs with how far the reader has come, and the walks."""
    width = max(map(len, [*pages, *WALKS]))
    console.print("Labs, ten minutes each: millstream lab NAME")
    for name, page in pages.items():
        line = f"  {name:{width}}  {page.title:60} {standing(name, page)}".rstrip()
        console.print(line, markup=False, soft_wrap=True)
    console.print("\nWalks, which run by themselves: millstream lab NAME")
    for name, what in WALKS.items():
        console.print(f"  {name:{width}}  {what}", markup=False, soft_wrap=True)


def _do_lab(name: str, page: Page) -> int:
    try:
        return 0 if Walkthrough(name, page, Console(highlight=False)).run() else 1
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED


def _parser(pages: dict[str, Page]) -> CommandParser:
    parser = CommandParser(
        prog="millstream lab",
        description="Do a lab: read, type, see. Or watch what clusters do when something breaks.",
        examples=[
            "millstream lab first-topic",
            "millstream lab failover",
        ],
    )
    walks = parser.add_subparsers(dest="walk", metavar="NAME", required=True)
    for name, what in WALKS.items():
        more = "--partitions 3" if name == "failover" else "--patience-seconds 120"
        walk = add_command(
            walks, name, what, f"millstream lab {name}", f"millstream lab {name} {more}"
        )
        walk.add_argument(
            "--patience-seconds", type=float, default=60.0, help="the longest time of a step"
        )
    for name, page in pages.items():
        add_command(walks, name, page.title, f"millstream lab {name}")
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
