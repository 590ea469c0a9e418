"""The arguments of `millstream connect`: one command for each call of the REST interface."""

import argparse
import os
from pathlib import Path
from typing import Final

from common.credentials.access import add_option
from common.process.command_parser import CommandParser, add_command
from connect.client.examples import EXAMPLES

DEFAULT_URL: Final = "http://localhost:8083"
VARIABLE: Final = "CONNECT_URL"
"""The variable that `millstream up` prints."""
_CONNECTOR_FILE: Final = (
    "a connector as .properties, or as .json: its configuration, or what POST /connectors takes; "
    "- is JSON on standard input"
)

Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no other name for it


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Return `command` and what belongs to it; ends the program for what is no command."""
    parser = CommandParser(
        prog="millstream connect",
        description="Runs connectors, and asks those that run.",
        epilog="Ends with 1 when the worker refuses, is not there or shows a failure, "
        "with 2 for a mistake in the arguments.",
        examples=["millstream connect start worker.properties", "millstream connect status shop"],
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    start = _command(commands, "start", "run a worker until SIGTERM")
    start.add_argument("worker", type=Path, help="the worker's properties file")
    add_option(start)
    start.add_argument("connectors", type=Path, nargs="*", help="connectors to begin with")
    _add_questions(commands)
    _add_changes(commands)
    _add_worker(commands)
    for name, each in commands.choices.items():
        if name != "start":
            _add_common(each)
    return parser.parse_args(arguments)


def _command(commands: "Commands[CommandParser]", name: str, what: str) -> CommandParser:
    return add_command(commands, name, what, *EXAMPLES[name])


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        default=os.environ.get(VARIABLE) or DEFAULT_URL,
        help=f"a worker, any of the cluster ({VARIABLE}, or {DEFAULT_URL}); "
        "http://user:password@host:port when it asks who you are",
    )
    parser.add_argument("--json", action="store_true", help="what the worker said, for programs")


def _add_questions(commands: "Commands[CommandParser]") -> None:
    _command(commands, "list", "the connectors and how they are")
    status = _command(
        commands, "status", "a connector and its tasks; ends with 1 when one has failed"
    )
    _name(status)
    tasks = _command(commands, "tasks", "the configurations of a connector's tasks")
    _name(tasks)
    topics = _command(commands, "topics", "the topics a connector has used")
    _name(topics)
    topics.add_argument("--reset", action="store_true", help="forget them")
    offsets = _command(commands, "offsets", "where a connector is; of a stopped one, change")
    _name(offsets)
    change = offsets.add_mutually_exclusive_group()
    change.add_argument(
        "--alter", type=Path, metavar="FILE", help='JSON: {"offsets": [{"partition", "offset"}]}'
    )
    change.add_argument("--reset", action="store_true", help="begin anew")
    validate = _command(
        commands, "validate", "what is wrong with a configuration; ends with 1 when something is"
    )
    validate.add_argument("file", type=Path, help=_CONNECTOR_FILE)
    preview = _command(
        commands,
        "preview",
        "what a configuration would do with ten records, while nothing is written",
    )
    preview.add_argument("file", type=Path, help=_CONNECTOR_FILE)


def _add_changes(commands: "Commands[CommandParser]") -> None:
    create = _command(commands, "create", "add a connector")
    create.add_argument("file", type=Path, help=_CONNECTOR_FILE)
    create.add_argument(
        "--state", choices=("running", "paused", "stopped"), help="what it begins as (running)"
    )
    config = _command(commands, "config", "show a connector's configuration, or change it")
    _name(config)
    config.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="change one setting"
    )
    config.add_argument(
        "--remove", action="append", default=[], metavar="SETTING", help="take one setting away"
    )
    config.add_argument("--file", type=Path, help="put this in its place: " + _CONNECTOR_FILE)
    for name, what in (
        ("pause", "hold connectors, which keep their tasks"),
        ("resume", "let connectors go on, paused or stopped"),
        ("stop", "end connectors' tasks; the connectors stay, and their offsets can be changed"),
        ("delete", "remove connectors"),
    ):
        _name(_command(commands, name, what), nargs="+")
    restart = _command(commands, "restart", "start a connector again, or its tasks")
    _name(restart)
    restart.add_argument("--include-tasks", action="store_true", help="its tasks too")
    restart.add_argument("--only-failed", action="store_true", help="what has not failed runs on")
    restart.add_argument("--task", type=int, metavar="NUMBER", help="only this task")


def _add_worker(commands: "Commands[CommandParser]") -> None:
    plugins = _command(commands, "plugins", "what can be plugged in, or one's settings")
    plugins.add_argument("plugin", nargs="?", help="a plugin, whose settings are shown")
    plugins.add_argument(
        "--all", action="store_true", help="converters, transformations and predicates too"
    )
    loggers = _command(commands, "loggers", "log levels of the worker, or change one")
    loggers.add_argument("logger", nargs="?", help="only this one, or root")
    loggers.add_argument("--level", help="set it, and what is below it: TRACE to FATAL, OFF")
    loggers.add_argument(
        "--scope", choices=("worker", "cluster"), default="worker", help="at which workers (worker)"
    )
    _command(commands, "worker", "version, cluster and health of the worker")


def _name(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    if nargs is None:
        parser.add_argument("connector", help="its name")
    else:
        parser.add_argument("connectors", nargs=nargs, metavar="connector", help="their names")
