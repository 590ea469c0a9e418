"""The options of `millstream up`, `status`, `down` and `logs`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.process.command_parser import CommandParser
from stack.ports import BROKER, PARTS
from stack.security import SASL_SSL
from stack.seeds import SeedError, Seeds, read_seeds, together

MAX_BROKERS = 9
READY_SECONDS = 120
_PARTS_HELP = "broker-1, registry, rest-proxy, connect, console"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `millstream up`."""

    name: str
    brokers: int
    parts: tuple[str, ...]
    given: frozenset[str]
    """--brokers, --only and --name if the user gave them: they have defaults."""
    data_folder: Path | None
    is_ephemeral: bool
    any_port: bool
    offset: int
    seeds: Seeds
    wait_seconds: int
    is_json: bool
    security: str
    """sasl_ssl, or empty."""
    is_testing: bool


def up_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream up",
        description="Start a development stack in the background: broker 9092, schema registry "
        "8081, REST proxy 8082, Connect 8083, console 8080. Return when it is ready "
        "and has its seeds. A second `up` shows the running stack.",
        examples=["millstream up", "millstream up --brokers 3 --only broker,registry --ephemeral"],
    )
    parser.add_argument("--brokers", type=int, metavar="N", help="1 to 9; default 1")
    parser.add_argument("--only", metavar="PARTS", help=f"start only these: {','.join(PARTS)}")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="the folder for data, which is kept"
    )
    parser.add_argument("--ephemeral", action="store_true", help="delete all data at the end")
    parser.add_argument("--any-port", action="store_true", help="use free ports")
    parser.add_argument(
        "--offset-ports", type=int, default=0, metavar="N", help="add N to every port"
    )
    parser.add_argument(
        "--security",
        choices=[SASL_SSL],
        default="",
        help="brokers with TLS and a password; HTTP stays open on loopback",
    )
    parser.add_argument(
        "--testing",
        action="store_true",
        help="brokers in which tests arm faults by HTTP; they sync nothing to the disk",
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics, as YAML")
    parser.add_argument(
        "--seed", type=Path, metavar="FILE", help="topics, schemas and records, as YAML"
    )
    parser.add_argument(
        "--wait", type=int, default=READY_SECONDS, metavar="SECONDS", nargs="?",
        const=READY_SECONDS, help=f"the longest wait until it is ready; default {READY_SECONDS}",
    )  # fmt: skip
    _add_name(parser)
    _add_json(parser)
    return parser


def up_options(arguments: Sequence[str]) -> UpOptions:
    """Parse the options of `up`; invalid ones end the program."""
    parser = up_parser()
    told = parser.parse_args(arguments)
    parts = tuple(PARTS if told.only is None else filter(None, told.only.split(",")))
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        parser.error(f"--only {unknown[0]}: the parts are {', '.join(PARTS)}")
    if BROKER not in parts:
        parser.error("--only: the list must contain broker")
    brokers = 1 if told.brokers is None else told.brokers
    if not 1 <= brokers <= MAX_BROKERS:
        parser.error(f"--brokers {brokers}: 1 to {MAX_BROKERS}")
    if told.data is not None and told.ephemeral:
        parser.error("--data keeps the data that --ephemeral deletes: give one of them")
    if told.any_port and told.offset_ports:
        parser.error("--any-port chooses the ports that --offset-ports moves: give one of them")
    if told.wait < 0:
        parser.error(f"--wait {told.wait}: 0 seconds or more")
    seeds: Seeds = {}
    try:
        for file in (told.topics, told.seed):
            if file is not None:
                seeds = together(seeds, read_seeds(file))
    except SeedError as error:
        parser.error(str(error))
    default = "default" if not told.offset_ports else f"offset-{told.offset_ports}"
    return UpOptions(
        name=told.name or default,
        brokers=brokers,
        parts=tuple(part for part in PARTS if part in parts),
        given=frozenset(
            flag
            for flag, value in (
                ("--brokers", told.brokers),
                ("--only", told.only),
                ("--name", told.name or None),
            )
            if value is not None
        ),
        data_folder=None if told.data is None else _absolute(parser, told.data),
        is_ephemeral=told.ephemeral,
        any_port=told.any_port,
        offset=told.offset_ports,
        seeds=seeds,
        wait_seconds=told.wait,
        is_json=told.json,
        security=told.security,
        is_testing=told.testing,
    )


def _absolute(parser: argparse.ArgumentParser, folder: Path) -> Path:
    try:
        return folder.absolute()
    except FileNotFoundError:
        parser.error(f"--data {folder}: the current directory does not exist")


def status_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream status",
        description="Show the stack that `millstream up` has started. Exit status: 0 if it is "
        "ready, 1 if it is not ready, 3 if there is none.",
        examples=["millstream status", "millstream status --json"],
    )
    _add_name(parser)
    _add_json(parser)
    return parser


def down_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream down",
        description="Stop the stack that `millstream up` has started. Its data is kept, unless it "
        "was started with --ephemeral.",
        examples=["millstream down", "millstream down --delete-data"],
    )
    _add_name(parser)
    parser.add_argument("--delete-data", action="store_true", help="also delete its data")
    return parser


def stop_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream stop",
        description="Stop one part of the stack that `millstream up` has started, to see what "
        "clients do without it. `millstream start` starts it again.",
        examples=["millstream stop broker-1", "millstream stop broker-1 --kill"],
    )
    parser.add_argument("part", help=_PARTS_HELP)
    parser.add_argument("--kill", action="store_true", help="kill it (SIGKILL), as in a crash")
    _add_name(parser)
    return parser


def start_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream start",
        description="Start a part of the stack that `millstream stop` has stopped.",
        examples=["millstream start broker-1", "millstream start connect"],
    )
    parser.add_argument("part", help=_PARTS_HELP)
    _add_name(parser)
    return parser


def logs_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="millstream logs",
        description="Show the log messages of the programs of the stack.",
        examples=["millstream logs", "millstream logs broker-1 --lines 100 --follow"],
    )
    parser.add_argument("part", nargs="?", help=f"{_PARTS_HELP}, stack")
    parser.add_argument(
        "-n", "--lines", type=int, default=20, help="the number of last lines; default 20"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines until Ctrl-C")
    _add_name(parser)
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="the name of the stack, if there are several")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")
