"""Settings of a program: a dataclass, read from the command line and the environment.

A field `http_port` is the option `--http-port` and the variable `MILLSTREAM_HTTP_PORT`; the
option wins. The addresses that `millstream up` prints are read from its variables too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from common.process.command_parser import CommandParser, DefaultsHelpFormatter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_VARIABLES_OF_UP = {
    "bootstrap_servers": "KAFKA_BOOTSTRAP_SERVERS",
    "registry_url": "SCHEMA_REGISTRY_URL",
}


def setting(default: Any, help_text: str) -> Any:
    """Declare one setting with its default and what it means."""
    return field(default=default, metadata={"help": help_text})


class Checked:
    """Settings that are checked when they are made; kinds of settings are combined."""

    def __post_init__(self) -> None:
        """Check nothing: what is checked is in subclasses."""


S = TypeVar("S", bound="DataclassInstance")


def read_settings(
    kind: type[S],
    program: str,
    what: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> S:
    """Read the settings of a program; an unknown option or a wrong value (ValueError) ends it.

    `what` is a sentence about the program, for its help.
    """
    parser = CommandParser(
        prog=program,
        description=what,
        epilog="Each option is also an environment variable: MILLSTREAM_HTTP_PORT, and so on.",
        examples=[f"{program} --http-port 8090", f"MILLSTREAM_HTTP_PORT=8090 {program}"],
        formatter_class=DefaultsHelpFormatter,
    )
    for entry in fields(kind):
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=type(entry.default),
            # argparse converts a default that is a string, so a wrong variable is reported too.
            default=environment.get("MILLSTREAM_" + entry.name.upper())
            or environment.get(_VARIABLES_OF_UP.get(entry.name, ""), entry.default),
            help=entry.metadata["help"],
        )
    try:
        return kind(**vars(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))
