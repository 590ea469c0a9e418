"""`millstream console-share-consumer`: print the records that a share group gives out.

The flags are those of kafka-console-share-consumer.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from broker.cli.arguments import (
    ToolFailed,
    ToolParser,
    check_required,
    tool,
    tool_parser,
    use_new_names,
)
from broker.cli.clients.formatters import (
    Formatter,
    add_printing_arguments,
    consumed,
    formatter_properties,
    make_formatter,
)
from broker.cli.clients.settings import collect_settings
from broker.cli.console_consumer import given_group
from broker.cli.waiting import Progress
from broker.server.clock import Clock, SystemClock
from common.kafka.client.exchange import parse_addresses
from common.kafka.errors import KafkaError
from common.process.ending import INTERRUPTED

if TYPE_CHECKING:
    from confluent_kafka import AcknowledgeType, Message, ShareConsumer

POLL_SECONDS = 0.2
COMMIT_SECONDS = 30.0
DEFAULT_GROUP = "console-share-consumer"
DEPRECATED = {
    "consumer-property": "command-property",
    "consumer-config": "command-config",
    "property": "formatter-property",
}


@tool()
def main(arguments: list[str]) -> int:
    """Print records until a signal or a limit; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    formatter = make_formatter(options.formatter, formatter_properties(options))
    return _consume(options, _settings(parser, options), formatter)


def _parser() -> ToolParser:
    parser = tool_parser(
        "console-share-consumer",
        "Read data from Kafka topics using share groups and write it to standard output.",
    )
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="the brokers to connect to"
    )
    parser.add_argument("--topic", help="the topic to consume from")
    parser.add_argument("--group", help=f"the id of the share group, by default {DEFAULT_GROUP}")
    parser.add_argument(
        "--max-messages", type=int, metavar="COUNT", help="how many to consume before exiting"
    )
    parser.add_argument(
        "--timeout-ms", type=int, metavar="MS", help="exit when nothing arrives for so long"
    )
    for flag, text in (
        ("reject", "reject records as they are consumed, rather than to accept them"),
        ("release", "release records as they are consumed, rather than to accept them"),
        ("reject-message-on-error", "reject what cannot be printed, rather than to halt"),
        ("enable-systest-events", "say shutdown_complete at the end"),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    add_printing_arguments(parser, "consumer-config")
    return parser


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.topic is None:
        parser.error("--topic is a required argument")
    check_required(parser, options, ["bootstrap-server"])
    if options.reject and options.release:
        parser.error("At most one of --reject and --release may be specified.")
    use_new_names(parser, options, DEPRECATED)
    try:
        parse_addresses(options.bootstrap_server)
    except KafkaError as error:
        parser.error(str(error))


def _settings(parser: ToolParser, options: argparse.Namespace) -> dict[str, str]:
    settings = collect_settings(options.command_config, options.command_property)
    group = given_group(parser, options.group, settings.get("group.id"))
    settings["bootstrap.servers"] = options.bootstrap_server
    settings["group.id"] = group or DEFAULT_GROUP
    settings["share.acknowledgement.mode"] = "explicit"
    settings.setdefault("client.id", "console-share-consumer")
    return settings


def _consume(options: argparse.Namespace, settings: dict[str, str], formatter: Formatter) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.library import make_share_consumer, told

    consumer = make_share_consumer(settings)
    run = _Run(consumer, options, formatter)
    status = 0
    try:
        with told():
            run.consume()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)
        # The reader has closed the pipe, so the rest of the buffer is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        sys.stdout.flush()
        with told():
            # What was printed stays acknowledged; the rest is released.
            consumer.commit_sync(COMMIT_SECONDS)
            consumer.close()
        print(f"Processed a total of {run.count} messages", file=sys.stderr)
        if options.enable_systest_events:
            print("shutdown_complete")
    return status


class _Run:
    """Prints records and acknowledges them."""

    def __init__(
        self, consumer: "ShareConsumer", options: argparse.Namespace, formatter: Formatter
    ) -> None:
        self.count = 0
        self._consumer = consumer
        self._options = options
        self._formatter = formatter
        self._clock: Clock = SystemClock()
        self._progress = Progress(prints_results=True)

    def consume(self) -> None:
        """Consume until the wanted count or until nothing arrives."""
        if self._options.max_messages == 0:
            return
        self._consumer.subscribe([self._options.topic])
        for message in self._messages():
            self.count += 1
            self._progress.tell(partial("{} records consumed".format, self.count))
            self._consumer.acknowledge(message, self._print(message))
            if self.count == self._options.max_messages:
                return

    def _print(self, message: "Message") -> "AcknowledgeType":
        """Print a record and return how it is acknowledged."""
        from confluent_kafka import AcknowledgeType

        options = self._options
        record = consumed(message)._replace(
            leader_epoch=None,  # As Kafka's tool does not tell it.
            delivery_count=message.delivery_count(),
        )
        try:
            text = self._formatter(record)
        except ToolFailed as error:
            if not options.reject_message_on_error:
                raise
            print(f"Error processing message, rejecting this message: {error}", file=sys.stderr)
            return AcknowledgeType.REJECT
        sys.stdout.buffer.write(text)
        if options.reject:
            return AcknowledgeType.REJECT
        return AcknowledgeType.RELEASE if options.release else AcknowledgeType.ACCEPT

    def _messages(self) -> Iterator["Message"]:
        """Yield records until none has arrived for the timeout."""
        from broker.cli.clients.library import error_text, warn

        timeout_ms = self._options.timeout_ms
        last_ms = self._clock.now_ms()
        while True:
            for message in self._consumer.poll(POLL_SECONDS):
                error = message.error()
                if error is None:
                    yield message
                    last_ms = self._clock.now_ms()
                elif error.fatal():
                    raise ToolFailed(error_text(error))
                else:
                    warn(error_text(error))
            sys.stdout.flush()
            if (
                timeout_ms is not None
                and timeout_ms >= 0
                and self._clock.now_ms() - last_ms > timeout_ms
            ):
                print(f"Nothing has arrived for {timeout_ms} ms.", file=sys.stderr)
                return
