"""`millstream delete-records`: delete the records before an offset, with Kafka's flags."""

import argparse

from broker.cli.arguments import (
    add_connection,
    check_required,
    connection_of,
    tool,
    tool_parser,
)
from broker.cli.json_files import offsets_to_delete, read_json
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.leaders import delete_records
from common.kafka.errors import KafkaError


@tool()
def main(arguments: list[str]) -> int:
    """Delete records; return 1 if the file is invalid or any partition fails."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_required(parser, options, ["bootstrap-server", "offset-json-file"])
    offsets = offsets_to_delete(read_json(options.offset_json_file))
    with AdminClient(connection_of(options)) as client:
        print("Executing records delete operation", flush=True)
        outcomes = delete_records(client, offsets)
    print("Records delete operation completed:")
    for partition, outcome in sorted(outcomes.items()):
        print(outcome_text(partition, outcome))
    return int(any(isinstance(outcome, KafkaError) for outcome in outcomes.values()))


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "delete-records", "Delete the records of partitions down to given offsets."
    )
    add_connection(parser, has_controllers=False)
    parser.add_argument(
        "--offset-json-file",
        metavar="FILE",
        help='the offset of each partition, -1 for its high watermark: {"version": 1, '
        '"partitions": [{"topic": "foo", "partition": 1, "offset": 1}]}',
    )
    return parser


def outcome_text(partition: TopicPartition, outcome: int | KafkaError) -> str:
    """Return the line of one partition: its new log start offset, or the error."""
    if isinstance(outcome, KafkaError):
        return f"partition: {partition}\terror: {outcome}"
    return f"partition: {partition}\tlow_watermark: {outcome}"
