"""Settings of a program: a dataclass, read from the command line and the environment.

A field `http_port` is the option `--http-port` and the variable `MILLRACE_HTTP_PORT`; the
option wins.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar


def setting(default: Any, help_text: str) -> Any:
    """Declare one setting with its default and its help text."""
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of both programs."""

    store: str = setting("build/analytics/serving.sqlite", "file of the serving store")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    neighbours: str = setting("", "servers to link to: name=http://..., with commas between")


S = TypeVar("S", bound=Settings)


def read_settings(
    kind: type[S], program: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> S:
    """Read the settings of a program; exit on an unknown option or an invalid value."""
    parser = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for entry in fields(kind):
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=type(entry.default),
            # argparse converts a string default, so an invalid variable is reported too.
            default=environment.get("MILLRACE_" + entry.name.upper(), entry.default),
            help=entry.metadata["help"],
        )
    return kind(**vars(parser.parse_args(arguments)))
