"""`millstream transactions`: show transactions, and abort hanging ones.

The commands, their flags and their tables are those of kafka-transactions.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from broker.cli.arguments import (
    ToolFailed,
    ToolParser,
    add_connection,
    add_sub_command,
    connection_of,
    tool,
    tool_parser,
)
from broker.cli.java_text import table_text
from broker.model import TopicPartition
from broker.server.clock import SystemClock
from common.kafka.admin import topics as admin
from common.kafka.admin import transactions
from common.kafka.admin.client import AdminClient
from common.kafka.admin.leaders import successes
from common.kafka.admin.transactions import AbortMarker, TransactionDescription
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_producers import ProducerState

MINUTE_MS = 60_000
MAX_TRANSACTION_TIMEOUT_MINUTES = 15
PARTITIONS_AT_ONCE = 500
PRODUCER_HEADERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
TRANSACTION_HEADERS = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
LISTING_HEADERS = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
HANGING_HEADERS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


class OpenTransaction(NamedTuple):
    """A producer with an open transaction in a partition, in the leader's state."""

    partition: TopicPartition
    producer: ProducerState


@tool()
def main(arguments: list[str]) -> int:
    """Run one command; return 1 if it is refused."""
    options = _parser().parse_args(arguments)
    with AdminClient(connection_of(options)) as client:
        COMMANDS[options.command](client, options)
    return 0


def _parser() -> ToolParser:
    parser = tool_parser(
        "transactions",
        "Analyze the transactional state of producers in the cluster; detect and recover from "
        "hanging transactions.",
    )
    add_connection(parser, has_controllers=False, is_required=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    command = add_sub_command(commands, "transactions", "list", "list transactions")
    command.add_argument(
        "--duration-filter", type=int, metavar="MS", help="only those that run for longer"
    )
    command.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="only those whose id matches"
    )
    command = add_sub_command(
        commands, "transactions", "describe", "describe the state of a transactional id"
    )
    command.add_argument("--transactional-id", required=True, metavar="ID", help="which one")
    command = add_sub_command(
        commands,
        "transactions",
        "describe-producers",
        "describe the active producers of a partition",
    )
    _add_partition(command, is_required=True)
    command.add_argument("--broker-id", type=int, metavar="ID", help="as this replica knows them")
    _add_abort(add_sub_command(commands, "transactions", "abort", "abort a hanging transaction"))
    command = add_sub_command(commands, "transactions", "find-hanging", "find hanging transactions")
    _add_partition(command, is_required=False)
    command.add_argument("--broker-id", type=int, metavar="ID", help="only on this broker")
    command.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=MAX_TRANSACTION_TIMEOUT_MINUTES,
        metavar="MINUTES",
        help="a transaction that has run for no longer is none that hangs "
        f"({MAX_TRANSACTION_TIMEOUT_MINUTES} by default)",
    )
    command = add_sub_command(
        commands,
        "transactions",
        "forceTerminateTransaction",
        "abort the ongoing transaction of a transactional id",
        aliases=["force-terminate"],
    )
    command.add_argument(
        "--transactionalId",
        "--transactional-id",
        dest="transactional_id",
        required=True,
        metavar="ID",
        help="which one",
    )
    return parser


def _add_partition(command: argparse.ArgumentParser, *, is_required: bool) -> None:
    command.add_argument("--topic", required=is_required, help="the topic")
    command.add_argument("--partition", type=int, required=is_required, help="the partition")


def _add_abort(command: argparse.ArgumentParser) -> None:
    _add_partition(command, is_required=True)
    command.add_argument(
        "--start-offset",
        type=int,
        metavar="OFFSET",
        help="where the transaction begins; all that brokers since 3.0 need to be told",
    )
    for flag in ("producer-id", "producer-epoch", "coordinator-epoch"):
        command.add_argument(
            f"--{flag}", type=int, metavar="NUMBER", help="what older brokers need instead"
        )


# Commands.


def _list(client: AdminClient, options: argparse.Namespace) -> None:
    duration_ms = options.duration_filter
    found = transactions.list_transactions(
        client,
        duration_ms=transactions.NO_DURATION if duration_ms is None else duration_ms,
        id_pattern=options.transactional_id_pattern,
    )
    rows = [tuple(map(str, listing)) for listing in found]
    print(table_text(LISTING_HEADERS, rows))


def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    transactional_id = options.transactional_id
    described = transactions.describe_transactions(client, [transactional_id])[transactional_id]
    if isinstance(described, KafkaError):
        raise ToolFailed(
            "Failed to describe transaction state of transactional-id "
            f"`{transactional_id}`: {described}"
        )
    row = description_row(transactional_id, described, SystemClock().timestamp_ms())
    print(table_text(TRANSACTION_HEADERS, [row]))


def description_row(
    transactional_id: str, described: TransactionDescription, now_ms: int
) -> tuple[str, ...]:
    """Return the row about one transactional id."""
    start_ms = described.start_time_ms
    return (
        str(described.coordinator_id),
        transactional_id,
        str(described.producer_id),
        str(described.producer_epoch),
        described.state,
        str(described.timeout_ms),
        "None" if start_ms is None else str(start_ms),
        "None" if start_ms is None else str(now_ms - start_ms),
        ",".join(map(str, described.partitions)),
    )


def _describe_producers(client: AdminClient, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    if options.broker_id is not None:
        client.require_node(options.broker_id)
    outcome = transactions.describe_producers(client, [partition], options.broker_id)[partition]
    if isinstance(outcome, KafkaError):
        where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
        raise ToolFailed(
            f"Failed to describe producers for partition {partition} on {where}: {outcome}"
        )
    rows = [
        (
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(max(producer.coordinator_epoch, -1)),
            str(producer.last_sequence),
            str(producer.last_timestamp),
            str(producer.current_txn_start_offset) if is_open(producer) else "None",
        )
        for producer in outcome
    ]
    print(table_text(PRODUCER_HEADERS, rows))


def is_open(producer: ProducerState) -> bool:
    """Return True if a producer has a transaction open."""
    return producer.current_txn_start_offset >= 0


def _abort(client: AdminClient, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is not None:
        marker = _marker_at(client, partition, options.start_offset)
    elif options.producer_id is None:
        raise ToolFailed(
            "The transaction to abort must be identified either with --start-offset (for brokers "
            "on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch "
            "(for older brokers)"
        )
    else:
        for flag in ("producer-epoch", "coordinator-epoch"):
            if getattr(options, flag.replace("-", "_")) is None:
                raise ToolFailed(f"Missing required argument --{flag}")
        # A new producer has no marker yet, so any coordinator epoch is accepted.
        coordinator_epoch = max(options.coordinator_epoch, 0)
        marker = AbortMarker(
            partition, options.producer_id, options.producer_epoch, coordinator_epoch
        )
    try:
        transactions.abort_transaction(client, marker)
    except KafkaError as error:
        raise ToolFailed(
            f"Failed to abort the transaction of producer {marker.producer_id} in partition "
            f"{partition}: {error}"
        ) from error


def _marker_at(client: AdminClient, partition: TopicPartition, start_offset: int) -> AbortMarker:
    outcome = transactions.describe_producers(client, [partition])[partition]
    if isinstance(outcome, KafkaError):
        raise ToolFailed(f"Failed to validate producer state for partition {partition}: {outcome}")
    for producer in outcome:
        if is_open(producer) and producer.current_txn_start_offset == start_offset:
            return AbortMarker(
                partition,
                producer.producer_id,
                producer.producer_epoch,
                max(producer.coordinator_epoch, 0),
            )
    raise ToolFailed(
        f"Could not find any open transactions starting at offset {start_offset} on partition "
        f"{partition}"
    )


def _force_terminate(client: AdminClient, options: argparse.Namespace) -> None:
    try:
        transactions.fence_producer(client, options.transactional_id)
    except KafkaError as error:
        raise ToolFailed(
            f"Failed to force terminate transactionalId `{options.transactional_id}`: {error}"
        ) from error


# Hanging transactions.


def _find_hanging(client: AdminClient, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise ToolFailed(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if options.partition is not None and options.topic is None:
        raise ToolFailed("The --partition argument requires --topic to be provided")
    if options.broker_id is not None:
        client.require_node(options.broker_id)
    now_ms = SystemClock().timestamp_ms()
    since_ms = now_ms - options.max_transaction_timeout * MINUTE_MS
    candidates = _open_transactions(client, options, since_ms)
    hanging: list[OpenTransaction] = []
    if candidates:
        hanging = hanging_of(candidates, *_known_transactions(client, candidates))
    rows = [
        (
            one.partition.topic,
            str(one.partition.partition),
            str(one.producer.producer_id),
            str(one.producer.producer_epoch),
            str(max(one.producer.coordinator_epoch, -1)),
            str(one.producer.current_txn_start_offset),
            str(one.producer.last_timestamp),
            str((now_ms - one.producer.last_timestamp) // MINUTE_MS),
        )
        for one in hanging
    ]
    print(table_text(HANGING_HEADERS, rows))


def _open_transactions(
    client: AdminClient, options: argparse.Namespace, since_ms: int
) -> list[OpenTransaction]:
    """Return the transactions open since before a time; print the progress if there are many."""
    partitions = _searched_partitions(client, options)
    found: list[OpenTransaction] = []
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
        some = partitions[start : start + PARTITIONS_AT_ONCE]
        if len(partitions) > PARTITIONS_AT_ONCE:
            print(f"Searching {start} of {len(partitions)} partitions", file=sys.stderr, flush=True)
        outcomes = transactions.describe_producers(client, some, options.broker_id)
        found += [
            OpenTransaction(partition, producer)
            for partition, producers in sorted(successes(outcomes).items())
            for producer in producers
            if is_open(producer) and producer.last_timestamp < since_ms
        ]
    return found


def _searched_partitions(client: AdminClient, options: argparse.Namespace) -> list[TopicPartition]:
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    if options.topic is None:
        topics = admin.list_topics(client)
    else:
        topics = admin.describe_topics(client, [options.topic])
    return [
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
        if options.broker_id is None or options.broker_id in partition.replicas
    ]


def _known_transactions(
    client: AdminClient, candidates: Iterable[OpenTransaction]
) -> tuple[dict[int, str], dict[str, Collection[TopicPartition]]]:
    """Return the transactional ids by producer id, and the partitions with outstanding markers."""
    producer_ids = {one.producer.producer_id for one in candidates}
    listed = transactions.list_transactions(client, producer_ids=producer_ids)
    ids = {one.producer_id: one.transactional_id for one in listed}
    expected: dict[str, Collection[TopicPartition]] = defaultdict(tuple)
    for transactional_id, outcome in transactions.describe_transactions(
        client, ids.values()
    ).items():
        if not isinstance(outcome, KafkaError):
            expected[transactional_id] = outcome.partitions
        elif outcome.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise outcome
    return ids, expected


def hanging_of(
    candidates: Iterable[OpenTransaction],
    transactional_ids: Mapping[int, str],
    expected: Mapping[str, Collection[TopicPartition]],
) -> list[OpenTransaction]:
    """Return the transactions that no coordinator will end.

    A coordinator names the partitions of an ongoing transaction, and of an ending one those that
    have no marker yet: other partitions will get none.
    """
    return [
        one
        for one in candidates
        if one.partition
        not in expected.get(transactional_ids.get(one.producer.producer_id, ""), ())
    ]


COMMANDS = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
    "force-terminate": _force_terminate,
}
