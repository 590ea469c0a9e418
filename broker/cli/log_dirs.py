"""`millstream log-dirs`: the log directories of brokers, with the flags of kafka-log-dirs."""

import argparse
import json
from collections.abc import Iterable

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_required,
    connection_of,
    tool,
    tool_parser,
)
from common.kafka.admin.client import AdminClient, error_of
from common.kafka.admin.log_directories import log_directories
from common.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsResult


@tool()
def main(arguments: list[str]) -> int:
    """Print the directories and their replicas as JSON; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_required(parser, options, ["bootstrap-server", "describe"])
    wanted = _broker_ids(options.broker_list)
    with AdminClient(connection_of(options)) as client:
        _describe(client, wanted, _split(options.topic_list))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("log-dirs", "Query the use of log directories on brokers.")
    add_connection(parser, has_controllers=False)
    parser.add_argument(
        "--describe", action="store_true", help="print the log directories and their replicas"
    )
    for flag, metavar, kind in (
        ("topic-list", "TOPIC,...", "topics"),
        ("broker-list", "ID,...", "brokers"),
    ):
        parser.add_argument(
            f"--{flag}", default="", metavar=metavar, help=f"only these {kind}; by default all"
        )
    return parser


def _split(text: str) -> set[str]:
    return {part for part in text.split(",") if part}


def _broker_ids(text: str) -> set[int]:
    try:
        return {int(part) for part in _split(text)}
    except ValueError:
        raise ToolFailed(f"ERROR: {text} is no list of broker ids") from None


def _describe(client: AdminClient, wanted: set[int], topics: set[str]) -> None:
    live = client.nodes().nodes.keys()
    if missing := wanted - live:
        raise ToolFailed(
            f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}. "
            f"Current existent brokers: {_listed(live)}"
        )
    chosen = sorted(wanted or live)
    print("Querying brokers for log directories information")
    brokers = [
        {
            "broker": broker_id,
            "logDirs": [_directory(one, topics) for one in log_directories(client, broker_id)],
        }
        for broker_id in chosen
    ]
    print(f"Received log directory information from brokers {_listed(chosen)}")
    described = {"brokers": brokers, "version": 1}
    print(json.dumps(described, separators=(",", ":"), ensure_ascii=False))


def _listed(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(broker_ids)))


def _directory(directory: DescribeLogDirsResult, topics: set[str]) -> dict[str, object]:
    """Return a directory as Kafka's tool prints it; its error by its name, not by Java's class."""
    replicas = [
        {
            "partition": f"{topic.name}-{one.partition_index}",
            "size": one.partition_size,
            "offsetLag": one.offset_lag,
            "isFuture": one.is_future_key,
        }
        for topic in directory.topics
        if not topics or topic.name in topics
        for one in topic.partitions
    ]
    code = directory.error_code
    error = error_of(code).code.name if code else None
    return {"partitions": replicas, "error": error, "logDir": directory.log_dir}
