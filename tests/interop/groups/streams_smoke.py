"""`make streams-smoke`: the smoke test of Kafka Streams, while brokers and instances are killed.

Apache Kafka's own: a driver writes for a minute and a half and then checks every result (sums,
counts, windows, joins, suppressed ones) and that no transaction is left open; the application runs
with `exactly_once_v2` in two instances, each with a standby of the other's state. Both are in the
test jar of kafka-streams, whose older EOS drivers this one has replaced. Three of our brokers are
killed and started again one after the other, and so is an instance, for as long as the driver runs.
It prints what the driver prints, and fails as it does.

With `PROTOCOL=streams` the brokers assign the tasks (KIP-1071), with `classic` the clients do.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka.admin

from millstream.testing import LocalCluster
from tests.lib.apache_kafka import RESOLVE
from tests.lib.java import java

SMOKE_TEST = "org.apache.kafka.streams.tests.StreamsSmokeTest"
TOPICS = (
    *(
        "data",
        "echo",
        "max",
        "min",
        "min-raw",
        "min-suppressed",
        "dif",
        "sum",
        "cnt",
        "avg",
        "tagg",
    ),
    *("fk", "sws-raw", "sws-suppressed"),
)
PARTITION_COUNT = 3
BETWEEN_KILLS_SECONDS = 8.0
GIVE_UP_SECONDS = 400.0
SUCCESS = "SUCCESS"


def libraries() -> Path:
    """Give the folder of the jars; exits with a sentence when they are not to be had."""
    found = subprocess.run([RESOLVE], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"Apache Kafka is not available: {found.stderr.strip()}")
    libs = Path(found.stdout.strip())
    if not list(libs.glob("kafka-streams-*-test.jar")):
        sys.exit(f"no kafka-streams-*-test.jar in {libs}: remove that folder to fetch it anew")
    return libs


CLIENT_SETTINGS = {
    "classic": "num.standby.replicas=1\nsession.timeout.ms=10000\n",
    "streams": "group.protocol=streams\n",
}
BROKER_SETTINGS: dict[str, dict[str, object]] = {
    "classic": {},
    "streams": {
        "group.streams.num.standby.replicas": 1,
        "group.streams.session.timeout.ms": 10_000,
        "group.streams.min.session.timeout.ms": 10_000,
        "group.streams.heartbeat.interval.ms": 1_000,
        "group.streams.min.heartbeat.interval.ms": 1_000,
    },
}


class Instances:
    """The instances of the application; each keeps its state over its death."""

    def __init__(self, libs: Path, folder: Path, bootstrap: str, protocol: str) -> None:
        self._libs, self._folder, self._bootstrap = libs, folder, bootstrap
        self._protocol = protocol
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        properties = self._folder / f"{number}.properties"
        properties.write_text(
            f"bootstrap.servers={self._bootstrap}\n"
            f"state.dir={self._folder}/state-{number}\n"
            "processing.guarantee=exactly_once_v2\n" + CLIENT_SETTINGS[self._protocol]
        )
        with (self._folder / f"{number}.log").open("ab") as log:
            self._running[number] = subprocess.Popen(
                program(self._libs, properties, "process"), stdout=log, stderr=log
            )

    def all_run(self) -> bool:
        return all(process.poll() is None for process in self._running.values())

    def log(self, number: int) -> str:
        return (self._folder / f"{number}.log").read_text()

    def kill(self, number: int) -> None:
        process = self._running.pop(number)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for number in list(self._running):
            self.kill(number)


def program(libs: Path, properties: Path, command: str) -> list[str]:
    """Give the command line of one of the smoke test's programs."""
    return [*java(libs, "-Xmx320m"), SMOKE_TEST, str(properties), command]


def make_topics(bootstrap: str) -> None:
    """Make what the application does not make by itself."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = [confluent_kafka.admin.NewTopic(name, PARTITION_COUNT) for name in TOPICS]
    for made in admin.create_topics(new).values():
        made.result(60)


def say(line: str) -> None:
    """Tell how far it is."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def break_things(
    cluster: LocalCluster, instances: Instances, driver: subprocess.Popen[bytes]
) -> None:
    """Kill the one and then the other, until the driver is done."""
    give_up = time.monotonic() + GIVE_UP_SECONDS
    victims = itertools.cycle([*cluster.node_ids, "an instance"])
    began = time.monotonic()
    while not is_done(driver, BETWEEN_KILLS_SECONDS):
        if time.monotonic() > give_up or not instances.all_run():
            driver.kill()
            driver.wait()
            say(f"gave up; an instance: {instances.log(0)[-3_000:]}")
            return
        if time.monotonic() - began > 90:
            continue  # It checks: let it, so that what is wrong stays wrong.
        victim = next(victims)
        say(f"{time.monotonic() - began:.0f} s: kill -9 of {victim}")
        if isinstance(victim, int):
            cluster.kill(victim)
            is_done(driver, 2.0)
            cluster.start(victim)
        else:
            instances.kill(1)
            is_done(driver, 2.0)
            instances.start(1)


def is_done(driver: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the driver, for so long."""
    try:
        driver.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def main() -> int:
    """Run it; see the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--protocol", choices=sorted(CLIENT_SETTINGS), default="classic")
    protocol = parser.parse_args().protocol
    libs = libraries()
    settings = BROKER_SETTINGS[protocol]
    with tempfile.TemporaryDirectory() as name, LocalCluster(**settings) as cluster:
        folder = Path(name)
        make_topics(cluster.bootstrap_servers)
        instances = Instances(libs, folder, cluster.bootstrap_servers, protocol)
        for number in (0, 1):
            instances.start(number)
        said = folder / "driver.log"
        try:
            with said.open("wb") as log:
                properties = folder / "0.properties"
                driver = subprocess.Popen(program(libs, properties, "run"), stdout=log, stderr=log)
                break_things(cluster, instances, driver)
        finally:
            instances.stop()
        text = said.read_text()
    say(text[-3_000:])
    is_good = SUCCESS in text and driver.returncode == 0
    say("the smoke test of Kafka Streams: good" if is_good else "the smoke test FAILED")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
