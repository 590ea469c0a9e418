"""The arguments that Kafka's tools have in common, their errors and their help.

Kafka's tools exit with 1 after every error, argparse with 2. `UsageError` is an error in the
arguments that is printed with the usage, `ToolFailed` one that is printed alone.
"""

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, cast

from broker.cli.admin_settings import admin_settings, read_properties
from broker.cli.examples import EXAMPLES
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import KafkaError
from common.process.command_parser import odd_arguments

Run = TypeVar("Run", bound=Callable[..., int])
HELP_WIDTH = 80
ADDRESSES_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"
OLD_FLAGS = {
    "--zookeeper": "; Kafka 4 has no ZooKeeper: use --bootstrap-server HOST:PORT",
    "--broker-list": "; use --bootstrap-server HOST:PORT, as since Kafka 2.5",
}
"""Flags of old instructions, and what a message adds when a tool does not have them."""
CONTROLLER_FLAGS = {"--bootstrap-controller", "-C"}
SubCommands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no other name for it


class ToolFailed(Exception):  # noqa: N818 -- the outcome of a tool, told as it is
    """The tool failed; the user sees the text and no stack trace."""


class ToolParser(argparse.ArgumentParser):
    """An argument parser whose errors end the tool with Kafka's exit status."""

    usage_status = 1
    """The exit status of wrong arguments."""
    variables: Mapping[str, str] = MappingProxyType(
        {
            "--bootstrap-server": ADDRESSES_VARIABLE,
            "--command-config": "MILLSTREAM_COMMAND_CONFIG",
        }
    )
    """The variables that `millstream up` prints, by the flags whose defaults they are."""
    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown arguments here: the parser of a sub-command knows its own flags."""
        self._given = sys.argv[1:] if args is None else list(args)
        self._take_variables(os.environ)
        found, unknown = super().parse_known_args(self._joined(self._given), namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if odd := odd_arguments(found):
            self.error(f"Argument {odd[0]} is no UTF-8")
        return found, unknown

    def _take_variables(self, environment: Mapping[str, str]) -> None:
        """Use the variables that `millstream up` prints where their flags are not given.

        The addresses of brokers do not count beside those of controllers.
        """
        flags = {word.partition("=")[0] for word in self._given}
        for action in self._actions:
            for flag in action.option_strings:
                name = self.variables.get(flag, "")
                value = environment.get(name)
                if value and not (flags & CONTROLLER_FLAGS and name == ADDRESSES_VARIABLE):
                    action.default = value
                    action.required = False
                    for group in self._mutually_exclusive_groups:
                        group.required &= action not in group._group_actions  # noqa: SLF001

    def _joined(self, given: Sequence[str]) -> list[str]:
        """Join a long flag with its value if that begins with one dash, as in `--shift -PT1H`.

        argparse takes such a value for a flag; the parser of Kafka's tools does not.
        """
        joined: list[str] = []
        for word in given:
            action = self._option_string_actions.get(joined[-1]) if joined else None
            takes_value = action is not None and action.nargs is None and joined[-1][:2] == "--"
            has_one_dash = word[:1] == "-" and word[:2] != "--"
            if takes_value and has_one_dash and word not in self._option_string_actions:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined

    def error(self, message: str) -> NoReturn:
        """Print an error, the most similar flag or sub-command and the usage; exit."""
        print(message + self._meant(message), file=sys.stderr)
        self.print_usage(sys.stderr)
        raise SystemExit(self.usage_status)

    def _meant(self, message: str) -> str:
        """Suggest what was meant by the first flag that is unknown, or by a sub-command."""
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice:
            return _guess(choice[1], re.findall(r"[\w.-]+", choice[2]))
        flags = list(self._option_string_actions)
        for argument in self._given:
            word = argument.partition("=")[0]
            if word.startswith("--") and not any(flag.startswith(word) for flag in flags):
                unnamed = "" if word in message else f"; there is no {word}"
                return unnamed + (OLD_FLAGS.get(word) or _guess(word, flags))
        return _variable(message)


def _variable(message: str) -> str:
    is_missing = message.startswith(("Missing required", "--bootstrap-server"))
    return f" (or {ADDRESSES_VARIABLE})" if is_missing and "bootstrap-server" in message else ""


def _guess(slip: str, known: Iterable[str]) -> str:
    found = get_close_matches(slip, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def tool(prefix: str = "") -> Callable[[Run], Run]:
    """Let a tool print a refusal, behind a prefix, and return 1; its errors are those of Kafka."""

    def decorated(run: Run) -> Run:
        @wraps(run)
        def running(*arguments: Any) -> int:
            try:
                return run(*arguments)
            except (KafkaError, ToolFailed) as error:
                print(f"{prefix}{error}", file=sys.stderr)
                return 1

        return cast(Run, running)

    return decorated


def tool_parser(name: str, description: str) -> ToolParser:
    """Return the parser of one tool, with `--help` and `--version`."""
    parser = plain_tool_parser(name, description)
    parser.add_argument("--version", action=_Version, help="show the version of Millstream")
    return parser


def plain_tool_parser(name: str, description: str) -> ToolParser:
    """Return the parser of one tool without `--version`, whose short form some need themselves."""
    return ToolParser(
        prog=f"millstream {name}",
        description=textwrap.fill(description, HELP_WIDTH),
        epilog=_examples_text(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_sub_command(
    commands: "SubCommands[ToolParser]",
    tool: str,
    name: str,
    what: str,
    aliases: Sequence[str] = (),
) -> ToolParser:
    """Add a sub-command of a tool; `what` is its line in the tool's help."""
    parser: ToolParser = commands.add_parser(
        name,
        aliases=aliases,
        help=what,
        description=textwrap.fill(f"{what[0].upper()}{what[1:]}.", HELP_WIDTH),
        epilog=_examples_text(f"{tool} {name}"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _examples_text(name: str) -> str:
    return "\n  ".join(["examples:", *EXAMPLES[name]])


def add_connection(
    parser: argparse.ArgumentParser, *, has_controllers: bool = True, is_required: bool = False
) -> None:
    """Add the arguments that name the cluster."""
    group = parser.add_mutually_exclusive_group(required=is_required)
    group.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    if has_controllers:
        group.add_argument(
            "--bootstrap-controller", metavar="HOST:PORT,...", help="the controllers to connect to"
        )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a properties file with settings of the admin client",
    )


def connection_of(
    options: argparse.Namespace, *, default_timeout_ms: int = 60_000
) -> AdminSettings:
    """Return the client's settings from the arguments; raise KafkaError(INVALID_CONFIG)."""
    file = options.command_config
    return admin_settings(
        options.bootstrap_server,
        getattr(options, "bootstrap_controller", None),
        read_properties(file) if file else None,
        default_timeout_ms=default_timeout_ms,
    )


def is_given(options: argparse.Namespace, flag: str) -> bool:
    """Return True if an argument was given: `--if-exists` by its name without the dashes."""
    value = getattr(options, flag.replace("-", "_"))
    return value is not None and value is not False


def check_required(
    parser: argparse.ArgumentParser, options: argparse.Namespace, flags: Iterable[str]
) -> None:
    """Raise an error if one of these arguments is missing."""
    for flag in flags:
        if not is_given(options, flag):
            parser.error(f'Missing required argument "[{flag}]"')


def check_not_with(
    parser: argparse.ArgumentParser, options: argparse.Namespace, flag: str, others: Iterable[str]
) -> None:
    """Raise an error if an argument was given together with an incompatible one."""
    if is_given(options, flag):
        for other in others:
            if is_given(options, other):
                parser.error(f'Option "[{flag}]" can\'t be used with option "[{other}]"')


def use_new_names(
    parser: argparse.ArgumentParser, options: argparse.Namespace, deprecated: Mapping[str, str]
) -> None:
    """Copy the values of deprecated flags to the new ones, with a warning."""
    for old, new in deprecated.items():
        if not is_given(options, old):
            continue
        if is_given(options, new):
            parser.error(f"Options --{old} and --{new} cannot be specified together.")
        print(
            f"Warning: --{old} is deprecated and will be removed in a future version. "
            f"Use --{new} instead.",
            file=sys.stderr,
        )
        setattr(options, new.replace("-", "_"), getattr(options, old.replace("-", "_")))


class _Version(argparse.Action):
    """`--version`. Only then the version is looked up, which takes a tenth of a tool's start."""

    def __init__(self, option_strings: Sequence[str], dest: str, **given: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **given)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the version and end the tool."""
        print(_version(), file=sys.stdout)
        parser.exit()


def _version() -> str:
    # Imported here, as it is slow.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("millstream")
    except PackageNotFoundError:
        return "(a checkout that is not installed)"
