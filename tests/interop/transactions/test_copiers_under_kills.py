"""Copiers of three client libraries go on exactly once while every broker is killed in turn."""

import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka
import confluent_kafka.admin
import pytest

from millstream.processes.forked_process import CAN_FORK
from millstream.testing import LocalCluster
from tests.lib.transactional_clients import (
    COPY,
    GIVE_UP_SECONDS,
    SHORT_SESSIONS,
    keep_copying,
    read,
)
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SOURCE = "source"
PARTITION_COUNT = 3
EVERY_SECONDS = 0.1
"""Each number is a transaction of every copier, and one of them twice: more would show no more."""
STANDS_STILL_SECONDS = 9.0
"""Twice their session, and some to spare."""
PATIENCE_SECONDS = 120.0
PROCESSES = multiprocessing.get_context("forkserver" if CAN_FORK else "spawn")
PROCESSES.set_forkserver_preload(["tests.lib.transactional_clients"])


class Feed(threading.Thread):
    """Writes numbers until told to stop, each once."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self._is_stopping = threading.Event()
        self.written: list[bytes] = []

    def run(self) -> None:
        for number in itertools.count():
            if self._is_stopping.wait(EVERY_SECONDS):
                break
            value = b"%d" % number
            self._producer.produce(SOURCE, value, partition=number % PARTITION_COUNT)
            self.written.append(value)
        assert self._producer.flush(GIVE_UP_SECONDS) == 0

    def stop(self) -> list[bytes]:
        """Stop, and return what was written, all of it acknowledged."""
        self._is_stopping.set()
        self.join()
        assert self._producer.flush(0) == 0
        return self.written


class Copier:
    """One library's copier, a process; another one takes the place of one that stands still.

    kafka-python waits for ever when its coordinator dies while it is told of a group's offsets.
    """

    def __init__(self, bootstrap: str, name: str) -> None:
        self.sink = f"sink-{name}"
        self._copied, self._end = PROCESSES.Value("q"), PROCESSES.Event()
        self._arguments = (name, bootstrap, SOURCE, self.sink, self._copied, self._end)
        self._start()

    def _start(self) -> None:
        self._process = PROCESSES.Process(target=keep_copying, args=self._arguments, daemon=True)
        self._process.start()

    def look_from_now_on(self) -> None:
        """Have `is_further` tell of what is copied from now on."""
        self._before, self._since = self._copied.value, time.monotonic()

    def is_further(self) -> bool:
        """Tell whether more is copied; who has stood still for long is replaced."""
        is_further: bool = self._copied.value > self._before
        if not is_further and time.monotonic() - self._since > STANDS_STILL_SECONDS:
            self._process.kill()
            self._process.join()
            self._start()
            self._since = time.monotonic()
        return is_further

    def finish(self) -> None:
        self._end.set()
        self._process.join(STANDS_STILL_SECONDS)
        self._process.kill()
        self._process.join()


def create_topics(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    names = [SOURCE, *(f"sink-{name}" for name in COPY)]
    topics = [confluent_kafka.admin.NewTopic(name, PARTITION_COUNT) for name in names]
    for created in admin.create_topics(topics).values():
        created.result(GIVE_UP_SECONDS)


def all_go_on(copiers: list[Copier]) -> None:
    """Wait until each has copied more than now."""
    for copier in copiers:
        copier.look_from_now_on()

    def standing() -> list[str]:
        return [copier.sink for copier in copiers if not copier.is_further()]

    until(lambda: not standing(), PATIENCE_SECONDS, shown=standing)


@contextmanager
def running_copiers(bootstrap: str) -> Iterator[list[Copier]]:
    copiers = [Copier(bootstrap, name) for name in COPY]
    yield copiers
    for copier in copiers:
        copier.finish()


def test_copiers_of_every_library_copy_exactly_once_while_brokers_are_killed() -> None:
    with LocalCluster(has_links=False, **SHORT_SESSIONS) as cluster:
        bootstrap = cluster.bootstrap_servers
        create_topics(bootstrap)
        feed = Feed(bootstrap)
        feed.start()
        with running_copiers(bootstrap) as copiers:
            for broker_id in cluster.broker_ids:
                all_go_on(copiers)
                cluster.kill(broker_id)
                all_go_on(copiers)
                # What was about to end anyhow is no sign of going on.
                all_go_on(copiers)
                cluster.start(broker_id)
            all_go_on(copiers)
            written = feed.stop()
            for copier in copiers:
                found = read(bootstrap, copier.sink, len(written), "read_committed")
                assert sorted(found) == sorted(written), copier.sink
        for copier in copiers:
            # Nothing came twice after all.
            found = read(bootstrap, copier.sink, len(written), "read_committed")
            assert len(found) == len(written), copier.sink
