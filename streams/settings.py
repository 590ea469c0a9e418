"""Settings, from the command line and the environment; the option wins over the variable."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any


def setting(default: Any, help_text: str) -> Any:
    """Declare one setting: `http_port` is `--http-port` and `MILLRACE_HTTP_PORT`."""
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What this program can be told."""

    bootstrap_servers: str = setting("127.0.0.1:9092", "Kafka's host:port, several with commas")
    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    data_dir: str = setting("build/streams", "folder of this instance's RocksDB stores")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    advertised_url: str = setting(
        "", "how other instances reach this one; default http://HOST:PORT"
    )
    neighbours: str = setting("", "servers to link to: name=http://..., with commas between")
    application_id: str = setting("millrace-streams", "consumer group, and prefix of changelogs")
    session_timeout_ms: int = setting(10_000, "a silent instance loses its partitions after this")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    standby_replicas: int = setting(1, "other instances that keep a copy of each table partition")
    batch_interval_ms: int = setting(0, "a reader begins a batch at most this often")
    tumbling_seconds: int = setting(3600, "size of the tumbling windows by product")
    hopping_seconds: int = setting(24 * 3600, "size of the hopping windows by product")
    hopping_advance_seconds: int = setting(6 * 3600, "how far a hopping window is from the next")
    grace_seconds: int = setting(24 * 3600, "how late an event may come, in event time")


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Read the settings; an unknown option or a wrong value ends the program."""
    parser = argparse.ArgumentParser(
        prog="millrace streams", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for entry in fields(Settings):
        parser.add_argument(
            "--" + entry.name.replace("_", "-"),
            type=type(entry.default),
            default=environment.get("MILLRACE_" + entry.name.upper(), entry.default),
            help=entry.metadata["help"],
        )
    return Settings(**vars(parser.parse_args(arguments)))
