"""`millstream backup` and `millstream restore`: the records and settings of any Kafka cluster."""

import argparse
import logging
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from backup.folder import FolderError, NewBackup, StoredBackup
from backup.places import Place, PlaceError, place_at
from backup.restoring import Restoring
from backup.taking import Taking
from common.credentials.access import add_option, kafka_access, named_servers
from common.credentials.translation import ClientSettingsError
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from common.process.clock import now_seconds, timestamp_ms
from common.process.command_parser import CommandParser

SHOWN_SECONDS: Final = 2.0
_AT: Final = "--bootstrap-server localhost:9092"


def backup(arguments: Sequence[str]) -> int:
    """Write a backup; 1 if it fails."""
    parser = _parser(
        "backup",
        "Write topics with their records, the offsets of consumer groups, access rules and quotas "
        "of a Kafka cluster into a folder or an object store, while the cluster runs. Only "
        "committed records are read, up to one offset of each partition: where it ended at the "
        "start.",
        "a new or empty folder, or s3://BUCKET/PATH",
    )

    def run(client: AdminClient, options: argparse.Namespace) -> None:
        folder = NewBackup(options.place)
        taking = Taking(client, folder, _matches(options.topics), Progress(), _tell)
        made = taking.take(timestamp_ms(), is_whole=options.topics is None)
        records = sum(each.records for topic in made.topics for each in topic.partitions)
        print(  # noqa: T201
            f"{options.place}: {len(made.topics)} topics, {records} records, "
            f"{len(made.groups)} groups, {len(made.acls)} access rules, {len(made.quotas)} quotas"
        )

    return _run(parser, run, arguments)


def restore(arguments: Sequence[str]) -> int:
    """Write a backup into a cluster; 1 if it fails."""
    parser = _parser(
        "restore",
        "Write a backup into a cluster that has none of its topics. All files are checked before "
        "anything is created. Records keep their order, keys, headers and times; they get new "
        "offsets, and groups go on at the same records.",
        "the folder of a backup, or s3://BUCKET/PATH",
    )
    parser.add_argument(
        "--replication-factor",
        type=int,
        metavar="COUNT",
        help="replicas of each partition (as in the backup, if there are as many brokers)",
    )

    def run(client: AdminClient, options: argparse.Namespace) -> None:
        stored = StoredBackup(options.place)
        is_meant = _matches(options.topics)
        topics = [each for each in stored.manifest.topics if is_meant(each.name)]
        is_whole = options.topics is None
        restoring = Restoring(client, stored, topics, Progress(), _tell)
        restoring.restore(replication_factor=options.replication_factor, is_whole=is_whole)
        records = sum(each.records for topic in topics for each in topic.partitions)
        print(f"{options.place}: {len(topics)} topics and {records} records are restored")  # noqa: T201

    return _run(parser, run, arguments)


class Progress:
    """Tells the user now and then how far a partition is."""

    def __init__(self) -> None:
        self._shown_at = now_seconds()

    def __call__(self, place: TopicPartition, records: int, done: int, total: int) -> None:
        if now_seconds() - self._shown_at >= SHOWN_SECONDS:
            self._shown_at = now_seconds()
            _tell(f"{place}: {records} records, {done * 100 // max(1, total)} %")


def _parser(name: str, description: str, of_place: str) -> CommandParser:
    parser = CommandParser(
        prog=f"millstream {name}",
        description=description,
        examples=[
            f"millstream {name} {_AT} /var/backups/monday",
            f"millstream {name} {_AT} --topics 'orders|payments' s3://backups/orders",
        ],
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="the brokers to connect to (KAFKA_BOOTSTRAP_SERVERS)",
    )
    add_option(parser)
    parser.add_argument(
        "--topics",
        type=_pattern,
        metavar="REGEX",
        help="only these topics and the offsets of groups in them; no access rules, no quotas",
    )
    parser.add_argument("place", type=_place, metavar="PLACE", help=of_place)
    return parser


def _run(
    parser: CommandParser,
    run: Callable[[AdminClient, argparse.Namespace], None],
    arguments: Sequence[str],
) -> int:
    logging.getLogger("common.credentials").setLevel(logging.ERROR)
    options = parser.parse_args(arguments)
    servers = named_servers(parser, options)
    try:
        access = kafka_access(servers, options.command_config, needs_librdkafka=False)
        settings = AdminSettings.of(access.bootstrap_servers, access.security)
        with AdminClient(settings) as client:
            run(client, options)
    except ClientSettingsError as error:
        parser.error(str(error))
    except BrokenPipeError:
        raise  # The command ends as every one does whose reader has gone.
    except (FolderError, KafkaError, ConnectionFailed, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _matches(pattern: re.Pattern[str] | None) -> Callable[[str], bool]:
    return lambda name: pattern is None or pattern.fullmatch(name) is not None


def _place(text: str) -> Place:
    try:
        return place_at(text)
    except PlaceError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
