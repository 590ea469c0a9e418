"""What a clean Kafka costs a test: `python -m bench testing [--rounds N]`.

Each time ends when a stock client (librdkafka) has an acknowledged record, because a test begins
there. The systems take turns. Apache Kafka is measured if MILLSTREAM_KAFKA_LIBS names its jars, and
that of Testcontainers where Docker runs. The mocks have few of Kafka's calls, and no log. A fault
is measured from its arming until the program of a producer that is connected has the error.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial

from confluent_kafka import Producer

from bench.lib.mocks import Kfake, Mock, RdkafkaMock
from bench.lib.results import spread
from millstream.testing import LocalBroker
from millstream.testing.apache_kafka import ApacheBroker, kafka_libraries

ROUNDS = 20
APACHE_ROUNDS = 3
SECONDS = 60.0
TOPIC = "orders"
NEW, RESTORED = "a new broker", "restore"
FAULT = "a fault"


class Times:
    """Milliseconds by what was done."""

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = defaultdict(list)

    def measure(self, name: str, work: Callable[[], object]) -> None:
        """Do something and note how long it takes."""
        began = time.perf_counter()
        work()
        self.found[name].append((time.perf_counter() - began) * 1000)


def first_record(settings: Mapping[str, object]) -> None:
    """Return when a new client has an acknowledged record."""
    producer = Producer({**settings, "log_level": 0})
    producer.produce(TOPIC, b"v")
    assert producer.flush(SECONDS) == 0, "the record is not acknowledged"


def met_fault(times: Times, name: str, address: str, arm: Callable[[], object]) -> None:
    """Measure a fault, with a new producer that has written a record before."""
    told: list[str] = []
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0})
    producer.produce(TOPIC, b"v")
    assert producer.flush(SECONDS) == 0, "the record is not acknowledged"

    def refused() -> None:
        arm()
        producer.produce(
            TOPIC, b"v", on_delivery=lambda error, _: told.append(error.name() if error else "")
        )
        producer.flush(SECONDS)

    times.measure(name, refused)
    assert told == ["TOPIC_AUTHORIZATION_FAILED"], told


def one_round_of_a_mock(times: Times, name: str, mock: Mock) -> None:
    """Measure a mock once; to be clean, it is started anew."""
    times.measure(f"{name}: {NEW}", lambda: first_record({"bootstrap.servers": mock.start()}))

    def renewed() -> None:
        mock.close()
        first_record({"bootstrap.servers": mock.start()})

    times.measure(f"{name}: close, and a new one", renewed)
    mock.close()
    met_fault(times, f"{name}: {FAULT}", mock.start(), mock.fail)
    mock.close()


def one_round(times: Times, kept: LocalBroker) -> None:
    """Measure our own once."""
    fresh = LocalBroker()

    def restored() -> None:
        kept.restore(new_port=True)
        first_record(kept.client_settings())

    times.measure(NEW, lambda: first_record(fresh.start().client_settings()))
    times.measure("stop it and remove its folder", fresh.close)
    times.measure(RESTORED, restored)
    times.measure("wait_for_records, of one record", lambda: kept.wait_for_records(TOPIC, 1))
    times.measure("clock.advance(hours=1)", lambda: kept.clock.advance(hours=1))
    times.measure("restore alone", lambda: kept.restore(new_port=True))
    fault = kept.faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED")
    met_fault(times, FAULT, kept.bootstrap_servers, fault.once)
    times.measure(
        "librdkafka's mock cluster, inside its client: a new broker",
        lambda: first_record({"bootstrap.servers": "unused", "test.mock.num.brokers": 1}),
    )


def of_testcontainers(times: Times) -> None:
    """Measure the Kafka of Testcontainers, or say why not."""
    from testcontainers.community.kafka import KafkaContainer

    try:
        for _ in range(APACHE_ROUNDS):
            container = KafkaContainer()

            def started(container: KafkaContainer = container) -> None:
                container.start()
                first_record({"bootstrap.servers": container.get_bootstrap_server()})

            try:
                times.measure("Testcontainers: a new Kafka", started)
            finally:
                container.stop()
    except Exception as missing:  # noqa: BLE001 - Docker's client raises of every kind
        print(f"without Testcontainers: {missing}")


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench testing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parsed = parser.parse_args(arguments)
    times = Times()
    kept = LocalBroker()
    mocks: dict[str, Mock] = {}
    for name, make in (("librdkafka's mock cluster", RdkafkaMock), ("kfake", Kfake)):
        try:
            mocks[name] = make()
        except LookupError as missing:
            print(f"without {name}: {missing}")
    times.measure("the first broker of a run", lambda: first_record(kept.start().client_settings()))
    with closing(kept):
        times.measure("snapshot", kept.snapshot)
        for _ in range(parsed.rounds):
            one_round(times, kept)
            for name, mock in mocks.items():
                one_round_of_a_mock(times, name, mock)
    try:
        kafka_libraries()
    except LookupError as missing:
        print(f"without Apache Kafka: {missing}")
    else:
        for _ in range(APACHE_ROUNDS):
            with closing(ApacheBroker(is_testing=False)) as apache:
                times.measure("a new Apache Kafka", partial(started, apache))
    of_testcontainers(times)
    print("| what | ms |")
    print("|---|---|")
    for name, found in times.found.items():
        print(f"| {name} | {spread(found)} |")
    ratio = statistics.median(times.found[NEW]) / statistics.median(times.found[RESTORED])
    print(f"a restore takes 1/{ratio:.1f} of a new broker's time")
    return 0


def started(apache: ApacheBroker) -> None:
    """Start Apache Kafka and write a record."""
    first_record(apache.start().client_settings())
