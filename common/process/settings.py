"""Settings of a program: a dataclass, read from the command line and the environment.

A field `http_port` is the option `--http-port` and the variable `MILLRACE_HTTP_PORT`; the
option wins.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def setting(default: Any, help_text: str) -> Any:
    """Declare one setting with its default and what it means."""
    return field(default=default, metadata={"help": help_text})


S = TypeVar("S", bound="DataclassInstance")


def read_settings(
    kind: type[S], program: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> S:
    """Read the settings of a program; an unknown option or a wrong value ends it."""
    parser = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for entry in fields(kind):
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=type(entry.default),
            # argparse converts a default that is a string, so a wrong variable is reported too.
            default=environment.get("MILLRACE_" + entry.name.upper(), entry.default),
            help=entry.metadata["help"],
        )
    return kind(**vars(parser.parse_args(arguments)))
