"""`millstream explain`: why a record does not arrive, what a group waits for, what to do."""

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

from common.credentials.access import MEANING, OPTION, VARIABLE, kafka_access, named_servers
from common.credentials.translation import ClientSettingsError
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.process.command_parser import CommandParser, add_command
from explain.asking.groups import SECONDS
from explain.asking.questions import TIMEOUT_MS, Questions, admin_client
from explain.explanations import Explanation
from explain.report import as_json, text
from explain.subjects import (
    explain_cluster,
    explain_group,
    explain_producer,
    explain_topic,
    explain_transaction,
)

_AT = "--bootstrap-server localhost:9092"
MAX_SECONDS = 86_400
_PLACE = re.compile(r"(?P<number>\d{1,10})(?::(?P<offset>\d{1,19}))?")


class Place(NamedTuple):
    """A partition, or an offset of it."""

    number: int
    offset: int | None


def main(arguments: Sequence[str]) -> int:
    """Explain a subject; 1 when no broker answers, 2 for a wrong argument."""
    logging.getLogger("common.credentials").setLevel(logging.ERROR)
    parser = _parser()
    options = parser.parse_args(arguments)
    servers = named_servers(parser, options)
    try:
        access = kafka_access(servers, options.command_config, needs_librdkafka=False)
        with admin_client(access, round(options.timeout * 1000)) as client:
            found = SUBJECTS[options.subject](Questions(client), options)
    except ClientSettingsError as error:
        parser.error(str(error))
    except (KafkaError, ConnectionFailed) as error:
        print(f"millstream explain: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(as_json(found) if options.json else text(found))  # noqa: T201
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="millstream explain",
        description="Say in sentences what is the case in a Kafka cluster, and what to do. Without "
        "a subject, explain the whole cluster.",
        examples=[
            f"millstream explain {_AT}",
            f"millstream explain topic orders 3:812 {_AT}",
        ],
    )
    _add_connection(parser, {})
    commands = parser.add_subparsers(dest="subject", metavar="SUBJECT")
    _add_topic(commands)
    _add_group(commands)
    producer = _add_subject(
        commands,
        "producer",
        "explain a producer by its id",
        f"4000 {_AT}",
        f"4000 --epoch 2 {_AT}",
    )
    producer.add_argument("id", type=int, metavar="ID", help="its producer id, a number")
    producer.add_argument(
        "--epoch", type=int, metavar="N", help="the epoch of a producer that is refused"
    )
    transaction = _add_subject(
        commands,
        "transaction",
        "explain the transaction of a transactional id",
        f"billing-1 {_AT}",
        f"billing-1 --principal User:billing {_AT}",
    )
    transaction.add_argument("id", metavar="ID", help="the transactional id")
    _add_principal(transaction)
    return parser


def _add_topic(commands: Any) -> None:
    topic = _add_subject(
        commands,
        "topic",
        "explain a topic, a partition, or the record at an offset",
        f"orders {_AT}",
        f"orders 3:812 {_AT}",
    )
    topic.add_argument("name", metavar="TOPIC", help="its name")
    topic.add_argument(
        "place", nargs="?", type=_place, metavar="PARTITION[:OFFSET]", help="only a part of it"
    )
    topic.add_argument(
        "--record-bytes", type=int, metavar="N", help="also tell whether such a record fits"
    )
    _add_principal(topic)


def _add_group(commands: Any) -> None:
    group = _add_subject(
        commands,
        "group",
        "explain a group of consumers",
        f"fraud {_AT}",
        f"fraud {_AT} --seconds 60",
    )
    group.add_argument("group", metavar="GROUP", help="its id")
    group.add_argument(
        "--seconds",
        type=_seconds,
        default=SECONDS,
        metavar="N",
        help="the time between two looks at a group that is behind or rebalances "
        f"({SECONDS:g} by default)",
    )
    group.add_argument(
        "--assignor", metavar="NAME", help="also tell whether a member with it may join"
    )
    _add_principal(group)


def _add_principal(parser: CommandParser) -> None:
    parser.add_argument(
        "--principal", metavar="User:NAME", help="also tell what this user may not do"
    )


def _add_subject(commands: Any, name: str, what: str, *examples: str) -> CommandParser:
    """Add a subject; the options of the connection may stand in front of it or behind it."""
    written = [f"millstream explain {name} {example}" for example in examples]
    parser = add_command(commands, name, what, *written)
    _add_connection(parser, {"default": argparse.SUPPRESS})
    return parser


def _add_connection(parser: CommandParser, default: Mapping[str, Any]) -> None:
    parser.add_argument(
        "--bootstrap-server",
        **default,
        metavar="HOST:PORT,...",
        help="the brokers to connect to (KAFKA_BOOTSTRAP_SERVERS)",
    )
    option = {"default": os.environ.get(VARIABLE, ""), **default}
    parser.add_argument(OPTION, **option, metavar="FILE", help=MEANING)
    parser.add_argument("--json", action="store_true", **default, help="print one JSON object")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        **{"default": TIMEOUT_MS / 1000, **default},
        metavar="SECONDS",
        help="how long to wait for each answer (5 by default)",
    )


def _place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no PARTITION or PARTITION:OFFSET")
    offset = found["offset"]
    return Place(int(found["number"]), None if offset is None else int(offset))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds up to {MAX_SECONDS:,}")
    return seconds


def _topic(questions: Questions, options: argparse.Namespace) -> Explanation:
    place = options.place or (None, None)
    return explain_topic(
        questions,
        options.name,
        *place,
        record_bytes=options.record_bytes,
        principal=options.principal,
    )


def _group(questions: Questions, options: argparse.Namespace) -> Explanation:
    return explain_group(
        questions,
        options.group,
        seconds=options.seconds,
        principal=options.principal,
        assignor=options.assignor,
    )


def _producer(questions: Questions, options: argparse.Namespace) -> Explanation:
    return explain_producer(questions, options.id, options.epoch)


def _transaction(questions: Questions, options: argparse.Namespace) -> Explanation:
    return explain_transaction(questions, options.id, principal=options.principal)


def _cluster(questions: Questions, _: argparse.Namespace) -> Explanation:
    return explain_cluster(questions)


SUBJECTS: dict[str | None, Callable[[Questions, argparse.Namespace], Explanation]] = {
    None: _cluster,
    "topic": _topic,
    "group": _group,
    "producer": _producer,
    "transaction": _transaction,
}
