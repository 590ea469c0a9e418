"""`millstream verifiable-producer`: numbers to a topic, each send told as a line of JSON.

The flags and the lines are those of kafka-verifiable-producer, for the system tests that read them;
`exception` is librdkafka's name of an error, not Java's. A key and a value are told as they are
sent.
"""

import argparse
import itertools
from typing import TYPE_CHECKING

from broker.cli.arguments import ToolParser, check_not_with, tool, tool_parser
from broker.cli.clients.settings import collect_settings
from broker.server.clock import SystemClock

if TYPE_CHECKING:
    import confluent_kafka

    from broker.cli.clients.events import Events, StopRequest

ACKS = (0, 1, -1)
POLL_SECONDS = 0.1


@tool()
def main(arguments: list[str]) -> int:
    """Send numbers until there are enough, or a signal comes; return 1 after an error."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_not_with(parser, options, "producer.config", ["command-config"])
    return _produce(options)


def _parser() -> ToolParser:
    parser = tool_parser(
        "verifiable-producer",
        "Produce increasing integers to a topic, and print a line of JSON for each that says "
        "whether it was acknowledged.",
    )
    parser.add_argument("--topic", required=True, help="produce messages to this topic")
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT,...",
        help="the brokers to connect to",
    )
    for flag, default, text in (
        ("max-messages", -1, "produce this many messages; -1: until the process is ended"),
        ("throughput", -1, "at most about so many messages a second; -1: no limit"),
        ("message-create-time", -1, "the time of the first message, in ms since 1970"),
        ("value-prefix", None, "a number before each value, with a dot between them"),
        ("repeating-keys", None, "keys from 0 to below this number, over and over"),
    ):
        parser.add_argument(f"--{flag}", type=int, default=default, metavar=flag.upper(), help=text)
    parser.add_argument(
        "--acks",
        type=int,
        default=-1,
        choices=ACKS,
        help="the acknowledgements that a message waits for",
    )
    for flag, text in (
        ("command-config", "a properties file with settings of the producer, which win"),
        ("producer.config", "deprecated: --command-config"),
    ):
        parser.add_argument(f"--{flag}", dest=flag.replace("-", "_"), metavar="FILE", help=text)
    return parser


def _produce(options: argparse.Namespace) -> int:
    # Imported here so that an error in the arguments is reported before the library is loaded.
    from broker.cli.clients.events import Events, StopRequest
    from broker.cli.clients.library import make_producer, told

    settings = {
        "bootstrap.servers": options.bootstrap_server,
        "acks": str(options.acks),
        "retries": "0",
    } | collect_settings(options.command_config or getattr(options, "producer.config"), [])
    stop = StopRequest()
    producer = make_producer(settings)
    run = _Run(producer, options, Events(SystemClock()))
    with told():
        run.produce(stop)
        run.finish()
    return stop.exit_status


class _Run:
    """One run, with what was sent and acknowledged."""

    def __init__(
        self, producer: "confluent_kafka.Producer", options: argparse.Namespace, events: "Events"
    ) -> None:
        self._producer, self._options, self._events = producer, options, events
        self._clock = SystemClock()
        self._start_ms = self._clock.now_ms()
        self._next_time_ms = options.message_create_time
        self._sent_count = self._acked_count = 0

    def produce(self, stop: "StopRequest") -> None:
        """Send all messages, at most as fast as wanted, until a signal comes."""
        options = self._options
        self._events.tell("startup_complete")
        keys = (
            itertools.repeat(None)
            if options.repeating_keys is None
            else map(str, itertools.cycle(range(options.repeating_keys)))
        )
        prefix = "" if options.value_prefix is None else f"{options.value_prefix}."
        for number, key in zip(itertools.count(), keys, strict=False):
            if stop.exit_status or 0 <= options.max_messages <= number:
                return
            self._send(key, f"{prefix}{number}")
            self._producer.poll(0)
            self._keep_pace(stop)

    def _send(self, key: str | None, value: str) -> None:
        timestamp = 0
        if self._next_time_ms >= 0:
            timestamp = self._next_time_ms
            self._next_time_ms += self._clock.now_ms() - self._start_ms

        def tell(
            error: "confluent_kafka.KafkaError | None", message: "confluent_kafka.Message"
        ) -> None:
            if error is not None:
                self._tell_failure(key, value, error.name(), error.str())
                return
            self._acked_count += 1
            self._events.tell(
                "producer_send_success",
                key=key,
                value=value,
                offset=message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )

        self._sent_count += 1
        while True:
            try:
                self._producer.produce(
                    self._options.topic, value, key, timestamp=timestamp, on_delivery=tell
                )
            except BufferError:
                self._producer.poll(POLL_SECONDS)
            else:
                return

    def _tell_failure(self, key: str | None, value: str, name: str, text: str) -> None:
        self._events.tell(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._options.topic,
            exception=name,
            message=text,
        )

    def _keep_pace(self, stop: "StopRequest") -> None:
        """Wait, serving deliveries, while more was sent than the wanted rate allows."""
        rate = self._options.throughput
        if rate < 0:
            return
        while not stop.exit_status:
            ahead_ms = (
                self._sent_count * 1000 / rate - (self._clock.now_ms() - self._start_ms)
                if rate
                else POLL_SECONDS * 1000
            )
            if ahead_ms <= 0:
                return
            self._producer.poll(min(ahead_ms / 1000, POLL_SECONDS))

    def finish(self) -> None:
        """Wait for what is on its way, and tell the figures."""
        self._producer.flush()
        self._events.tell("shutdown_complete")
        elapsed_ms = max(1, self._clock.now_ms() - self._start_ms)
        self._events.tell(
            "tool_data",
            sent=self._sent_count,
            acked=self._acked_count,
            target_throughput=self._options.throughput,
            avg_throughput=1000 * self._acked_count / elapsed_ms,
        )
