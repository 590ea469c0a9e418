"""`python -m tests.chaos.transactions.copier`: one copier, until it is killed.

It reads its partitions of the input from the group's committed offsets, writes every record to the
same partition of the output, and commits its offsets in the same transaction. Its partitions are
arguments, or else the group's assignment (KIP-447): then the generation in the commit fences a
copier that has lost its partitions.

Any error ends the process: the next one, with the same transactional id, fences it and continues at
the committed offsets. So does a call that exceeds its timeout: librdkafka, from 2.10 on, waits
without end in `send_offsets_to_transaction` for a coordinator that was once missing in the metadata
(it drops that broker, but not from its cache of coordinators, and checks no timeout).
"""

import argparse
import signal
import sys

import confluent_kafka

SESSION_MS = 6_000
BATCH_RECORDS, BATCH_SECONDS = 25, 0.5
CALL_SECONDS = 10.0
STANDS_STILL_SECONDS = 35
"""More than the sum of the timeouts of one transaction."""
TRANSACTION_TIMEOUT_MS = 10_000


class Copier:
    """A copier; each transaction copies the next records."""

    def __init__(self, parsed: argparse.Namespace) -> None:
        common = {"bootstrap.servers": parsed.bootstrap, "log_level": 0, "socket.timeout.ms": 4_000}
        self._output = parsed.output
        self._producer = confluent_kafka.Producer(
            common
            | {
                "transactional.id": f"{parsed.group}-{parsed.number}",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 0,
            }
        )
        self._consumer = confluent_kafka.Consumer(
            common
            | {
                "group.id": parsed.group,
                "session.timeout.ms": SESSION_MS,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        # This ends an open transaction of the former process, so the offsets are final.
        self._producer.init_transactions(CALL_SECONDS)
        partitions = [
            confluent_kafka.TopicPartition(parsed.input, partition)
            for partition in parsed.partitions
        ]
        if partitions:
            self._consumer.assign(partitions)
        else:
            self._consumer.subscribe([parsed.input])

    def copy_some(self) -> None:
        """Copy the next records in one transaction; raise KafkaException."""
        messages = self._consumer.consume(BATCH_RECORDS, BATCH_SECONDS)
        positions: dict[int, int] = {}
        for message in messages:
            if message.error() is not None:
                raise confluent_kafka.KafkaException(message.error())
            positions[message.partition()] = message.offset() + 1
        if not messages:
            return
        self._producer.begin_transaction()
        for message in messages:
            self._producer.produce(self._output, message.value(), partition=message.partition())
        self._producer.send_offsets_to_transaction(
            [
                confluent_kafka.TopicPartition(messages[0].topic(), partition, offset)
                for partition, offset in positions.items()
            ],
            self._consumer.consumer_group_metadata(),
            CALL_SECONDS,
        )
        self._producer.commit_transaction(CALL_SECONDS)

    def end(self, error: confluent_kafka.KafkaError) -> None:
        """Abort the open transaction if the error allows it."""
        if error.txn_requires_abort():
            self._producer.abort_transaction(CALL_SECONDS)


def main(arguments: list[str]) -> int:
    """Copy until an error."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.transactions.copier")
    for name in ("bootstrap", "input", "output", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--partitions", type=int, nargs="*", default=[])
    parsed = parser.parse_args(arguments)
    try:
        copier = Copier(parsed)
    except confluent_kafka.KafkaException as error:
        sys.stderr.write(f"copier {parsed.number} did not begin: {error}\n")
        return 1
    while True:
        signal.alarm(STANDS_STILL_SECONDS)
        try:
            copier.copy_some()
        except confluent_kafka.KafkaException as error:
            sys.stderr.write(f"copier {parsed.number}: {error}\n")
            try:
                copier.end(error.args[0])
            except confluent_kafka.KafkaException as failure:
                sys.stderr.write(f"copier {parsed.number} could not abort: {failure}\n")
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
