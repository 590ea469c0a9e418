"""Settings of a service: a dataclass, read from the command line and the environment.

A field `http_port` is the option `--http-port` and the variable `MILLRACE_HTTP_PORT`; the
option wins. Services add fields of their own in a subclass.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar


def setting(default: Any, help_text: str) -> Any:
    """Declare one setting with its default and what it means."""
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every service can be told."""

    bootstrap_servers: str = setting("127.0.0.1:9092", "Kafka's host:port, several with commas")
    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    advertised_url: str = setting("", "how others reach this instance; default http://HOST:PORT")
    neighbours: str = setting("", "servers to link to: name=http://..., with commas between")
    session_timeout_ms: int = setting(10_000, "a silent instance loses its partitions after this")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    commit_interval_ms: int = setting(
        250,
        "what puts nothing out, offsets and changed rows, is committed after this at the latest",
    )
    allow_faults: int = setting(0, "1: PUT /faults may slow this service down, for a trial")
    batch_interval_ms: int = setting(0, "a batch is begun at most this often, unless one is full")


S = TypeVar("S", bound=Settings)


def read_settings(kind: type[S], arguments: Sequence[str], environment: Mapping[str, str]) -> S:
    """Read settings of one kind; an unknown option or a wrong value ends the program."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for entry in fields(kind):
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=type(entry.default),
            # argparse converts a default that is a string, so a wrong variable is reported too.
            default=environment.get("MILLRACE_" + entry.name.upper(), entry.default),
            help=entry.metadata["help"],
        )
    return kind(**vars(parser.parse_args(arguments)))
