"""A quorum of real nodes whose voters are exchanged while topics are created: none is lost."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka.admin
import pytest

from tests.lib.dynamic_quorum import DynamicQuorum

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKER = 101
LONGEST_PAUSE_SECONDS = 2.0


class Topics(threading.Thread):
    """Creates one topic after the other, and measures the pauses between them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        self._is_over = threading.Event()
        self.created: list[str] = []
        self.pauses: list[tuple[float, int]] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.create_one()
        except BaseException as error:
            self.error = error
            raise

    def create_one(self) -> None:
        name = f"topic-{len(self.created)}"
        began = time.monotonic()
        topic = confluent_kafka.admin.NewTopic(name, 1, 1)
        for created in self._admin.create_topics([topic], request_timeout=30).values():
            created.result(30)
        self.pauses.append((time.monotonic() - began, len(self.created)))
        self.created.append(name)

    def end(self) -> None:
        self._is_over.set()
        self.join(60)
        assert self.error is None, self.error

    def found(self) -> set[str]:
        return {name for name in self._admin.list_topics(timeout=30).topics if "topic" in name}


def test_three_controllers_become_five_and_then_three_other_ones(tmp_path: Path) -> None:
    with DynamicQuorum(tmp_path, [1, 2, 3, 4, 5, 6, BROKER]) as nodes:
        del nodes.controller_ports[BROKER]
        for node_id in nodes.controller_ports:
            nodes.configure(node_id)
        nodes.configure(BROKER, "broker")
        first = ",".join(
            f"{node_id}@127.0.0.1:{nodes.controller_ports[node_id]}:{directory}"
            for node_id, directory in (
                (1, "JEXY6aqzQY-32P5TStzaFg"),
                (2, "MvDxzVmcRsaTz33bUuRU6A"),
                (3, "07R5amHmR32VDA6jHkGbTA"),
            )
        )
        for node_id in (1, 2, 3):
            nodes.format(node_id, "--initial-controllers", first)
            nodes.start(node_id)
        for node_id in (4, 5, 6):
            nodes.format(node_id, "--no-initial-controllers")
        nodes.format(BROKER)
        nodes.start(BROKER)
        bootstrap = nodes.bootstrap_server(BROKER)
        assert nodes.voters(bootstrap) == [1, 2, 3]
        topics = Topics(bootstrap)
        topics.create_one()
        topics.start()
        for node_id in (4, 5):
            nodes.start(node_id)
            assert f"Added controller {node_id} with directory id" in nodes.add(bootstrap, node_id)
        assert nodes.voters(bootstrap) == [1, 2, 3, 4, 5]
        for node_id in (1, 2):
            assert f"Removed  KRaft controller {node_id}" in nodes.remove(bootstrap, node_id)
        nodes.start(6)
        nodes.add(bootstrap, 6)
        nodes.remove(bootstrap, 3)
        assert nodes.voters(bootstrap) == [4, 5, 6]
        for node_id in (1, 2, 3):
            nodes.stop(node_id)
            nodes.delete(node_id)
        topics.end()
        assert len(topics.created) > 20
        assert topics.found() == set(topics.created)
        longest = max(topics.pauses)
        assert longest[0] < LONGEST_PAUSE_SECONDS, (longest, topics.pauses)
        for node_id in (4, 5, 6, BROKER):
            nodes.stop(node_id)
        for node_id in (4, 5, 6, BROKER):
            nodes.start(node_id)
        assert topics.found() == set(topics.created)
        assert nodes.voters(bootstrap) == [4, 5, 6]


def test_a_running_quorum_of_static_voters_becomes_one_that_changes(tmp_path: Path) -> None:
    with DynamicQuorum(tmp_path, [1, 2, 3, 4]) as nodes:
        static = ",".join(
            f"{node_id}@127.0.0.1:{nodes.controller_ports[node_id]}" for node_id in (1, 2, 3)
        )
        for node_id in (1, 2, 3):
            nodes.configure(node_id, "broker,controller", f"controller.quorum.voters={static}")
            nodes.format(node_id)
        starts = [threading.Thread(target=nodes.start, args=(node_id,)) for node_id in (1, 2, 3)]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        bootstrap = nodes.bootstrap_server(1)
        upgrade = ("features", "--bootstrap-server", bootstrap, "upgrade")
        until_told(lambda: nodes.run(*upgrade, "--feature", "kraft.version=1"))
        nodes.configure(4, "broker,controller", "controller.quorum.auto.join.enable=true")
        nodes.format(4, "--no-initial-controllers")
        nodes.start(4)
        until_told(lambda: assert_voters(nodes, bootstrap, [1, 2, 3, 4]))
        # The configured voters are out of use: a node that has them starts with those of the log.
        nodes.remove(bootstrap, 1)
        nodes.stop(1)
        nodes.stop(3)
        nodes.start(3)
        assert nodes.voters(nodes.bootstrap_server(4)) == [2, 3, 4]


def assert_voters(nodes: DynamicQuorum, bootstrap: str, expected: list[int]) -> None:
    assert nodes.voters(bootstrap) == expected


def until_told(attempt: Callable[[], object]) -> None:
    """Repeat what fails until the leader has heard of all voters."""
    deadline = time.monotonic() + 30
    while True:
        try:
            attempt()
        except AssertionError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return
